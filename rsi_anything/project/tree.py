"""What a project's tree holds before it is copied: entries, what is left out and why, and where links lead."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from harness.errors import InputError

_LONGEST_PATH = 1024
_LONGEST_NAME = 255
_MOST_LINKS_ON_A_WAY = 40


@dataclass(frozen=True)
class Limits:
    """How much of a project is taken at most."""

    files: int = 50_000
    mb: int = 4096


@dataclass(frozen=True)
class Entry:
    """A file or a link of the tree; `target` is set for links, `blob` where git holds the content."""

    path: str
    size: int
    executable: bool = False
    target: str | None = None
    blob: str = ""


@dataclass(frozen=True, order=True)
class LeftOut:
    """Something of the tree that was not taken, and why."""

    path: str
    reason: str


class Tree(Protocol):
    """A tree whose files can be read one after the other."""

    entries: list[Entry]
    left_out: list[LeftOut]
    above: dict[str, bytes]
    """Licence files of the repository's root, where only a folder below it is taken."""

    def content(self, entry: Entry) -> Iterator[bytes]:
        """Yield the content of a file; FileNotFoundError where it is not there."""
        ...


LICENCE = re.compile(r"(?:licen[cs]e|copying|unlicense)(?:[-._][\w.-]*)?\Z", re.IGNORECASE)
LONGEST_LICENCE = 128 * 1024


def shown(name: bytes) -> str:
    """Return a name as printable text, whatever its bytes are."""
    text = name.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def unusable(name: bytes) -> str | None:
    """Say why a path cannot be taken, or None where it can."""
    try:
        path = name.decode("utf-8")
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    if any(ord(char) < 32 or ord(char) in {0x7F, 0x85, 0x2028, 0x2029} for char in path):
        return "its name holds control characters"
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return "its name leaves the folder"
    if any(part.casefold() == ".git" for part in parts):
        return "it belongs to git itself"
    if len(name) > _LONGEST_PATH or any(len(part.encode()) > _LONGEST_NAME for part in parts):
        return "its name is too long"
    return None


def check_limits(entries: Iterable[Entry], limits: Limits, where: str) -> Iterator[Entry]:
    """Pass the entries on; stop with an error as soon as they are more than the limits allow."""
    size = 0
    for count, entry in enumerate(entries, start=1):
        size += max(entry.size, 0)
        if count > limits.files or size > limits.mb * 1024 * 1024:
            limit = f"{limits.files} files" if count > limits.files else f"{limits.mb} MiB"
            raise InputError(
                f"the project holds more than {limit}",
                where=where,
                next_step="Name the folder that matters (source.subdir in the answers), or move data elsewhere.",
            )
        yield entry


def resolve_links(entries: list[Entry]) -> tuple[dict[str, str], list[LeftOut]]:
    """Return the links that stay inside the tree, each with the path it leads to, and those that do not."""
    links = {entry.path: entry.target for entry in entries if entry.target is not None}
    files = {entry.path for entry in entries if entry.target is None}
    folders = {""}
    for path in [*files, *links]:
        while (path := posixpath.dirname(path)) not in folders:
            folders.add(path)
    inside: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for path in links:
        end = _follow(path, links)
        if end is None:
            left_out.append(LeftOut(path, "it is a link that leaves the project"))
        elif end not in files and end not in folders:
            left_out.append(LeftOut(path, "it is a link to nothing"))
        else:
            inside[path] = end
    return inside, left_out


def _follow(path: str, links: dict[str, str]) -> str | None:
    """Return where a path really leads, or None where it leaves the tree or goes in circles."""
    reached: list[str] = []
    ahead = path.split("/")[::-1]
    followed = 0
    while ahead:
        part = ahead.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            if not reached:
                return None
            reached.pop()
            continue
        target = links.get("/".join([*reached, part]))
        if target is None:
            reached.append(part)
            continue
        followed += 1
        if target.startswith("/") or followed > _MOST_LINKS_ON_A_WAY:
            return None
        ahead.extend(target.split("/")[::-1])
    return "/".join(reached)
