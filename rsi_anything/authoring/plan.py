"""What a task folder would hold: a pure mapping from paths to files, and how it differs from what lies there."""

import difflib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from rsi_anything.authoring.measured import carry, without

MANIFEST = ".rsi-manifest.json"
SHOWN_BYTES = 64 << 10
"""A larger file, like one that is no text, is named in a diff and not shown."""
BULK = ("environment/project/", "tests/data/", "solution/files/")
"""Copies of the project: a diff names them when they are new, as their text says nothing about the task."""


@dataclass(frozen=True)
class PlannedFile:
    """One file: its content and its permissions."""

    data: bytes
    mode: int = 0o644

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Plan:
    """All files of a task, by path relative to its folder."""

    files: Mapping[str, PlannedFile]

    def compare(self, dest: Path, given: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
        """Return a verb for each path, sorted by path.

        create: not there yet; identical; change: ours, as we wrote it last time; remove: ours, no longer needed;
        conflict: a person edited or made it since, or something that is no file is in its place. Files that are
        `given` are what the plan was made from: what a person wrote there is in the plan, so they are never one.
        """
        written = read_manifest(dest)
        found = [(self._verb(dest, path, written.get(path), path in given), path) for path in self.files]
        for path, digest in written.items():
            if path not in self.files and os.path.lexists(dest / path):
                found.append(("remove" if _digest(dest, path) == digest else "conflict", path))
        return sorted(found, key=lambda item: item[1])

    def _verb(self, dest: Path, path: str, written: str | None, given: bool) -> str:
        there = read_there(dest, path)
        if there is None:
            return "conflict" if _occupied(dest, path) else "create"
        content, mode = there
        wanted = self.content_for(dest, path)
        if content == wanted and mode == self.files[path].mode & 0o100:
            return "identical"
        if given or path == MANIFEST:
            return "change"
        if content == wanted or written == hashlib.sha256(without(path, content)).hexdigest():
            return "change"
        return "conflict"

    def content_for(self, dest: Path, path: str) -> bytes:
        """Return what shall lie there: the planned content, and of task.toml what was measured in the folder before."""
        planned = self.files[path].data
        there = read_there(dest, path)
        return carry(path, there[0], planned) if there is not None else planned

    def diff(self, dest: Path, given: frozenset[str] = frozenset()) -> str:
        """Return what writing would change, as a unified diff; large and binary files are named only."""
        parts = []
        for verb, path in self.compare(dest, given):
            if verb == "identical" or path == MANIFEST:
                continue
            there = read_there(dest, path)
            new = b"" if verb == "remove" or path not in self.files else self.content_for(dest, path)
            parts.append(_diff(verb, path, there[0] if there else b"", new))
        return "".join(parts)

    def tree(self) -> str:
        """Return the files as an indented tree with their sizes; long folders of project files are summed up."""
        return "\n".join(_tree(sorted(self.files), self.files, "", 0)) + "\n"

    def with_manifest(self) -> "Plan":
        """Return the plan together with the record of what we wrote, by which later edits are noticed."""
        hashes = {path: file.digest for path, file in sorted(self.files.items())}
        record = json.dumps({"version": 1, "files": hashes}, indent=1, ensure_ascii=False) + "\n"
        return Plan({**self.files, MANIFEST: PlannedFile(record.encode("utf-8"))})


def read_manifest(dest: Path) -> dict[str, str]:
    """Return the hashes of what we wrote into a folder last time; empty where there is no usable record."""
    there = read_there(dest, MANIFEST)
    if there is None:
        return {}
    try:
        files = json.loads(there[0])["files"]
        return {str(path): str(digest) for path, digest in files.items() if _inside(str(path))}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _inside(path: str) -> bool:
    return not path.startswith("/") and all(part not in {"", ".", ".."} for part in path.split("/"))


def read_there(dest: Path, path: str) -> tuple[bytes, int] | None:
    """Return content and owner's execute bit of a regular file below a folder, following no link; else None."""
    if _through_link(dest, path):
        return None
    try:
        fd = os.open(dest / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if (dest / path).is_symlink():
            return None
        raise _unreadable(dest / path, error) from error
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read(), info.st_mode & 0o100


def _through_link(dest: Path, path: str) -> bool:
    parts = path.split("/")
    return any((dest / "/".join(parts[:end])).is_symlink() for end in range(1, len(parts)))


def _occupied(dest: Path, path: str) -> bool:
    """Say whether something that is no regular file of ours is where a file or one of its folders shall be."""
    parts = path.split("/")
    for end in range(1, len(parts)):
        parent = dest / "/".join(parts[:end])
        if os.path.lexists(parent) and (parent.is_symlink() or not parent.is_dir()):
            return True
    return os.path.lexists(dest / path)


def _digest(dest: Path, path: str) -> str | None:
    there = read_there(dest, path)
    return None if there is None else hashlib.sha256(without(path, there[0])).hexdigest()


def _diff(verb: str, path: str, old: bytes, new: bytes) -> str:
    if verb == "create" and path.startswith(BULK):
        return f"new file {path} ({_size(len(new))})\n"
    before, after = _text(old), _text(new)
    if before is None or after is None:
        return f"{verb} {path} ({_size(len(old))} -> {_size(len(new))}, not shown)\n"
    marked = f"{path} (edited since it was written)" if verb == "conflict" else path
    names = ("/dev/null" if verb == "create" else f"old/{marked}", "/dev/null" if verb == "remove" else f"new/{marked}")
    lines = list(difflib.unified_diff(before.splitlines(True), after.splitlines(True), *names))
    if not lines:
        return f"{verb} {path} (same content)\n"
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _text(content: bytes) -> str | None:
    if len(content) > SHOWN_BYTES or b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _tree(paths: list[str], files: Mapping[str, PlannedFile], base: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    names = sorted({path[len(base) :].split("/", 1)[0] for path in paths})
    plain = [name for name in names if base + name in files]
    if len(plain) > 20:
        total = sum(len(files[base + name].data) for name in plain)
        yield f"{indent}({len(plain)} files, {_size(total)})"
        plain = []
    for name in plain:
        yield f"{indent}{name}  {_size(len(files[base + name].data))}"
    for name in names:
        folder = f"{base}{name}/"
        below = [path for path in paths if path.startswith(folder)]
        if below:
            yield f"{indent}{name}/"
            yield from _tree(below, files, folder, depth + 1)


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.1f} KiB" if count < 1 << 20 else f"{count / 2**20:.1f} MiB"


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot read {path.name}: {error.strerror or error}", where=str(path), next_step="make the file readable"
    )
