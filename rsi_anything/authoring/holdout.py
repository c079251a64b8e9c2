"""Splits the data into what the workspace gets and what only the judge has.

The choice hangs on the seed and the examples' own text alone, so it is the same on every machine; examples that occur
twice are on one side with all their copies, so that nothing held out can be looked up.
"""

import codecs
import csv
import hashlib
import heapq
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.errors import InputError
from rsi_anything.contract.spec import Data

LEAST = 2
"""Held-out examples without which there is nothing to score."""
DELIMITERS = (",", ";", "\t", "|")
FIELD_BYTES = 16 << 20


@dataclass(frozen=True)
class Split:
    """Both parts of the data."""

    kept: bytes
    """The file as the workspace gets it; several files one after the other."""
    examples: bytes
    """The held-out examples that are scored, one JSON value a line."""
    held_out: int
    """How many examples the workspace lacks."""
    scored: int
    """How many of these are scored."""
    left: int
    """How many examples the workspace has: lines, rows or characters."""


def split(data: Data, content: bytes, *, numeric: bool) -> Split:
    """Return the two parts of a data file; `numeric` says that labels must be numbers.

    Raises InputError, with file and line, where the file cannot be split that way.
    """
    if data.split == "lines":
        return _split_lines(data, content)
    if data.split == "rows":
        return _split_rows(data, content, numeric=numeric)
    return _split_tail(data, content)


def split_classes(data: Data, files: Mapping[str, bytes]) -> tuple[dict[str, bytes], Split]:
    """Return each file as the workspace gets it, and the split of all: the lines of a file are of the class it names.

    A text that stands in several files is held out of all of them, and is one example for each.
    Raises InputError where the files cannot be split that way.
    """
    keyed = {path: _keyed_lines(data, content, path) for path, content in files.items()}
    chosen = _choose(data, {key for lines in keyed.values() for key, _ in lines if key is not None}, "lines")
    scored = set(heapq.nsmallest(data.most, chosen))
    examples: dict[tuple[bytes, str], dict[str, object]] = {}
    for path, lines in keyed.items():
        name = PurePosixPath(path).stem
        if all(key is None or key in chosen for key, _ in lines):
            raise _wrong(data, f"no line of {path} would be left", "hold out less, or choose another seed")
        for key, line in lines:
            if key in scored:
                row = {"text": line.rstrip(b"\r\n").decode("utf-8")}
                examples.setdefault((key, name), {"row": row, "label": name})
    if len({name for _, name in examples}) < LEAST:
        raise _wrong(data, f"the held-out lines are of fewer than {LEAST} classes", "name a glob of several files")
    kept = {path: [line for key, line in lines if key not in chosen] for path, lines in keyed.items()}
    content = {path: b"".join(lines) for path, lines in kept.items()}
    left = sum(map(len, kept.values()))
    held_out = sum(map(len, keyed.values())) - left
    ordered = [examples[key] for key in sorted(examples)]
    return content, Split(b"".join(content.values()), _jsonl(ordered), held_out, len(ordered), left)


def _keyed_lines(data: Data, content: bytes, path: str) -> list[tuple[bytes | None, bytes]]:
    """Return each line with its end, and with the key of its text; an empty one has none."""
    lines = content.splitlines(keepends=True) if b"\r" in content else content.split(b"\n")
    if b"\r" not in content:
        lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    _check_text(data, content, path)
    return [(_rank(data.seed, line.rstrip(b"\r\n")) if line.strip(b"\r\n") else None, line) for line in lines]


def _split_lines(data: Data, content: bytes) -> Split:
    keyed = _keyed_lines(data, content, data.file)
    keys, lines = [key for key, _ in keyed], [line for _, line in keyed]
    chosen = _choose(data, {key for key in keys if key is not None}, "lines")
    scored = set(heapq.nsmallest(data.most, chosen))
    examples: dict[bytes, str] = {}
    kept = []
    for key, line in zip(keys, lines, strict=True):
        if key not in chosen:
            kept.append(line)
        elif key in scored:
            examples.setdefault(key, line.rstrip(b"\r\n").decode("utf-8"))
    ordered = [examples[key] for key in sorted(examples)]
    return Split(b"".join(kept), _jsonl(ordered), len(lines) - len(kept), len(ordered), len(kept))


def _split_rows(data: Data, content: bytes, *, numeric: bool) -> Split:
    text = _check_text(data, content)
    records = _records(data, text)
    head_text, head = next(records)
    columns = [name.removeprefix("\ufeff") for name in head]
    label = _label_column(data, columns)
    keys = [_row_key(data, columns, line, cells) for line, (_, cells) in enumerate(records, 2)]
    chosen = _choose(data, set(keys), "rows")
    scored = set(heapq.nsmallest(data.most, chosen))
    examples: dict[bytes, list[str]] = {}
    kept = [head_text]
    # Read once more rather than kept: the cells of a large table take ten times its size.
    records = _records(data, text)
    next(records)
    for key, (raw, cells) in zip(keys, records, strict=True):
        if key not in chosen:
            kept.append(raw)
        elif key in scored:
            examples[key] = cells
    ordered = [_example(data, columns, label, examples[key], numeric=numeric) for key in sorted(examples)]
    left = len(kept) - 1
    return Split("".join(kept).encode("utf-8"), _jsonl(ordered), len(keys) - left, len(ordered), left)


