"""Copies a tree into the cache, whole or not at all, and remembers what it copied."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import RsiError
from rsi_anything.project.tree import Entry, LeftOut, Tree, resolve_links

_FORMAT = 2
_RECORD = "export.json"
ABOVE = "above"
_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class FileEntry:
    """A regular file of the project: path, bytes and the SHA-256 of its content."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Export:
    """A copied tree: `folder` holds it, `digest` names its content."""

    folder: Path
    files: tuple[FileEntry, ...]
    left_out: tuple[LeftOut, ...]
    digest: str
    above: tuple[FileEntry, ...]
    """Licence files of the root, where `folder` is below it; their paths begin with `/`, they lie beside the tree."""


def load(parent: Path, key: str) -> Export | None:
    """Return an export that was made before, or None where there is none that is still whole."""
    place = parent / key
    try:
        record: dict[str, Any] = json.loads((place / _RECORD).read_text(encoding="utf-8"))
        if record["format"] != _FORMAT:
            return None
        files = tuple(FileEntry(*item) for item in record["files"])
        left_out = tuple(LeftOut(*item) for item in record["left_out"])
        above = tuple(FileEntry(*item) for item in record["above"])
        tree = f"{place}/tree/"
        if any(os.lstat(tree + file.path).st_size != file.size for file in files):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing or damaged: it is made again
    return Export(place / "tree", files, left_out, record["digest"], above)


def export(tree: Tree, parent: Path, key: str) -> Export:
    """Copy the tree to `parent`/`key`."""
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=parent))
    try:
        scratch.chmod(0o755)
        files, left_out = _copy(tree, scratch / "tree")
        digest = _digest(files)
        above = _write_above(tree, scratch / ABOVE)
        place = parent / key
        _write_record(scratch / _RECORD, Export(scratch, tuple(files), tuple(left_out), digest, above))
        _move(scratch, place)
    except OSError as error:
        raise RsiError(
            f"the project could not be copied: {error.strerror or error}",
            where=str(error.filename or parent),
            next_step="Make room there, or set RSI_HOME to another folder.",
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Export(place / "tree", tuple(files), tuple(left_out), digest, above)


def _copy(tree: Tree, root: Path) -> tuple[list[FileEntry], list[LeftOut]]:
    root.mkdir()
    made = {str(root)}
    copied: dict[str, FileEntry] = {}
    left_out: list[LeftOut] = []
    for entry in tree.entries:
        if entry.target is not None:
            continue
        try:
            copied[entry.path], pointer = _write(tree, entry, str(root), made)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            left_out.append(LeftOut(entry.path, "its name clashes with another one"))
        except FileNotFoundError:
            left_out.append(LeftOut(entry.path, "its content could not be read"))
        else:
            if pointer:
                left_out.append(LeftOut(entry.path, "only a pointer to Git LFS is in the repository"))
    links, gone = resolve_links([entry for entry in tree.entries if entry.target is not None or entry.path in copied])
    for path, end in links.items():
        if not _link(root, path, end, copied):
            left_out.append(LeftOut(path, "its name clashes with another one"))
    files = [copied[path] for path in sorted(copied)]
    return files, sorted([*tree.left_out, *left_out, *gone])


def _link(root: Path, path: str, end: str, copied: dict[str, FileEntry]) -> bool:
    """Make a link that stays inside; a link to a file becomes that file, as snapshots and judges take no links."""
    place = root / path
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(place) or place.parent.resolve() != root.resolve() / os.path.dirname(path):  # noqa: PTH120 - text
            return False
        if end in copied:
            shutil.copy(root / end, place)
            copied[path] = FileEntry(path, copied[end].size, copied[end].sha256)
        else:
            place.symlink_to(os.path.relpath(root / end, place.parent))
    except (FileExistsError, NotADirectoryError):
        return False
    return True


def _write(tree: Tree, entry: Entry, root: str, made: set[str]) -> tuple[FileEntry, bool]:
    place = f"{root}/{entry.path}"
    folder = place.rpartition("/")[0]
    if folder not in made:
        Path(folder).mkdir(parents=True, exist_ok=True)
        made.add(folder)
    content = hashlib.sha256()
    size = 0
    pointer = False
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755 if entry.executable else 0o644)
    try:
        with os.fdopen(fd, "wb", buffering=0) as file:
            for chunk in tree.content(entry):
                pointer = pointer or (size == 0 and len(chunk) < 1024 and chunk.startswith(_POINTER))
                size += len(chunk)
                content.update(chunk)
                file.write(chunk)
    except FileNotFoundError:
        Path(place).unlink()
        raise
    return FileEntry(entry.path, size, content.hexdigest()), pointer


def _digest(files: list[FileEntry]) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.sha256} {file.path}\0".encode())
    return whole.hexdigest()


def _write_above(tree: Tree, folder: Path) -> tuple[FileEntry, ...]:
    folder.mkdir()
    for name, content in tree.above.items():
        (folder / name).write_bytes(content)
    listed = sorted(tree.above.items())
    return tuple(FileEntry(f"/{name}", len(content), hashlib.sha256(content).hexdigest()) for name, content in listed)


def _write_record(path: Path, made: Export) -> None:
    record = {
        "format": _FORMAT,
        "digest": made.digest,
        "files": [list(asdict(file).values()) for file in made.files],
        "left_out": [list(asdict(item).values()) for item in made.left_out],
        "above": [list(asdict(file).values()) for file in made.above],
    }
    with path.open("w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())


def _move(scratch: Path, place: Path) -> None:
    """Put the copy in its place; a damaged older one is moved away first, a whole one of another process stays."""
    for _ in range(3):
        try:
            scratch.rename(place)
        except OSError:
            if not place.exists():
                raise
            if load(place.parent, place.name) is not None:
                return
            shutil.rmtree(place, ignore_errors=True)
        else:
            return
    raise OSError(f"{place} is in the way")
