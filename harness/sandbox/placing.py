"""Writes files into a root that is not this process's own, following its links as a process in it would."""

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from harness.sandbox.context import Item

_MAX_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Look:
    """Owner and permissions that a COPY asks for; None leaves what the context has, owned by root."""

    uid: int = 0
    gid: int = 0
    mode: int | None = None


class Tree:
    """A root folder, given by a descriptor; absolute paths and links mean places below it."""

    def __init__(self, root: int, look: Look, *, can_own: bool) -> None:
        self.root = root
        self.look = look
        self.can_own = can_own

    def folder(self, path: str, *, make: bool = True) -> int:
        """Open a folder, making what is missing; FileNotFoundError or NotADirectoryError where that cannot be."""
        place = os.dup(self.root)
        opened = [place]
        names = [name for name in reversed(path.split("/")) if name]
        links = 0
        try:
            while names:
                name = names.pop()
                if name == ".":
                    continue
                if name == "..":
                    if len(opened) > 1:
                        os.close(opened.pop())
                    continue
                link = _link(name, opened[-1])
                if link is None:
                    opened.append(self._step(name, opened[-1], make=make))
                    continue
                links += 1
                if links > _MAX_LINKS:
                    raise NotADirectoryError(f"{path}: too many links")
                if link.startswith("/"):
                    while len(opened) > 1:
                        os.close(opened.pop())
                names.extend(part for part in reversed(link.split("/")) if part)
            return os.dup(opened[-1])
        finally:
            for held in opened:
                os.close(held)

    def _step(self, name: str, place: int, *, make: bool) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=place)
        except FileNotFoundError:
            if not make:
                raise
        os.mkdir(name, 0o755, dir_fd=place)
        held = os.open(name, _FOLDER, dir_fd=place)
        self._own(held)
        return held

    def _own(self, held: int) -> None:
        if self.can_own:
            os.fchown(held, self.look.uid, self.look.gid)

    def is_folder(self, path: str) -> bool:
        """Say whether a path is a folder, links followed."""
        try:
            os.close(self.folder(path, make=False))
        except OSError:
            return False
        return True

    def place(self, item: Item, folder: str) -> None:
        """Write one item below a folder; a file that is there is replaced, never written through."""
        target = f"{folder}/{item.target}"
        if item.is_folder:
            held = self.folder(target)
            os.fchmod(held, stat.S_IMODE(item.mode) if self.look.mode is None else self.look.mode | 0o111)
            self._own(held)
            os.close(held)
            return
        parent, _, name = target.rpartition("/")
        place = self.folder(parent)
        try:
            if _kind(name, place) not in {0, stat.S_IFDIR}:
                os.unlink(name, dir_fd=place)
            if item.link:
                os.symlink(item.link, name, dir_fd=place)
            else:
                self._file(item.source, stat.S_IMODE(item.mode), name, place)
        finally:
            os.close(place)

    def _file(self, source: Path, mode: int, name: str, place: int) -> None:
        wanted = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with source.open("rb") as reader, os.fdopen(os.open(name, wanted, 0o600, dir_fd=place), "wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            self._own(writer.fileno())
            os.fchmod(writer.fileno(), mode if self.look.mode is None else self.look.mode)
            info = os.fstat(reader.fileno())
            os.utime(writer.fileno(), ns=(info.st_mtime_ns, info.st_mtime_ns))


def _kind(name: str, place: int) -> int:
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0


def _link(name: str, place: int) -> str | None:
    return os.readlink(name, dir_fd=place) if _kind(name, place) == stat.S_IFLNK else None