def _row_key(data: Data, columns: list[str], line: int, cells: list[str]) -> bytes:
    if len(cells) != len(columns):
        reason = f"row {line} has {len(cells)} columns, the header has {len(columns)}"
        raise _wrong(data, reason, "mend the row, or leave it out")
    return _rank(data.seed, "\0".join(cells).encode("utf-8"))


def _records(data: Data, text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each record with its own text, quoting and line ends untouched; blank lines are no records."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    delimiter = _delimiter(data, text)
    before = csv.field_size_limit(FIELD_BYTES)
    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            raw = "".join(taken)
            taken.clear()
            if cells:
                yield raw, cells
    except csv.Error as error:
        raise _wrong(data, f"line {reader.line_num} is no CSV: {error}", "mend the line") from error
    finally:
        csv.field_size_limit(before)


def _delimiter(data: Data, text: str) -> str:
    """Return the delimiter that makes the most columns of the header, with the label's among them."""
    head = next(io.StringIO(text), "").removeprefix("\ufeff")
    if not head.strip():
        raise _wrong(data, "the file is empty", "name the file that holds the rows")
    headers = {each: next(csv.reader([head], delimiter=each), []) for each in DELIMITERS}
    fitting = [each for each, names in headers.items() if data.label is None or data.label in names]
    if not fitting:
        shown = ", ".join(max(headers.values(), key=len)[:12])
        raise _wrong(data, f"the header has no column {data.label!r}", f"name one of: {shown}")
    return max(fitting, key=lambda each: len(headers[each]))


def columns(content: bytes) -> tuple[str, ...]:
    """Return the columns that the first line of a table names; none where it is no header."""
    head = content.partition(b"\n")[0].rstrip(b"\r")
    try:
        text = head.decode("utf-8").removeprefix("\ufeff")
        headers = [next(csv.reader([text], delimiter=each), []) for each in DELIMITERS]
    except (UnicodeDecodeError, csv.Error):
        return ()
    widest: list[str] = max(headers, key=len)
    return tuple(widest)


def _label_column(data: Data, columns: list[str]) -> int | None:
    doubled = sorted({name for name in columns if columns.count(name) > 1})
    if doubled:
        raise _wrong(data, f"the header has the column {doubled[0]!r} twice", "rename one of them")
    return None if data.label is None else columns.index(data.label)


def _example(
    data: Data, columns: list[str], label: int | None, cells: list[str], *, numeric: bool
) -> dict[str, object]:
    if label is None:
        return {"row": dict(zip(columns, cells, strict=True))}
    if numeric:
        try:
            usable = math.isfinite(float(cells[label]))
        except ValueError:
            usable = False
        if not usable:
            reason = f"a row has {cells[label][:40]!r} in column {data.label!r}, which is no finite number"
            raise _wrong(data, reason, "mend the row, or choose a measure for labels")
    row = {name: cell for place, (name, cell) in enumerate(zip(columns, cells, strict=True)) if place != label}
    return {"row": row, "label": cells[label]}


def _split_tail(data: Data, content: bytes) -> Split:
    text = _check_text(data, content)
    cut = len(text) - max(1, round(len(text) * data.holdout))
    tail = text[cut:]
    # One character more than is scored: the first one is given.
    width = data.window + 1
    starts = range(0, len(tail) - width + 1, width)
    if len(starts) < LEAST or cut < 1:
        reason = f"the last {len(tail)} characters make {len(starts)} windows of {width}"
        raise _wrong(data, f"{reason}, at least {LEAST} are needed", "hold out more, or use a shorter window")
    ranked = heapq.nsmallest(data.most, starts, key=lambda start: _rank(data.seed, str(start).encode()))
    examples = [tail[start : start + width] for start in sorted(ranked)]
    return Split(text[:cut].encode("utf-8"), _jsonl(examples), len(tail), len(examples), cut)


def _choose(data: Data, keys: set[bytes], what: str) -> frozenset[bytes]:
    count = round(len(keys) * data.holdout)
    if count < LEAST or count >= len(keys):
        reason = f"{len(keys)} different {what} are too few to hold out {data.holdout:g} of them"
        raise _wrong(data, reason, f"at least {LEAST} must be held out and one must be left")
    return frozenset(sorted(keys)[:count])


def _rank(seed: int, text: bytes) -> bytes:
    return hashlib.blake2b(b"%d\0%s" % (seed, text), digest_size=16).digest()


def _check_text(data: Data, content: bytes, path: str | None = None) -> str:
    try:
        text = codecs.decode(content, "utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"line {line} of {path or data.file} is not UTF-8 (byte {error.start})"
        raise _wrong(data, reason, "convert the file to UTF-8") from error
    assert isinstance(text, str)
    return text


def _jsonl(values: list[object] | list[str] | list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode("utf-8")


def _wrong(data: Data, reason: str, next_step: str) -> InputError:
    return InputError(f"the data cannot be split: {reason}", where=data.file, next_step=next_step)
