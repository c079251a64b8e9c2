"""Lays a tree of files over a folder that somebody else may have filled with links: none of them is followed."""

import os
import shutil
import stat

from harness.errors import RsiError
from harness.sandbox.base import Placement

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 30


def lay_over(placement: Placement, workdir: int) -> None:
    """Remove what the placement removes below a folder, given by a descriptor, and copy its tree there."""
    for path in placement.remove:
        remove(workdir, path)
    source = os.open(placement.tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _copy(source, workdir)
    finally:
        os.close(source)


def _copy(source: int, target: int) -> None:
    for name in sorted(os.listdir(source)):
        info = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            below = os.open(name, _FOLDER, dir_fd=source)
            inner = _folder(target, name, stat.S_IMODE(info.st_mode))
            try:
                _copy(below, inner)
            finally:
                os.close(below)
                os.close(inner)
        elif stat.S_ISREG(info.st_mode):
            _file(source, target, name, info)


def _folder(target: int, name: str, mode: int) -> int:
    """Open a folder, making it, also in place of what is no folder."""
    try:
        return os.open(name, _FOLDER, dir_fd=target)
    except FileNotFoundError:
        pass
    except OSError:  # a link or a file is in its place
        os.unlink(name, dir_fd=target)
    os.mkdir(name, mode, dir_fd=target)
    held = os.open(name, _FOLDER, dir_fd=target)
    os.fchmod(held, mode)
    return held


def _file(source: int, target: int, name: str, info: os.stat_result) -> None:
    try:
        os.unlink(name, dir_fd=target)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        shutil.rmtree(name, dir_fd=target)
    reader = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
    try:
        writer = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            _bytes(reader, writer)
            os.fchmod(writer, stat.S_IMODE(info.st_mode))
            os.utime(writer, ns=(info.st_atime_ns, info.st_mtime_ns))
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _bytes(reader: int, writer: int) -> None:
    """Copy a file's bytes within the kernel, which shares blocks where the file system can."""
    try:
        while os.copy_file_range(reader, writer, _CHUNK):
            pass
    except OSError:  # two file systems, or one that cannot
        with os.fdopen(os.dup(reader), "rb") as source, os.fdopen(os.dup(writer), "wb") as sink:
            source.seek(0)
            sink.truncate(0)
            shutil.copyfileobj(source, sink, 1 << 20)


def remove(place: int, path: str) -> None:
    """Remove a path below a folder without following links; what is not there is no error."""
    *folders, name = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in folders or name == "..":
        raise RsiError(f"{path!r} leaves the workdir")
    held = os.dup(place)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=held)
            os.close(held)
            held = inner
        if stat.S_ISDIR(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=held)
        else:
            os.unlink(name, dir_fd=held)
    except (FileNotFoundError, NotADirectoryError):
        return
    finally:
        os.close(held)
