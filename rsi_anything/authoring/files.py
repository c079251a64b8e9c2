"""Reads the project's files for the image: filtered, without anything that leaves the project or hides in it."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from harness.errors import InputError
from harness.task.globs import any_matches
from rsi_anything.authoring.plan import PlannedFile

LEFT_OUT = frozenset(
    {
        *(".git", ".hg", ".svn", ".gitignore", ".gitattributes", ".gitmodules"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".ipynb_checkpoints"),
        *(".venv", "venv", "node_modules", ".idea", ".vscode", ".DS_Store", ".env", ".netrc"),
    }
)
"""Names that never come along: histories and caches, secrets, and files that decide what git keeps of a task."""
LEFT_OUT_SUFFIXES = (".pyc", ".pyo", ".egg-info")
ALWAYS = re.compile(r"(licen[cs]e|copying|notice)([.-].*)?\Z", re.IGNORECASE)
"""Names of what a licence obliges to keep, at the top of the project; `exclude` does not reach it."""
MOST_BYTES = 512 << 20
MOST_FILES = 50_000


def project_files(root: Path, exclude: Iterable[str]) -> dict[str, PlannedFile]:
    """Return the files of a project by path. Links are replaced by what they lead to, within the project.

    Raises InputError for a link that leaves the project, for what is no file, and for too much of all.
    """
    if not root.is_dir():
        raise InputError("there is no such project folder", where=str(root), next_step="name the project's folder")
    excluded = tuple(exclude)
    top = root.resolve()
    found: dict[str, PlannedFile] = {}
    total = 0
    try:
        for path, place in _walk(top, top, "", excluded, ()):
            content, mode = _read(place)
            found[path] = PlannedFile(content, mode)
            total += len(content)
            if total > MOST_BYTES or len(found) > MOST_FILES:
                reason = f"the project holds more than {MOST_BYTES >> 20} MiB or {MOST_FILES} files"
                raise _refused(path, reason, "exclude what the task does not need")
    except OSError as error:
        reason = f"the project cannot be read: {error.strerror or error}"
        raise InputError(reason, where=str(error.filename or root), next_step="check the file's permissions") from error
    return dict(sorted(found.items()))


def _walk(
    top: Path, folder: Path, base: str, exclude: tuple[str, ...], above: tuple[Path, ...]
) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        here = sorted(entries, key=lambda entry: entry.name)
    for entry in here:
        path = f"{base}{entry.name}"
        if _is_left_out(path, entry.name, exclude, folder=_is_folder(entry)):
            continue
        _check_name(path)
        place = _target(top, Path(entry.path), path) if entry.is_symlink() else Path(entry.path)
        if place.is_dir():
            if place in (folder, *above):
                raise _refused(path, "a link leads to a folder above itself", f"exclude {path}")
            yield from _walk(top, place, f"{path}/", exclude, (*above, folder))
        elif stat.S_ISREG(place.lstat().st_mode):
            yield path, place
        else:
            raise _refused(path, "this is neither a file nor a folder", f"exclude {path}")


def _is_left_out(path: str, name: str, exclude: tuple[str, ...], *, folder: bool) -> bool:
    if name in LEFT_OUT or name.endswith(LEFT_OUT_SUFFIXES):
        return True
    if folder:  # only a glob that ends in a name can mean the folder itself
        return any_matches((glob for glob in exclude if "*" not in glob.rpartition("/")[2]), path)
    if "/" not in path and ALWAYS.match(name):
        return False
    return any_matches(exclude, path)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in circles
        return False


def _target(top: Path, link: Path, path: str) -> Path:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise _refused(path, "a link leads nowhere", f"exclude {path}") from error
    if not target.is_relative_to(top):
        raise _refused(path, "a link leaves the project", f"exclude {path}, or put the file in its place")
    if any(part in LEFT_OUT for part in target.relative_to(top).parts):
        raise _refused(path, "a link leads to what does not come along", f"exclude {path}")
    return target


def _read(place: Path) -> tuple[bytes, int]:
    fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if info.st_size > MOST_BYTES:
            raise _refused(place.name, f"the file is larger than {MOST_BYTES >> 20} MiB", "exclude it")
        return file.read(), 0o755 if info.st_mode & 0o100 else 0o644


def _check_name(path: str) -> None:
    name = PurePosixPath(path).name
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _refused(ascii(path), "a file name is not UTF-8", "rename or exclude it") from error
    if len(encoded) > 200 or not name.isprintable() or "\\" in name:
        reason = "a file name is too long, or holds control characters or a backslash"
        raise _refused(ascii(path), reason, "rename or exclude it")


def _refused(path: str, reason: str, next_step: str) -> InputError:
    return InputError(f"{reason}: {path}", where=path, next_step=next_step)
