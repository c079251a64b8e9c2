"""The contract's globs, compiled once and followed folder by folder, so that a walk never enters what cannot match.

`*` and `?` stay within one part of a path, `**` stands for any number of parts, none included; all else is literal.
"""

import re
from collections.abc import Iterable
from functools import cached_property

_Position = tuple[int, int]
"""Which glob, and how many of its parts are behind us."""


class Globs:
    """A set of globs; `level` is where a walk through a tree begins."""

    def __init__(self, globs: Iterable[str]) -> None:
        self.globs = tuple(globs)
        self.parts = [glob.split("/") for glob in self.globs]
        self.patterns = [[_pattern(part) for part in parts] for parts in self.parts]
        self._levels: dict[frozenset[_Position], Level] = {}
        self.level = self.at({(glob, 0) for glob in range(len(self.globs))})

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The globs without a wildcard: exact paths of files."""
        return tuple(glob for glob in self.globs if not _is_wild(glob))

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that a glob names without a wildcard, as paths."""
        found = set()
        for parts in self.parts:
            for end in range(1, len(parts)):
                if _is_wild(parts[end - 1]):
                    break
                found.add("/".join(parts[:end]))
        return frozenset(found)

    def matches(self, path: str) -> bool:
        """Say whether a relative path matches any of the globs."""
        *folders, name = path.split("/")
        level: Level | None = self.level
        for folder in folders:
            level = level.enter(folder) if level is not None else None
        return level is not None and level.match(name)

    def at(self, positions: set[_Position]) -> "Level":
        """Return the one level that stands for these positions and for those that `**` lets follow at once."""
        todo = list(positions)
        while todo:
            glob, at = todo.pop()
            skipped = (glob, at + 1)
            if at < len(self.parts[glob]) and self.parts[glob][at] == "**" and skipped not in positions:
                positions.add(skipped)
                todo.append(skipped)
        key = frozenset(positions)
        if key not in self._levels:
            self._levels[key] = Level(self, key)
        return self._levels[key]


class Level:
    """What may lie in one folder of a walk."""

    def __init__(self, owner: Globs, positions: frozenset[_Position]) -> None:
        self._owner = owner
        self._open = [(g, at) for g, at in positions if at < len(owner.parts[g])]
        self.alive = bool(self._open)
        """Whether anything below can match."""

    @cached_property
    def everything(self) -> bool:
        """Whether every name here matches."""
        return any(self._part(at) == "**" and self._ends(at) for at in self._open)

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The only names that can lead on from here, or None where a wildcard makes it necessary to look."""
        parts = [self._part(at) for at in self._open]
        return None if any(_is_wild(part) for part in parts) else frozenset(parts)

    @cached_property
    def _file(self) -> re.Pattern[str]:
        ends = {self._part(at) for at in self._open if self._ends((at[0], at[1] + 1))}
        return re.compile("|".join(_regex(part) for part in sorted(ends)) or r"(?!)", re.DOTALL)

    def match(self, name: str) -> bool:
        """Say whether a file of that name in this folder matches."""
        return self.everything or self._file.fullmatch(name) is not None

    def enter(self, name: str) -> "Level | None":
        """Return the level of the folder of that name, or None where nothing below it can match."""
        moved: set[_Position] = set()
        for glob, at in self._open:
            if self._owner.parts[glob][at] == "**":
                moved.add((glob, at))
            elif self._owner.patterns[glob][at].fullmatch(name):
                moved.add((glob, at + 1))
        level = self._owner.at(moved) if moved else None
        return level if level is not None and level.alive else None

    def _part(self, at: _Position) -> str:
        return self._owner.parts[at[0]][at[1]]

    def _ends(self, at: _Position) -> bool:
        """Say whether a path may end at this position: nothing but `**` is left."""
        return all(part == "**" for part in self._owner.parts[at[0]][at[1] :])


def _is_wild(text: str) -> bool:
    return "*" in text or "?" in text


def _regex(part: str) -> str:
    """Return the regular expression of one part; `**` beside other characters means no more than `*`."""
    first, *others = [_literal(piece) for piece in re.split(r"\*+", part)]
    if not others:
        return first
    # What follows a star is looked for once and kept where it is first found: trying every place again would let an
    # agent's file name of 255 bytes hold us up for minutes.
    return "".join((first, *(f"(?>.*?{piece})" for piece in others[:-1]), ".*", others[-1]))


def _literal(piece: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in piece)


def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(_regex(part), re.DOTALL)
