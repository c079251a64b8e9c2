"""Copying one file out of a hostile, living tree into the store, and knowing later whether it changed since.

A file is known by its signature: inode, size, mtime, ctime. Two things make a signature lie, so a copy is
`trusted` only where neither can have happened: a change within the same tick of the kernel's clock, and a store through
a memory map, which moves the times only for the first write after the page was flushed.
"""

import contextlib
import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from harness.run.store.hostile import FILE_FLAGS
from harness.run.store.walker import StoreError, is_gone, open_beneath, reading_failed

TICK_NS = 20_000_000
"""Longest tick of a kernel's clock, doubled."""
COARSE_NS = 2_000_000_000
"""The same for file systems that keep whole seconds."""
MANY = 32
"""Beyond this many files, flushing the file system once is cheaper than flushing each."""
CHUNK = 1 << 20


class Source(Enum):
    """How it stands with what is read."""

    RUNNING = auto()
    """It may change at any time; it is flushed before it is read, so that no memory map changes it unseen later on."""
    FLUSHED = auto()
    """The same, flushed already."""
    FROZEN = auto()
    """It cannot change; there is no time to flush it, so that it must be read again once work goes on."""


@dataclass(slots=True)
class Copied:
    """A file as it was last read."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    key: str
    """sha256 of its content; an executable's ends in x."""
    line: bytes
    """Its line in a manifest."""
    trusted: bool
    """Whether the same signature later on proves the same content."""

    def is_still(self, seen: os.stat_result) -> bool:
        """Say whether the signature is the same."""
        return signature(seen) == (self.inode, self.size, self.mtime_ns, self.ctime_ns)


class Copier:
    """Copies files into `ahead` and moves them into `objects` when a snapshot holds them."""

    def __init__(self, ahead: Path, objects: Path) -> None:
        self._ahead = ahead
        self._objects = objects
        self._waiting: set[str] = set()
        """Keys in `ahead`."""
        self._unflushed: set[str] = set()
        self._ready = False

    def copy(self, root: int, path: str, seen: os.stat_result, old: Copied | None, source: Source) -> Copied | None:
        """Read a file and keep its content; return None where it changed meanwhile or is gone."""
        try:
            fd = open_beneath(root, path, FILE_FLAGS)
        except OSError as error:
            if is_gone(error):
                return None
            raise reading_failed(path, error) from error
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode) or signature(before) != signature(seen):
                return None
            flushed = source is Source.FLUSHED or (source is Source.RUNNING and _flush_source(fd))
            started = time.time_ns()
            key = self._content(fd, path, before, old)
            if key is None or signature(os.fstat(fd)) != signature(before):
                return None
        finally:
            os.close(fd)
        trusted = flushed and is_past(before.st_ctime_ns, started)
        return Copied(*signature(before), key, _line(path, key, before.st_size), trusted)

    def move(self, keys: set[str]) -> None:
        """Make objects of what was copied ahead, durably."""
        waiting = keys & self._waiting
        self.flush()
        folders = set()
        for key in waiting:
            folder = self._objects / key[:2]
            if folder not in folders:
                folder.mkdir(parents=True, exist_ok=True)
                folders.add(folder)
            (self._ahead / key).rename(folder / key[2:])
            self._waiting.discard(key)
        for folder in [*folders, self._objects] if folders else []:
            flush(folder)

    def drop_unused(self, used: set[str]) -> None:
        """Delete what was copied ahead and replaced since, so that a file written anew for ever fills no disk."""
        for key in self._waiting - used:
            with contextlib.suppress(FileNotFoundError):
                (self._ahead / key).unlink()
            self._waiting.discard(key)
            self._unflushed.discard(key)

    def flush(self) -> None:
        """Write to disk what was copied so far."""
        if not self._unflushed:
            return
        try:
            if len(self._unflushed) > MANY:
                _flush_file_system(self._ahead)
            else:
                for key in self._unflushed:
                    flush(self._ahead / key)
        except OSError as error:
            raise _cannot_store(error, self._ahead) from error
        self._unflushed.clear()

    def _content(self, fd: int, path: str, seen: os.stat_result, old: Copied | None) -> str | None:
        suffix = "x" if seen.st_mode & 0o111 else ""
        if old is not None and old.is_still(seen):
            # Most probably it is what we have: look before copying.
            digest = _read(fd, path, seen.st_size, None)
            if digest is None or digest + suffix == old.key:
                return old.key if digest else None
            os.lseek(fd, 0, os.SEEK_SET)
        return self._copy(fd, path, seen.st_size, suffix)

    def _copy(self, fd: int, path: str, size: int, suffix: str) -> str | None:
        part = self._ahead / ".part"
        try:
            self._prepare()
            part.unlink(missing_ok=True)
            target = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                digest = _read(fd, path, size, target)
                os.fchmod(target, 0o555 if suffix else 0o444)
            finally:
                os.close(target)
            if digest is None:
                part.unlink()
                return None
            key = digest + suffix
            if key in self._waiting or (self._objects / key[:2] / key[2:]).exists():
                part.unlink()
                return key
            part.rename(self._ahead / key)
        except OSError as error:
            raise _cannot_store(error, self._ahead) from error
        self._waiting.add(key)
        self._unflushed.add(key)
        return key

    def _prepare(self) -> None:
        """Empty what an earlier engine left in `ahead`: nobody knows what it belongs to."""
        if self._ready:
            return
        self._ahead.mkdir(parents=True, exist_ok=True)
        for left in os.scandir(self._ahead):
            os.unlink(left.path)  # noqa: PTH108 - an entry of scandir has its path at hand
        self._ready = True


