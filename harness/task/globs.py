"""The globs of a contract: `*` within one part of a path, `**` over any number of parts, everything else literal.

`a/**` names a and what lies below it, at any depth; `**/b` names b at any depth, the top included. This module compares
globs with each other; a walk through a tree follows its own compiled form of the same language.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

MOST_LENGTH = 1024
MOST_PARTS = 32
"""Size of a glob that is accepted; the comparisons below take time with the square of it."""


def matches(glob: str, path: str) -> bool:
    """Say whether the glob names a path relative to the workdir."""
    # The slash marks the parts of the path as literal, whatever characters are in them.
    parts = [f"/{part}" for part in path.split("/")]
    return _meet(glob.split("/"), parts, "**", lambda part, name: _pattern(part).match(name, 1) is not None)


@lru_cache(maxsize=1024)
def _pattern(part: str) -> re.Pattern[str]:
    first, *rest = (re.escape(piece) for piece in re.split(r"\*+", part))
    if not rest:
        return re.compile(first + r"\Z")
    *middle, end = rest
    # Atomic: the leftmost place is always as good as a later one, so hostile names cannot make the search explode.
    inner = "".join(rf"(?>.*?{piece})" for piece in middle)
    return re.compile(rf"{first}{inner}.*{end}\Z", re.DOTALL)


def any_matches(globs: Iterable[str], path: str) -> bool:
    """Say whether any of the globs names the path."""
    return any(matches(glob, path) for glob in globs)


def literal(glob: str) -> bool:
    """Say whether the glob names exactly one path."""
    return "*" not in glob


def contained(inner: str, outer: str) -> bool:
    """Say whether every path of `inner` is a path of `outer`."""
    return all(matches(outer, path) for path in _samples(inner))


def _samples(glob: str) -> list[str]:
    """Return paths that stand for all of a glob: its wildcards filled with characters that no other glob names."""
    samples = []
    for depth in range(3):
        for within in ("", "\x01", "\x01\x02"):
            below = ["\x03"] * depth
            parts = [p for part in glob.split("/") for p in (below if part == "**" else [_fill(part, within)])]
            if parts and all(parts):
                samples.append("/".join(parts))
    return samples


def _fill(part: str, within: str) -> str:
    return re.sub(r"\*+", within, part)


def overlap(first: str, second: str) -> bool:
    """Say whether some path is named by both globs."""
    return _meet(first.split("/"), second.split("/"), "**", lambda a, b: _meet(a, b, "*", str.__eq__))


def _meet(first: Sequence[str], second: Sequence[str], star: str, fits: Callable[[str, str], bool]) -> bool:
    """Say whether two sequences, in which `star` stands for any number of items, can stand for the same one."""
    below = [False] * len(second) + [True]
    for j in range(len(second) - 1, -1, -1):
        below[j] = second[j] == star and below[j + 1]
    for item in reversed(first):
        row = [False] * (len(second) + 1)
        row[-1] = item == star and below[-1]
        for j in range(len(second) - 1, -1, -1):
            other = second[j]
            if star in (item, other):
                row[j] = row[j + 1] or below[j]
            else:
                row[j] = fits(item, other) and below[j + 1]
        below = row
    return below[0]
