"""Tables as aligned plain text and as Markdown; a cell's width is what a terminal shows, not its length."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.text import one_line


@dataclass(frozen=True)
class Column:
    """A column's title, and whether its cells stand at the right, as numbers do."""

    title: str
    right: bool = False
    most: int = 60
    """Longest cell in characters; longer ones are cut with an ellipsis."""


def width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return sum(_cells(character) for character in text)


def plain(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return the table for a terminal."""
    lines = [[column.title for column in columns], *_cells_of(columns, rows)]
    widths = [max(width(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join(_line(columns, line, widths) for line in lines)


def markdown(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return the table as Markdown; what a cell holds is shown, never interpreted."""
    lines = [
        [column.title for column in columns],
        ["---:" if column.right else "---" for column in columns],
        *([escape_markdown(cell) for cell in row] for row in _cells_of(columns, rows)),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def escape_markdown(text: str) -> str:
    """Return the text so that Markdown, also with HTML in it, shows it as it is."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{character}" if character in r"\`*_[]|~$#!@" else character for character in text)


def _cells_of(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[one_line(cell, column.most) for column, cell in zip(columns, row, strict=True)] for row in rows]


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for column, cell, wide in zip(columns, cells, widths, strict=True):
        gap = " " * (wide - width(cell))
        padded.append(gap + cell if column.right else cell + gap)
    return "  ".join(padded).rstrip()


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
