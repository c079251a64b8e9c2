"""The append-only record of a run: numbered JSON lines, each carrying the hash of the line before.

A line is on disk before `append` returns, so whatever depends on an event happens after it. Readers never need the
writer: a line that is still being written, or that a crash tore, is left out.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from harness.errors import InputError, RefusedError, RsiError
from harness.run.state import Kind

FIRST_PREV = "0" * 64
HEAD = ("n", "t", "prev", "kind")
_KINDS = frozenset(kind.value for kind in Kind)
_SURROGATE = re.compile("[\ud800-\udfff]")

Clock = Callable[[], float]
"""Returns Unix time in seconds."""


def steady_clock() -> Clock:
    """Return a clock that starts at Unix time and then never jumps, so that setting the host's clock charges nobody."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


class JournalError(RsiError):
    """The journal is damaged or cannot be written."""


class Journal:
    """The one writer of a journal; it holds an exclusive lock until it is closed or its process ends."""

    def __init__(self, path: Path, file: IO[bytes], clock: Clock, tail: "_Tail", torn: int) -> None:
        self.path = path
        self.torn = torn
        """How many bytes of a torn last line `open` cut off; 0 where none was torn."""
        self._file = file
        self._clock = clock
        self._tail = tail
        self._broken = False

    @classmethod
    def create(cls, path: Path, clock: Clock | None = None) -> Self:
        """Make a new, empty journal; one that is there already is an error."""
        try:
            file = path.open("xb", buffering=0)
        except FileExistsError as error:
            raise RefusedError("the run has a journal already", where=str(path), next_step="rsi resume RUN") from error
        except OSError as error:
            raise _cannot("create", path, error) from error
        _lock(file, path)
        _sync_folder(path.parent)
        return cls(path, file, clock or steady_clock(), _Tail(), 0)

    @classmethod
    def open(cls, path: Path, clock: Clock | None = None) -> Self:
        """Open a journal to go on with it, after checking every line.

        A torn last line is cut off (`torn` says how many bytes); any other damage is a JournalError.
        """
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError as error:
            raise InputError("there is no journal", where=str(path), next_step="rsi runs") from error
        except OSError as error:
            raise _cannot("open", path, error) from error
        try:
            _lock(file, path)
            tail = _Tail()
            for _ in _chain(path, tail):
                pass
            torn = os.fstat(file.fileno()).st_size - tail.size
            if torn:
                file.truncate(tail.size)
                os.fsync(file.fileno())
        except BaseException:
            file.close()
            raise
        file.seek(tail.size)
        return cls(path, file, clock or steady_clock(), tail, torn)

    @property
    def count(self) -> int:
        """How many events the journal holds."""
        return self._tail.n

    @property
    def last_time(self) -> float:
        """Time of the last event, 0 where there is none."""
        return self._tail.t

    def append(self, kind: Kind, **fields: Any) -> dict[str, Any]:
        """Write one event, flush it to disk and return it as a reader will see it.

        Time never runs backwards, also not across engines. A field that JSON cannot hold is a ValueError or TypeError
        and writes nothing.
        """
        if self._broken:
            raise JournalError("the journal could not be written before", where=str(self.path), next_step="rsi resume")
        if taken := [name for name in fields if name in HEAD]:
            raise ValueError(f"fields {taken} belong to the journal itself")
        tail = self._tail
        event = {"n": tail.n + 1, "t": round(max(self._clock(), tail.t), 6), "prev": tail.digest, "kind": kind.value}
        line = _canonical({**event, **fields})
        try:
            self._write(line)
        except OSError as error:
            self._undo()
            raise _cannot("write", self.path, error) from error
        read: dict[str, Any] = json.loads(line)
        tail.take(read, line)
        return read

    def close(self) -> None:
        """Give up the lock; harmless when it is closed already."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            written = self._file.write(rest)
            rest = rest[written or 0 :]
        os.fsync(self._file.fileno())

    def _undo(self) -> None:
        """Take back half a line, so that the next append does not continue it."""
        try:
            self._file.truncate(self._tail.size)
            self._file.seek(self._tail.size)
        except OSError:
            self._broken = True


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events one by one and check the chain; a line that is not finished yet ends the reading."""
    return _chain(path, _Tail())


def verify(path: Path) -> list[str]:
    """Return what is wrong with a journal, in words; empty means that every line is whole and in its place."""
    tail = _Tail()
    problems = []
    try:
        for _ in _chain(path, tail):
            pass
    except RsiError as error:
        return [f"{error.what} ({error.where})"]
    if torn := path.stat().st_size - tail.size:
        problems.append(f"the last line is torn: {torn} bytes after event {tail.n}")
    return problems


@dataclass
class _Tail:
    """Where a chain of lines stands."""

    n: int = 0
    t: float = 0.0
    digest: str = FIRST_PREV
    size: int = 0

    def take(self, event: dict[str, Any], line: bytes) -> None:
        self.n = event["n"]
        self.t = event["t"]
        self.digest = hashlib.sha256(line).hexdigest()
        self.size += len(line)


def _chain(path: Path, tail: _Tail) -> Iterator[dict[str, Any]]:
    """Yield the events of a file and move `tail` along; the hash covers the line with its newline."""
    try:
        with path.open("rb") as file:
            for line in file:
                # A crash of the host may leave zeros where the last line should be: JSON never holds a raw zero.
                if not line.endswith(b"\n") or (b"\0" in line and not file.peek(1)):
                    return
                event = _checked(line, tail, path)
                tail.take(event, line)
                yield event
    except FileNotFoundError as error:
        raise InputError("there is no journal", where=str(path), next_step="rsi runs") from error
    except OSError as error:
        raise _cannot("read", path, error) from error


def _checked(line: bytes, tail: _Tail, path: Path) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise _damaged("it is no JSON", tail, path) from error
    if not isinstance(event, dict) or any(name not in event for name in HEAD):
        raise _damaged("it is no event", tail, path)
    if event["prev"] != tail.digest:
        raise _damaged("it does not follow the line before; one of the two was changed", tail, path)
    if event["n"] != tail.n + 1:
        raise _damaged(f"its number is {event['n']!r}", tail, path)
    if not isinstance(event["t"], float | int) or event["t"] < tail.t:
        raise _damaged("its time runs backwards", tail, path)
    if event["kind"] not in _KINDS:
        raise _damaged(f"its kind {event['kind']!r} is unknown to this version", tail, path)
    return event


def _damaged(why: str, tail: _Tail, path: Path) -> JournalError:
    return JournalError(
        f"line {tail.n + 1} of the journal is damaged: {why}",
        where=f"{path}:{tail.n + 1}",
        next_step=f"restore the file from a copy; the {tail.n} events before that line are whole",
    )


def _canonical(event: dict[str, Any]) -> bytes:
    text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    # A lone surrogate comes from a file name or a broken message and has no UTF-8.
    return _SURROGATE.sub("\ufffd", text).encode() + b"\n"


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise RefusedError(
            "another engine is working on this run", where=str(path), next_step="rsi stop RUN, then try again"
        ) from error
    except OSError as error:
        # Some network file systems have no locks; there the lock is only a second net below the engine's own.
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise _cannot("lock", path, error) from error


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    # Some network file systems refuse to flush a folder; they write it through anyway.
    with contextlib.suppress(OSError):
        os.fsync(fd)
    os.close(fd)


def _cannot(what: str, path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"cannot {what} the journal: {error.strerror}",
        where=str(path),
        next_step="make room or mend the disk; rsi resume",
    )
