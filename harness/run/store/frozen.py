"""Watching the frozen files: what a workspace has of them against what the image has.

A change is found by content; a large file that does not change is read once. The result never decides what a judge
sees, since frozen files come to it from the image: it only shows that somebody tried.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping

from harness.run.store.copying import is_past, signature
from harness.run.store.globs import Globs, Level
from harness.run.store.hostile import FILE_FLAGS, FOLDER_FLAGS, kind_of, printable
from harness.run.store.walker import (
    COMPILED,
    LITTER,
    MAX_DEPTH,
    MAX_SEEN,
    entries,
    is_gone,
    open_beneath,
    reading_failed,
)

MAX_REPORTED = 100
"""Most changes that are named; a workspace deleted whole need not fill the journal."""
CHUNK = 1 << 20


def scan_image(root: int, globs: Iterable[str]) -> dict[str, str]:
    """Return what the files are that match the globs: path -> size and sha256, or `-> target` for a link."""
    watch = FrozenWatch(globs, {})
    return {path: what for path, seen in watch.walk(root) if (what := watch.content(root, path, seen)) is not None}


class FrozenWatch:
    """Compares frozen files with those of the image, over and over, reading only what was touched."""

    def __init__(self, globs: Iterable[str], image_files: Mapping[str, str]) -> None:
        self._globs = Globs(globs)
        self._image = image_files
        self._known: dict[str, tuple[tuple[int, int, int, int], str]] = {}

    def changes(self, workdir: int) -> list[str]:
        """Return what differs from the image, in words; empty where nothing does.

        Called while work runs it reads ahead, so that the same call in the freeze is short.
        """
        found = dict(self.walk(workdir))
        self._known = {path: known for path, known in self._known.items() if path in found}
        paths = sorted(found.keys() | self._image.keys())
        changes = ((path, self._change(workdir, path, found.get(path))) for path in paths)
        changed = [f"{printable(path)}: {what}" for path, what in changes if what]
        more = len(changed) - MAX_REPORTED
        return changed if more <= 0 else [*changed[:MAX_REPORTED], f"and {more} more"]

    def walk(self, root: int) -> Iterator[tuple[str, os.stat_result]]:
        """Yield everything but folders that matches, litter left out."""
        if self._globs.level.alive:
            yield from _walk(root, "", self._globs.level, 1)

    def content(self, root: int, path: str, seen: os.stat_result) -> str | None:
        """Return what a file is: size and sha256, a link's target, or its kind; None where it vanished."""
        try:
            if stat.S_ISREG(seen.st_mode):
                return f"{seen.st_size} {self._digest(root, path, seen)}"
            if stat.S_ISLNK(seen.st_mode):
                return f"-> {_target(root, path)}"
        except OSError as error:
            return None if is_gone(error) else f"unreadable: {error.strerror}"
        return kind_of(seen.st_mode)

    def _change(self, root: int, path: str, seen: os.stat_result | None) -> str:
        before = self._image.get(path)
        if seen is None:
            return "removed" if before is not None else ""
        if before is None:
            return "added"
        if stat.S_ISREG(seen.st_mode) and not before.startswith(f"{seen.st_size} "):
            # Known without reading, which a giant sparse file would make long.
            return "changed"
        now = self.content(root, path, seen)
        if now == before:
            return ""
        if now is None:
            return "removed"
        return "changed" if stat.S_ISREG(seen.st_mode) else f"replaced by {kind_of(seen.st_mode)}"

    def _digest(self, root: int, path: str, seen: os.stat_result) -> str:
        known = self._known.get(path)
        if known is not None and known[0] == signature(seen):
            return known[1]
        fd = open_beneath(root, path, FILE_FLAGS)
        try:
            before = os.fstat(fd)
            started = time.time_ns()
            digest = hashlib.sha256()
            left = before.st_size
            while left > 0 and (chunk := os.read(fd, min(left, CHUNK))):
                digest.update(chunk)
                left -= len(chunk)
            steady = signature(os.fstat(fd)) == signature(before) == signature(seen)
        finally:
            os.close(fd)
        if steady and is_past(before.st_ctime_ns, started):
            self._known[path] = (signature(before), digest.hexdigest())
        return digest.hexdigest()


def _walk(fd: int, prefix: str, level: Level, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    folders = []
    try:
        for seen, entry in enumerate(entries(fd, level)):
            name = entry.name
            if name in LITTER or name.endswith(COMPILED):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif level.everything or level.match(name):
                yield prefix + name, entry.stat(follow_symlinks=False)
            if seen > MAX_SEEN:
                break
    except OSError as error:
        if not is_gone(error):
            raise reading_failed(prefix, error) from error
    for name in folders:
        below = level.enter(name)
        if below is None or depth >= MAX_DEPTH:
            continue
        try:
            deeper = os.open(name, FOLDER_FLAGS, dir_fd=fd)
        except OSError:
            # It is gone, or nobody may enter it: what the image has in it counts as removed.
            continue
        try:
            yield from _walk(deeper, f"{prefix}{name}/", below, depth + 1)
        finally:
            os.close(deeper)


def _target(root: int, path: str) -> str:
    folder, _, name = path.rpartition("/")
    if not folder:
        return os.readlink(name, dir_fd=root)
    fd = open_beneath(root, folder, FOLDER_FLAGS)
    try:
        return os.readlink(name, dir_fd=fd)
    finally:
        os.close(fd)
