"""The files of a task folder, looked at without following any link: what is there, and whether it may be there."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.task.problems import Kind, Problem, printable

PARTS = ("environment", "tests", "solution", "steps")
"""Folders of a task whose content is used."""
MOST_ENTRIES = 200_000
MOST_BYTES = 2 << 30
"""A larger folder holds data that belongs into the image; reading it for every run would take minutes."""
MOST_LINKS = 1000
MOST_TEXT = 4 << 20
"""Bytes of one text file (task.toml, instruction.md)."""


@dataclass(frozen=True)
class Entry:
    """One name of a folder; `path` is relative to it, with `/` between parts."""

    path: str
    mode: int
    size: int

    @property
    def kind(self) -> str:
        """What it is: file, folder, link, named pipe, socket or device."""
        for test, name in _KINDS:
            if test(self.mode):
                return name
        return "device"


_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
)


def entries(folder: Path) -> Iterator[Entry]:
    """Yield everything below a folder in a fixed order, folders before their content; no link is followed."""
    waiting = [""]
    while waiting:
        base = waiting.pop()
        try:
            with os.scandir(folder / base if base else folder) as found:
                here = sorted(found, key=lambda item: os.fsencode(item.name))
                seen = [(item.name, item.stat(follow_symlinks=False)) for item in here]
        except OSError as error:
            raise _unreadable(folder / base, error) from error
        for name, info in seen:
            entry = Entry(f"{base}/{name}" if base else name, info.st_mode, info.st_size)
            yield entry
            if entry.kind == "folder":
                waiting.append(entry.path)


def read_text(path: Path, limit: int = MOST_TEXT) -> str:
    """Return a text file; InputError where it is no regular file of at most `limit` bytes in UTF-8."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise InputError(f"{path.name} is no regular file", where=str(path), next_step="put a text file there")
            content = file.read(limit + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(content) > limit:
        reason = f"{path.name} is larger than {limit >> 20} MiB"
        raise InputError(reason, where=str(path), next_step="keep data out of this file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"{path.name} is not UTF-8 text (byte {error.start})"
        raise InputError(reason, where=f"{path}:{line}", next_step="save the file as UTF-8") from error


def _unreadable(path: Path, error: OSError) -> InputError:
    reason = f"cannot read {printable(path.name)}: {error.strerror or error}"
    return InputError(reason, where=str(path), next_step="check that the file exists and may be read")


def folder_problems(folder: Path) -> list[Problem]:
    """Return what may not be in a task folder: links that leave it or run in circles, pipes, devices, too much data."""
    problems: list[Problem] = []
    count = size = links = 0
    for name in ("task.toml", "instruction.md", *PARTS):
        path = folder / name
        if path.is_symlink():
            problems += _link_problems(folder, name)
            continue
        if name not in PARTS or not path.is_dir():
            continue
        for entry in entries(path):
            count, size = count + 1, size + (entry.size if entry.kind == "file" else 0)
            inside = f"{name}/{entry.path}"
            if entry.kind == "link":
                links += 1
                problems += _link_problems(folder, inside)
            elif entry.kind not in {"file", "folder"}:
                reason = f"is a {entry.kind}; a task holds files, folders and links alone"
                problems.append(Problem(inside, reason, fix="remove it", kind=Kind.LINK))
            if count > MOST_ENTRIES or size > MOST_BYTES:
                return [*problems, _too_large(count, size)]
            if links > MOST_LINKS:
                return [*problems, Problem(name, f"holds more than {MOST_LINKS} links", fix="put files in their place")]
    return problems


def _too_large(count: int, size: int) -> Problem:
    reason = f"the task folder is too large: more than {MOST_ENTRIES:,} files or {MOST_BYTES >> 30} GiB"
    return Problem(".", f"{reason} ({count:,} files, {size >> 20:,} MiB so far)", fix="fetch data in the Dockerfile")


def _link_problems(folder: Path, inside: str) -> list[Problem]:
    """Judge one link by where it ends. The build context of an image ends at environment/, so its links do too."""
    path, root = folder / inside, Path(os.path.realpath(folder))
    try:
        target = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        reason = f"is a link that leads nowhere: {error.strerror}"
        return [Problem(inside, reason, fix="remove it or put the file in its place", kind=Kind.LINK)]
    top = inside.split("/", 1)[0]
    home = root / top if top == "environment" else root
    if home != target and home not in target.parents:
        reason = f"is a link that leaves {'environment/' if top == 'environment' else 'the task folder'}"
        return [Problem(inside, reason, fix="put a copy of the file in its place", kind=Kind.LINK)]
    if target.is_dir() and _circular(Path(os.path.realpath(path.parent)), target):
        return [Problem(inside, "is a link to a folder that contains it, a circle", fix="remove it", kind=Kind.LINK)]
    return []


def _circular(holder: Path, target: Path) -> bool:
    """Say whether the folder that holds a link can be reached again from the folder it leads to."""
    seen: set[Path] = set()
    waiting = [target]
    while waiting:
        here = waiting.pop()
        if here == holder:
            return True
        if here in seen or len(seen) > MOST_ENTRIES:
            continue
        seen.add(here)
        with os.scandir(here) as found:
            waiting += [Path(os.path.realpath(item.path)) for item in found if item.is_dir()]
    return False
