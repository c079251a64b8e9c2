"""Reading what hostile hands may have written: files by descriptor, text that is safe to show and to store."""

import os
import stat
import unicodedata
from pathlib import Path

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Unreadable(Exception):
    """A file is not what it must be; `str` says why. It never reaches a person as an error of ours."""


def open_folder(path: Path) -> int:
    """Open a folder that must not itself be a link; the caller closes the descriptor."""
    try:
        return os.open(path, FOLDER_FLAGS)
    except OSError as error:
        raise Unreadable(f"{path.name} is no readable folder: {error.strerror}") from error


def read_regular(folder: int, name: str, limit: int, *, cut: bool = False) -> bytes | None:
    """Return the content of a regular file of at most `limit` bytes, or None where there is no such name.

    With `cut` a longer file is read up to the limit instead of being refused.

    A link, FIFO, device, folder, a file with a second name or a longer one is Unreadable; none is followed and no read
    ever waits.
    """
    try:
        # Looked at before it is opened: opening a device can have an effect.
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        _check(seen, name, None if cut else limit)
        fd = os.open(name, FILE_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreadable(f"{printable(name)} cannot be read: {error.strerror}") from error
    try:
        opened = os.fstat(fd)
        _check(opened, name, None if cut else limit)
        if (opened.st_dev, opened.st_ino) != (seen.st_dev, seen.st_ino):
            raise Unreadable(f"{printable(name)} was replaced while it was read")
        content = _read(fd, limit + 1)
        if len(content) > limit and not cut:
            raise Unreadable(f"{printable(name)} grew beyond {limit} bytes while it was read")
        return content[:limit]
    except OSError as error:
        raise Unreadable(f"{printable(name)} cannot be read: {error.strerror}") from error
    finally:
        os.close(fd)


def kind_of(mode: int) -> str:
    """Return what a file is, in a person's words."""
    names = (
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for test, name in names if test(mode)), "a device")


def printable(name: str, limit: int = 200) -> str:
    """Return a file name as it can be shown on a terminal: controls and undecodable bytes escaped, long ones cut."""
    shown = "".join(_escaped(character) for character in name[: limit + 1])
    return shown if len(name) <= limit else shown[:limit] + "…"


def clean_text(text: str, limit: int) -> str:
    """Return text without control characters other than newline and tab, of at most `limit` bytes of UTF-8."""
    kept = "".join(c for c in text[:limit] if c in "\n\t" or unicodedata.category(c) != "Cc")
    encoded = kept.encode("utf-8", "replace")[:limit]
    # The only broken character there can be is the one that the cut went through.
    return encoded.decode("utf-8", "ignore")


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _check(seen: os.stat_result, name: str, limit: int | None) -> None:
    shown = printable(name)
    if not stat.S_ISREG(seen.st_mode):
        raise Unreadable(f"{shown} is {kind_of(seen.st_mode)}, not a regular file")
    if seen.st_nlink != 1:
        raise Unreadable(f"{shown} has {seen.st_nlink} names (hard links), it must have one")
    if limit is not None and seen.st_size > limit:
        raise Unreadable(f"{shown} holds {seen.st_size} bytes, at most {limit} are read")


def _read(fd: int, most: int) -> bytes:
    parts = []
    while most and (part := os.read(fd, min(most, 1 << 16))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)
