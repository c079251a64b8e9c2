"""Measured numbers live in task.toml, which is rendered: they are set aside for comparing and kept when rewriting."""

import re

FILE = "task.toml"
_REFERENCE = re.compile(rb"^\[metadata\.rsi\.reference\][ \t]*(?:#[^\n]*)?\n(?:(?!\[)[^\n]*\n)*", re.MULTILINE)


def without(path: str, content: bytes) -> bytes:
    """Return a file without its measured table."""
    if path != FILE:
        return content
    found = _REFERENCE.search(content)
    if found is None:
        return content
    before, after = content[: found.start()].rstrip(b"\n"), content[found.end() :].lstrip(b"\n")
    return before + (b"\n\n" + after if after else b"\n")


def carry(path: str, old: bytes, new: bytes) -> bytes:
    """Return the new content with the old one's measured table; its digest of the tests tells whether it is stale."""
    found = _REFERENCE.search(old) if path == FILE else None
    if found is None:
        return new
    if without(path, old) == new:
        return old
    return new.rstrip(b"\n") + b"\n\n" + found[0].strip(b"\n") + b"\n"
