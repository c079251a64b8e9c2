"""Where the keys of a TOML text stand: the standard library reads TOML, but tells no line numbers."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

_HEADER = re.compile(r"\s*\[(\[)?(?P<name>[^\[\]=]+)\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""\s*(?P<key>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_TOKEN = re.compile(r"""\"\"\"|'''|"(?:\\.|[^"\\])*"|'[^']*'|\#.*|[\[\]{}]""")


def key_lines(text: str) -> dict[str, int]:
    """Return the line, counted from 1, of every table and key of a valid TOML text, by dotted name.

    Keys within an inline value have the line of the key that holds it, which is not listed for them.
    """
    found: dict[str, int] = {}
    table = ""
    for number, line in _statements(text):
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if header and not key:
            table = _dotted(header["name"])
            found.setdefault(table, number)
        elif key:
            name = _dotted(key["key"])
            found.setdefault(f"{table}.{name}" if table else name, number)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines at which a statement begins: not those inside a multi-line text or an open bracket."""
    quote = ""
    depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not quote and depth == 0:
            yield number, line
            # A header's own brackets close on its line.
        quote, depth = _after(line, quote, depth)


def _after(line: str, quote: str, depth: int) -> tuple[str, int]:
    """Return the open multi-line quote and the bracket depth after a line."""
    position = 0
    while position < len(line):
        if quote:
            position = _closing(line, position, quote)
            if position < 0:
                return quote, depth
            quote = ""
            continue
        token = _TOKEN.search(line, position)
        if token is None:
            break
        position = token.end()
        if token[0] in {'"""', "'''"}:
            quote = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
    return quote, max(depth, 0)


def _closing(line: str, position: int, quote: str) -> int:
    """Return the position after the closing quote, or -1; up to two more quotes belong to the text."""
    while True:
        if quote == '"""' and line[position : position + 1] == "\\":
            position += 2
        elif line.startswith(quote, position):
            position += 3
            while line[position : position + 1] == quote[0]:
                position += 1
            return position
        elif position >= len(line):
            return -1
        else:
            position += 1


def _dotted(key: str) -> str:
    """Return a key as written in TOML as a plain dotted name."""
    try:
        data: Any = tomllib.loads(f"{key.strip()} = 0")
    except tomllib.TOMLDecodeError:
        return key.strip()
    parts = []
    while isinstance(data, dict):
        part, data = next(iter(data.items()))
        parts.append(part)
    return ".".join(parts)
