"""Reads the head of a data file and says what shape it has; nothing is ever unpickled or decompressed."""

import ast
import csv
import io
import json
import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

_MOST_LINES = 2000
_MOST_COLUMNS = 2000
_PICKLES = frozenset({".pkl", ".pickle", ".joblib", ".pt", ".pth", ".p"})


@dataclass(frozen=True)
class Shape:
    """What a file holds: its kind, columns where it has some, and a detail for people."""

    kind: str
    columns: tuple[str, ...] = ()
    detail: str = ""
    header: bool = False


def shape_of(path: Path, head: bytes, suffix: str, *, whole: bool) -> Shape:
    """Return the shape of a file from its first bytes."""
    known = _by_magic(path, head, suffix)
    if known is not None:
        return known
    text = head.decode("utf-8", "replace")
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    return _of_text(text, suffix, whole=whole)


def _by_magic(path: Path, head: bytes, suffix: str) -> Shape | None:
    """Return the shape of what is no text, or None."""
    shape: Shape | None = None
    if head.startswith(b"\x93NUMPY"):
        shape = Shape("npy", detail=_npy(head))
    elif head.startswith(b"PK\x03\x04"):
        shape = Shape("npz" if suffix == ".npz" else "archive", detail=_zip(path))
    elif suffix in _PICKLES or (head[:1] == b"\x80" and head[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}):
        shape = Shape("pickle", detail="not looked into: loading it would run what is in it")
    elif head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")) or suffix in {".tar", ".7z", ".rar"}:
        shape = Shape("archive", detail="compressed")
    elif head.startswith((b"PAR1", b"\x89HDF", b"ARROW1")):
        shape = Shape("table", detail={b"PAR1": "Parquet", b"\x89HDF": "HDF5"}.get(head[:4], "Arrow"))
    elif b"\0" in head[:8192]:
        shape = Shape("binary")
    return shape


def _npy(head: bytes) -> str:
    """Return dtype and shape from the header, which is a literal."""
    try:
        size = struct.unpack("<H", head[8:10])[0] if head[6] == 1 else struct.unpack("<I", head[8:12])[0]
        start = 10 if head[6] == 1 else 12
        header = ast.literal_eval(head[start : start + min(size, 4096)].decode("latin-1").strip())
        return f"{header['descr']} {header['shape']}"
    except (struct.error, IndexError, ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return "unreadable header"


def _zip(path: Path) -> str:
    """Return the first names in an archive, of which only the index is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [item.filename for item in archive.infolist()[:6]]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, struct.error, OverflowError):
        return "unreadable index"
    return ", ".join(name.encode("unicode_escape").decode("ascii")[:60] for name in names)


def _of_text(text: str, suffix: str, *, whole: bool) -> Shape:
    lines = text.split("\n")[:_MOST_LINES]
    filled = [line for line in lines if line.strip()]
    if not filled:
        return Shape("text", detail="empty")
    if suffix in {".jsonl", ".ndjson"} or (
        suffix != ".json" and filled[0].lstrip().startswith("{") and _is_json(filled[0])
    ):
        return Shape("jsonl", columns=_json_keys(filled[0]))
    if suffix == ".json":
        return Shape("json", columns=_json_keys(text) if whole else ())
    table = _table(filled, suffix)
    if table is not None:
        return table
    return Shape("lines" if _is_lines(lines, filled) else "text")


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _json_keys(text: str) -> tuple[str, ...]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if isinstance(data, list) and data:
        data = data[0]
    return tuple(data)[:_MOST_COLUMNS] if isinstance(data, dict) else ()


def _table(lines: list[str], suffix: str) -> Shape | None:
    """Return a table's shape where all of the first lines have the same columns."""
    delimiters = {".csv": ",;\t|", ".tsv": "\t"}.get(suffix, ",;\t" if suffix in {".data", ".dat", ".txt"} else "")
    for delimiter in delimiters:
        try:
            rows = list(csv.reader(io.StringIO("\n".join(lines[:50])), delimiter=delimiter))
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if not 2 <= width <= _MOST_COLUMNS or any(len(row) != width for row in rows[:-1]):
            continue
        if suffix not in {".csv", ".tsv"} and (len(rows) < 3 or not _mostly_numbers(rows[1:])):
            continue  # prose with commas is no table
        header = (
            len(rows) > 1 and not any(_is_number(cell) for cell in rows[0]) and all(cell.strip() for cell in rows[0])
        )
        names = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}[delimiter]
        columns = tuple(cell.strip() for cell in rows[0]) if header else tuple(str(index) for index in range(width))
        return Shape("csv", columns=columns, detail=f"{width} columns, separated by {names}", header=header)
    return Shape("csv", columns=(lines[0].strip(),), detail="1 column", header=True) if suffix == ".csv" else None


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", cell))


def _mostly_numbers(rows: list[list[str]]) -> bool:
    cells = [cell for row in rows[:20] for cell in row]
    return sum(map(_is_number, cells)) * 2 > len(cells)


def _is_lines(lines: list[str], filled: list[str]) -> bool:
    """Say whether each line is a thing of its own: short, of few words, none empty."""
    if len(filled) < 20 or len(lines) - len(filled) > 1 + len(lines) // 100:
        return False
    words = sorted(len(line.split()) for line in filled)
    return words[len(words) // 2] <= 3 and words[len(words) * 95 // 100] <= 6
