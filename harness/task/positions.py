"""Lines of the keys in a TOML text, which tomllib does not tell.

The text has been accepted by tomllib before, so this scanner looks only for where things are, not for mistakes.
"""

import re
import tomllib
from bisect import bisect_right

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the root down."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\n]*")


class Positions:
    """Where each key of a TOML text stands; lines count from 1."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._lines: dict[KeyPath, int] = {}
        self._lists: dict[KeyPath, int] = {}
        self._document()

    def line(self, path: KeyPath) -> int | None:
        """Return the line of the key, or of the nearest table around it, or None for the root."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return None

    def __contains__(self, path: KeyPath) -> bool:
        return path in self._lines

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found.group()

    def _take(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        return False

    def _note(self, path: KeyPath) -> None:
        self._lines.setdefault(path, bisect_right(self._breaks, self._at) + 1)

    def _document(self) -> None:
        table: KeyPath = ()
        while True:
            self._skip(_BLANK)
            before = self._at
            if self._take("[["):
                table = self._header(many=True)
            elif self._take("["):
                table = self._header(many=False)
            else:
                self._pair(table)
            if self._at == before:
                return

    def _header(self, *, many: bool) -> KeyPath:
        start = self._at
        keys = self._keys()
        after, self._at = self._at, start
        path: KeyPath = ()
        for place, key in enumerate(keys):
            path = (*path, key)
            if many and place == len(keys) - 1:
                self._lists[path] = self._lists.get(path, -1) + 1
            self._note(path)
            if path in self._lists:
                path = (*path, self._lists[path])
                self._note(path)
        self._at = after
        self._take("]]" if many else "]")
        return path

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            quoted = self._skip(_STRING)
            key = tomllib.loads(f"k = {quoted}")["k"] if quoted else self._skip(_BARE)
            if not key and not quoted:
                return keys
            keys.append(key)
            self._skip(_SPACE)
            if not self._take("."):
                return keys

    def _pair(self, table: KeyPath) -> None:
        start = self._at
        keys = self._keys()
        after, self._at = self._at, start
        path = table
        for key in keys:
            path = (*path, key)
            self._note(path)
        self._at = after
        if self._take("="):
            self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip(_SPACE)
        if self._take("["):
            self._list(path)
        elif self._take("{"):
            while True:
                self._skip(_BLANK)
                before = self._at
                if self._take("}"):
                    return
                self._pair(path)
                self._skip(_BLANK)
                self._take(",")
                if self._at == before:
                    return
        elif not self._skip(_STRING):
            self._skip(_SCALAR)

    def _list(self, path: KeyPath) -> None:
        index = 0
        while True:
            self._skip(_BLANK)
            before = self._at
            if self._take("]"):
                return
            self._note((*path, index))
            self._value((*path, index))
            self._skip(_BLANK)
            self._take(",")
            index += 1
            if self._at == before:
                return
