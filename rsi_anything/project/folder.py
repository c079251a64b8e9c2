"""A tree read from a plain folder: no git, no link followed, nothing but regular files."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from rsi_anything.project.tree import LICENCE, LONGEST_LICENCE, Entry, LeftOut, Limits, check_limits, shown, unusable

_CHUNK = 1024 * 1024
LITTER = frozenset(
    {
        ".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache",
        ".tox", ".nox", ".ipynb_checkpoints", ".DS_Store",
    }
)  # fmt: skip


class FolderTree:
    """The files of a folder: all of them but tools' litter, or just those in `only`."""

    def __init__(
        self, folder: Path, limits: Limits, only: Iterable[bytes] | None = None, root: Path | None = None
    ) -> None:
        """Read `folder`; `root` is the project's own folder where that is another one."""
        self.folder = folder
        self.above = licences_of(root) if root is not None and root != folder else {}
        self.left_out: list[LeftOut] = []
        self._seen = hashlib.sha256()
        found = self._walk(os.fsencode(folder), b"") if only is None else self._listed(only)
        self.entries: list[Entry] = sorted(check_limits(found, limits, str(folder)), key=lambda entry: entry.path)

    @property
    def fingerprint(self) -> str:
        """Return a digest of names, sizes and times: it changes whenever a file does, and needs no reading."""
        return self._seen.hexdigest()

    def content(self, entry: Entry) -> Iterator[bytes]:
        """Yield a file's content; a file that became something else meanwhile is not there."""
        yield from _content(f"{self.folder}/{entry.path}", entry.size)

    def _walk(self, folder: bytes, prefix: bytes) -> Iterator[Entry]:
        waiting = [(folder, prefix)]
        while waiting:
            here, before = waiting.pop()
            try:
                found = sorted(os.scandir(here), key=lambda item: item.name)
            except OSError as error:
                self.left_out.append(LeftOut(shown(before) or ".", f"it cannot be read: {error.strerror}"))
                continue
            for item in found:
                name = before + item.name
                if os.fsdecode(item.name) in LITTER or self._is_environment(item):
                    self.left_out.append(LeftOut(shown(name), "tools make it, it is not part of a project"))
                elif item.is_dir(follow_symlinks=False) and unusable(name) is None:
                    waiting.append((item.path, name + b"/"))
                else:
                    yield from self._entry(name, item.stat(follow_symlinks=False))

    @staticmethod
    def _is_environment(item: "os.DirEntry[bytes]") -> bool:
        return item.is_dir(follow_symlinks=False) and Path(os.fsdecode(item.path), "pyvenv.cfg").is_file()

    def _listed(self, names: Iterable[bytes]) -> Iterator[Entry]:
        real = os.fsencode(self.folder.resolve())
        for name in names:
            path = os.path.join(real, name)  # noqa: PTH118 - names are bytes here
            try:
                found = os.lstat(path)
            except OSError:
                continue  # deleted in the working tree
            if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):  # noqa: PTH120 - bytes
                self.left_out.append(LeftOut(shown(name), "a folder on its way is a link"))
            elif stat.S_ISDIR(found.st_mode):
                self.left_out.append(LeftOut(shown(name), "it is another repository, which is not fetched"))
            else:
                yield from self._entry(name, found)

    def _entry(self, name: bytes, found: os.stat_result) -> Iterator[Entry]:
        why = unusable(name)
        if why is None and not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            why = "it is neither a file nor a link"
        if why is not None:
            self.left_out.append(LeftOut(shown(name), why))
            return
        path = name.decode("utf-8")
        times = (found.st_size, found.st_mode, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
        self._seen.update(f"{path}\0{times}\0".encode())
        if stat.S_ISLNK(found.st_mode):
            yield Entry(path, 0, target=str((self.folder / path).readlink()))
        else:
            yield Entry(path, found.st_size, executable=bool(found.st_mode & 0o111))


def licences_of(folder: Path) -> dict[str, bytes]:
    """Return the licence files that lie directly in a folder."""
    found: dict[str, bytes] = {}
    for place in sorted(folder.iterdir()):
        size = place.lstat().st_size
        if LICENCE.match(place.name) and stat.S_ISREG(place.lstat().st_mode) and size <= LONGEST_LICENCE:
            found[place.name] = b"".join(_content(str(place), size))
    return found


def _content(path: str, size: int) -> Iterator[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise FileNotFoundError(str(error)) from error
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(path)
        left = size  # a file that grows while we read keeps the size it was counted with
        while left > 0 and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk
