"""The one way a candidate's files are found: by directory descriptors, following no link, within fixed bounds.

A tree in a box is hostile and may change under the walk. What a candidate must not hold ends the walk with a
CandidateFault; what vanishes meanwhile was not there.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.errors import RsiError
from harness.run.store.globs import Globs, Level
from harness.run.store.hostile import FOLDER_FLAGS, kind_of, printable
from harness.run.verdict import Verdict

MAX_DEPTH = 32
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 1024
MAX_SEEN = 1_000_000
"""Most entries that one walk looks at, so that a flood of names cannot hold it up."""

LITTER = frozenset({"__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"})
COMPILED = (".pyc", ".pyo")
"""Names and endings of what tools leave behind: never delivered, never a change."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})


class Known(Protocol):
    """A file as it was last read; `trusted` says whether unchanged times prove an unchanged content."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    trusted: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk found: the paths of all files, and what was seen of those that are not known as they are."""

    paths: list[str]
    unknown: list[tuple[str, os.stat_result]]
    size: int
    """Bytes of all files together."""


class CandidateFault(Exception):
    """A candidate cannot be taken. `message` may reach the agent, `evidence` only the operator."""

    verdict = Verdict.INVALID

    def __init__(self, message: str, evidence: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.evidence = evidence


class InvalidCandidate(CandidateFault):
    """The candidate is not what the boundary asks for."""


class BoundaryViolation(CandidateFault):
    """The candidate reaches for what lies outside its boundary."""

    verdict = Verdict.VIOLATION


class StoreError(RsiError):
    """The host cannot read or keep a candidate; not the candidate's fault."""


@dataclass(frozen=True)
class Scope:
    """What a walk takes: files that match `wanted` and not `kept_out`, within bounds."""

    wanted: Globs
    kept_out: Globs
    max_bytes: int
    max_files: int
    workdir: str = ""
    """The workdir's path as code in the box sees it; a link to below it is no violation."""


def walk(root: int, scope: Scope, known: Mapping[str, Known]) -> Found:
    """Return the regular files below a descriptor that a candidate consists of, in no particular order.

    `known` holds what was read after earlier walks of the same scope. Raises a BoundaryViolation at once, else the
    first InvalidCandidate once everything was looked at.
    """
    walking = _Walk(os.fstat(root), scope, known)
    out = scope.kept_out.level
    walking.folder(root, "", scope.wanted.level, out if out.alive else None, 1)
    walking.check_literals()
    if walking.fault is not None:
        raise walking.fault
    return Found(walking.paths, walking.unknown, walking.size)


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open a path below a descriptor, following no link in any of its parts."""
    *folders, name = path.split("/")
    at = root
    try:
        for folder in folders:
            deeper = os.open(folder, FOLDER_FLAGS, dir_fd=at)
            if at != root:
                os.close(at)
            at = deeper
        return os.open(name, flags, dir_fd=at)
    finally:
        if at != root:
            os.close(at)


def is_gone(error: OSError) -> bool:
    """Say whether an error means that the path is no longer what it was."""
    return error.errno in _GONE


def reading_failed(path: str, error: OSError) -> Exception:
    """Return what to raise where a path cannot be read: a fault of the candidate, else of the host."""
    if error.errno in _FORBIDDEN:
        return InvalidCandidate(f"{printable(path)} cannot be read: {error.strerror}")
    return StoreError(
        f"cannot read the workspace: {error.strerror}",
        where=printable(path or "."),
        next_step="mend the disk, then rsi resume RUN",
    )


class _Walk:
    """One walk: what it found, and the first thing that is wrong with it."""

    def __init__(self, root: os.stat_result, scope: Scope, known: Mapping[str, Known]) -> None:
        self.paths: list[str] = []
        self.unknown: list[tuple[str, os.stat_result]] = []
        self.size = 0
        self.fault: InvalidCandidate | None = None
        self._root = root
        self._scope = scope
        self._workdir = scope.workdir.rstrip("/")
        self._known = known
        self._seen = 0

    def folder(self, fd: int, prefix: str, level: Level, out: Level | None, depth: int) -> None:
        """Look through one folder, then through its folders."""
        folders = []
        known, paths, size = self._known, self.paths, 0
        try:
            # This loop is what a freeze waits for: 50,000 known files are to pass it in a quarter of a second, so that
            # a file that is as it was is asked nothing more; all others take the long way.
            for entry in entries(fd, level):
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                    continue
                path = prefix + name
                old = known.get(path)
                if old is not None:
                    try:
                        seen = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if (
                        old.ctime_ns == seen.st_ctime_ns
                        and old.inode == seen.st_ino
                        and old.size == seen.st_size
                        and old.mtime_ns == seen.st_mtime_ns
                        and old.trusted
                    ):
                        paths.append(path)
                        size += old.size
                        continue
                self._look(fd, path, entry, level, out)
        except OSError as error:
            if not is_gone(error):
                raise reading_failed(prefix, error) from error
        self.size += size
        self._check_bounds(prefix)
        for name in folders:
            below = level.enter(name) if name not in LITTER else None
            if below is not None:
                self._enter(fd, prefix + name, below, out.enter(name) if out is not None else None, depth)

    def check_literals(self) -> None:
        """Ask for each deliverable that is named without a wildcard."""
        literals = set(self._scope.wanted.literals)
        for path in sorted(literals.difference(self.paths) if literals else ()):
            self._note(f"missing deliverable: there is no file {printable(path)}")

    def _enter(self, fd: int, path: str, level: Level, out: Level | None, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self._note(f"{printable(path)} lies deeper than {MAX_DEPTH} folders")
            return
        try:
            deeper = os.open(path.rpartition("/")[2], FOLDER_FLAGS, dir_fd=fd)
        except OSError as error:
            if is_gone(error):
                return
            raise reading_failed(path, error) from error
        try:
            # Folders of one file system share a device number, also on an overlay; another one is a mount.
            if os.fstat(deeper).st_dev != self._root.st_dev:
                self._note(f"{printable(path)} is on another file system; only the workdir's own files are handed in")
            else:
                self.folder(deeper, path + "/", level, out, depth + 1)
        finally:
            os.close(deeper)

    def _look(self, fd: int, path: str, entry: "os.DirEntry[str] | Named", level: Level, out: Level | None) -> None:
        """Look closely at what is no folder and not known as it is."""
        self._seen += 1
        if self._seen > MAX_SEEN:
            raise InvalidCandidate(f"more than {MAX_SEEN} files would have to be looked at")
        name = entry.name
        if name in LITTER or name.endswith(COMPILED):
            return
        if not level.match(name):
            if path in self._scope.wanted.folders:
                # A glob leads through this name, and it is no folder.
                self._refuse(fd, path, entry.stat(follow_symlinks=False))
            return
        if out is not None and out.match(name):
            return
        try:
            seen = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(seen.st_mode):
            self._refuse(fd, path, seen)
            return
        self._check_name(path)
        if seen.st_nlink != 1:
            self._check_other_names(path, seen)
        self.unknown.append((path, seen))
        self.paths.append(path)
        self.size += seen.st_size
        self._check_bounds(path)

    def _check_bounds(self, path: str) -> None:
        if self.size > self._scope.max_bytes:
            most = self._scope.max_bytes / (1 << 20)
            raise InvalidCandidate(f"a candidate may hold at most {most:g} MiB; with {printable(path)} it holds more")
        if len(self.paths) > self._scope.max_files:
            raise InvalidCandidate(f"a candidate may hold at most {self._scope.max_files} files; this one holds more")

    def _refuse(self, fd: int, path: str, seen: os.stat_result) -> None:
        """Judge what is no regular file: a link that leaves the workdir is a violation, all else is invalid."""
        shown = printable(path)
        if not stat.S_ISLNK(seen.st_mode):
            self._note(f"{shown} is {kind_of(seen.st_mode)}; only regular files and folders can be handed in")
            return
        try:
            target = os.readlink(path.rpartition("/")[2], dir_fd=fd)
        except FileNotFoundError:
            return
        if self._leaves(path, target):
            raise BoundaryViolation(
                f"{shown} is a link that leaves the workdir", f"{shown} -> {printable(target, MAX_PATH_BYTES)}"
            )
        self._note(f"{shown} is a link; hand in a copy of the file")

    def _leaves(self, path: str, target: str) -> bool:
        """Say whether a link leads out of the workdir by its text alone; it is never followed."""
        if target.startswith("/"):
            if not self._workdir or not (target + "/").startswith(self._workdir + "/"):
                return True
            parts = target[len(self._workdir) :].split("/")
        else:
            parts = [*path.split("/")[:-1], *target.split("/")]
        depth = 0
        for part in parts:
            depth += 0 if part in {"", "."} else -1 if part == ".." else 1
            if depth < 0:
                return True
        return False

    def _check_name(self, path: str) -> None:
        if len(path) <= MAX_NAME_BYTES and path.isascii():
            return
        try:
            encoded = path.encode()
        except UnicodeEncodeError:
            self._note(f"the name {printable(path)} is not UTF-8")
            return
        if len(encoded) > MAX_PATH_BYTES or len(encoded.rpartition(b"/")[2]) > MAX_NAME_BYTES:
            self._note(f"the name {printable(path)} is too long; a path may have {MAX_PATH_BYTES} bytes")

    def _check_other_names(self, path: str, seen: os.stat_result) -> None:
        """Refuse a second name of a file that its maker may not have been able to read.

        A hard link reaches no other file system, and where its maker can read the file it hands in no more than a copy
        would. But we may read more than an agent who is not root, and a kernel may let that agent link what it cannot
        read: so the file must be readable for all, or belong to the owner of the workdir where that is not root.
        """
        owned = seen.st_uid == self._root.st_uid and seen.st_uid != 0
        if not seen.st_mode & stat.S_IROTH and not owned:
            self._note(f"{printable(path)} is a hard link to a file that not everybody may read; hand in a copy")

    def _note(self, message: str) -> None:
        if self.fault is None:
            self.fault = InvalidCandidate(message)


@dataclass(frozen=True)
class Named:
    """A directory entry that was asked for by name; has what we use of os.DirEntry."""

    name: str
    seen: os.stat_result

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        """Say whether it is a folder."""
        return stat.S_ISDIR(self.seen.st_mode) and not follow_symlinks

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        """Return what it was when it was asked for."""
        assert not follow_symlinks
        return self.seen


def entries(fd: int, level: Level) -> "Iterator[os.DirEntry[str] | Named]":
    """Yield what lies in a folder; where the globs name all that counts, ask for those names alone."""
    if level.names is None:
        with os.scandir(fd) as found:
            yield from found
        return
    for name in sorted(level.names):
        try:
            seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            if error.errno in _GONE or error.errno == errno.ENAMETOOLONG:
                continue
            raise
        yield Named(name, seen)