def flush_sources(workdir: int, count: int) -> Source:
    """Flush a whole workdir where many of its files will be read, and return how its files then stand."""
    if count <= MANY:
        return Source.RUNNING
    _sync(workdir)
    return Source.FLUSHED


def flush(path: Path) -> None:
    """Flush one file or folder to disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _flush_file_system(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def _sync(fd: int) -> None:
    """Flush the file system of a descriptor; all of them where the system cannot flush one."""
    import ctypes  # costs 10 ms, and only a run needs it

    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None or syncfs(fd) != 0:
        os.sync()


def _read(fd: int, path: str, size: int, target: int | None) -> str | None:
    """Return the sha256 of exactly `size` bytes, written to `target` too, or None where there are more or fewer."""
    digest = hashlib.sha256()
    left = size + 1
    while True:
        try:
            chunk = os.read(fd, min(left, CHUNK))
        except OSError as error:
            raise reading_failed(path, error) from error
        if not chunk:
            return digest.hexdigest() if left == 1 else None
        left -= len(chunk)
        if left <= 0:
            return None
        digest.update(chunk)
        if target is not None:
            _write(target, chunk)


def _write(target: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(target, rest) :]


def signature(seen: os.stat_result) -> tuple[int, int, int, int]:
    """Return inode, size, mtime and ctime: what tells a file from a changed one without reading it."""
    return (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def _flush_source(fd: int) -> bool:
    try:
        os.fdatasync(fd)
    except OSError:
        # A file system that cannot flush: the copy is taken all the same, only not trusted.
        return False
    return True


def is_past(changed: int, started: int) -> bool:
    """Say whether a file changed so long before `started` that a later change must show in its times; nanoseconds."""
    return changed + (TICK_NS if changed % 1_000_000_000 else COARSE_NS) < started


def _line(path: str, key: str, size: int) -> bytes:
    return json.dumps([path, key[:64], size, len(key) > 64], ensure_ascii=False).encode()


def _cannot_store(error: OSError, where: Path) -> StoreError:
    return StoreError(
        f"cannot keep a candidate: {error.strerror}",
        where=str(where),
        next_step="make room or mend the disk, then rsi resume RUN",
    )
