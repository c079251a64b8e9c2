"""Splits: deterministic, complete, without leaks; and errors that name file and line."""

import csv
import io
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from rsi_anything.authoring.holdout import Split, columns, split
from rsi_anything.contract.spec import Data

NAMES = "".join(f"name{number}\n" for number in range(50)).encode()
TABLE = "x,note,y\r\n" + "".join(f'{n},"a, ""b""\nc{n}",{n * 0.5}\r\n' for n in range(30))


def data(kind: str, **changes: Any) -> Data:
    return Data(**{"file": "data/file", "split": kind, "holdout": 0.3, "seed": 4, **changes})


def done(kind: str, content: bytes | str, *, numeric: bool = False, **changes: Any) -> Split:
    content = content.encode("utf-8") if isinstance(content, str) else content
    return split(data(kind, **changes), content, numeric=numeric)


def examples(parts: Split) -> list[Any]:
    return [json.loads(line) for line in parts.examples.decode("utf-8").split("\n")[:-1]]


def test_lines_are_on_one_side_or_the_other() -> None:
    parts = done("lines", NAMES)
    kept = parts.kept.decode().splitlines()
    assert sorted(kept + examples(parts)) == sorted(NAMES.decode().splitlines())
    assert [line for line in NAMES.decode().splitlines() if line in kept] == kept
    assert (parts.held_out, parts.scored, parts.left) == (15, 15, 35)


def test_the_choice_hangs_on_the_seed_and_the_lines_alone() -> None:
    backwards = b"".join(reversed(NAMES.splitlines(keepends=True)))
    assert examples(done("lines", NAMES)) == examples(done("lines", backwards))
    assert done("lines", NAMES) != done("lines", NAMES, seed=5)


def test_equal_lines_are_on_the_same_side_and_scored_once() -> None:
    content = NAMES + b"\n\n" + NAMES.replace(b"\n", b"\r\n")
    parts = done("lines", content)
    kept = set(parts.kept.decode().split())
    found = examples(parts)
    assert not kept & set(found)
    assert len(found) == len(set(found)) == 15
    assert parts.held_out == 30
    assert parts.kept.count(b"\r\n") == 35
    assert b"\n\n" in parts.kept


def test_at_most_so_many_examples_are_scored_but_all_are_held_out() -> None:
    parts = done("lines", NAMES, most=4)
    assert (parts.scored, parts.held_out, parts.left) == (4, 15, 35)
    assert set(examples(parts)) < set(examples(done("lines", NAMES)))


def test_rows_keep_their_own_text() -> None:
    parts = done("rows", TABLE, label="y", numeric=True)
    kept = parts.kept.decode("utf-8")
    assert kept.startswith("x,note,y\r\n")
    assert all(record in TABLE for record in kept.split("\r\n"))
    rows = list(csv.DictReader(io.StringIO(kept, newline="")))
    assert (len(rows), parts.left, parts.held_out) == (21, 21, 9)
    found = examples(parts)
    assert {int(row["x"]) for row in rows} | {int(each["row"]["x"]) for each in found} == set(range(30))
    for each in found:
        assert set(each["row"]) == {"x", "note"}
        assert float(each["label"]) == int(each["row"]["x"]) * 0.5
        assert each["row"]["note"] == f'a, "b"\nc{each["row"]["x"]}'


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_parts_the_header(delimiter: str) -> None:
    table = "\ufeff" + delimiter.join(["größe", "label"]) + "\n"
    table += "".join(f"{n}{delimiter}l{n % 2}\n" for n in range(10))
    found = examples(done("rows", table, label="label"))
    assert len(found) == 3
    assert all(set(each["row"]) == {"größe"} and each["label"] in {"l0", "l1"} for each in found)


def test_a_tail_makes_windows_that_do_not_overlap() -> None:
    text = "".join(chr(0x4E00 + number) for number in range(400))
    parts = done("tail", text, window=9, holdout=0.25)
    assert parts.kept.decode("utf-8") == text[:300]
    assert examples(parts) == [text[start : start + 10] for start in range(300, 400, 10)]
    few = done("tail", text, window=9, holdout=0.25, most=3)
    assert len(examples(few)) == 3
    assert set(examples(few)) < set(examples(parts))


@pytest.mark.parametrize(
    ("kind", "content", "changes", "words"),
    [
        ("lines", b"a\nb\nc\n", {}, "3 different lines are too few"),
        ("lines", b"", {}, "0 different lines"),
        ("lines", b"same\n" * 100, {}, "1 different lines"),
        ("lines", b"a\nb\n\xff\xfe\n", {}, r"line 3 of data/file is not UTF-8 \(byte 4\)"),
        ("lines", b"a\nb\nc\nd\n", {"holdout": 0.9}, "too few"),
        ("rows", b"x,y\n" + b"1,2\n3,4\n5,6\n" * 5, {"label": "z"}, "no column 'z'"),
        ("rows", b"", {"label": "y"}, "is empty"),
        ("rows", b"x,y\n1,2\n3\n", {"label": "y"}, "row 3 has 1 columns, the header has 2"),
        ("rows", b'x,y\n1,"2\n', {"label": "y"}, "is no CSV"),
        ("rows", b"x,x,y\n1,2,3\n", {"label": "y"}, "column 'x' twice"),
        ("tail", b"short", {"window": 9}, "at least 2 are needed"),
        ("tail", b"x" * 1000 + b"\xff", {}, "is not UTF-8"),
    ],
)
def test_what_cannot_be_split_is_named(kind: str, content: bytes, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        done(kind, content, **changes)
    assert caught.value.where == "data/file"
    assert caught.value.next_step


def test_labels_that_are_no_numbers_are_named_where_numbers_are_needed() -> None:
    table = "x,y\n" + "".join(f"{n},{'nan' if n % 2 else 'high'}\n" for n in range(20))
    assert done("rows", table, label="y").scored == 6
    with pytest.raises(InputError, match="no finite number"):
        done("rows", table, label="y", numeric=True)


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), min_size=12, max_size=60), st.integers()
)
def test_nothing_is_lost_and_nothing_is_on_both_sides(lines: list[str], seed: int) -> None:
    content = "\n".join(lines).encode("utf-8")
    try:
        parts = done("lines", content, seed=seed, most=1000)
    except InputError:
        assert len({line for line in lines if line}) < 12
        return
    kept = parts.kept.decode("utf-8").split("\n")
    assert set(kept) | set(examples(parts)) | {""} == set(lines) | {""}
    assert not (set(kept) & set(examples(parts)))


def test_a_large_file_takes_seconds() -> None:
    """No step may be slower than linear; the bound is far above what was measured (0.3 s)."""
    content = b"".join(b"%d some words of a line\n" % number for number in range(100_000))
    start = time.process_time()
    done("lines", content)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"\xef\xbb\xbfa,b;c,d\r\n1,2,3\n", ("a", "b;c", "d")),
        ("größe;价格\n1;2\n".encode(), ("größe", "价格")),
        (b"\xff,b\n", ()),
        (b"", ()),
    ],
)
def test_columns_are_read_off_the_first_line(content: bytes, names: tuple[str, ...]) -> None:
    assert columns(content) == names
