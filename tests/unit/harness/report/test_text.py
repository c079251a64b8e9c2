"""Text of others is made fit for terminal and table without losing a language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.numbers import age, decimals, duration, number, size, times
from harness.report.tables import Column, markdown, plain, width
from harness.report.text import cut, one_line, printable


@given(st.text())
def test_printable_text_holds_no_control_character(text: str) -> None:
    shown = printable(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in shown)
    shown.encode("utf-8")


def test_escape_sequences_lose_their_power_and_languages_stay() -> None:
    assert "\x1b" not in printable("\x1b[2J\x1b]0;owned\x07")
    for text in ("naïve Größe", "学習率を下げた", "خفضت معدل التعلم", "🙂 ok"):
        assert printable(text) == text


def test_direction_overrides_are_taken_out() -> None:
    assert printable("score \u202e0.1\u202c \u2066x\u2069") == "score 0.1 x"


@given(st.text(), st.integers(2, 40))
def test_a_line_is_never_longer_than_asked(text: str, wide: int) -> None:
    line = one_line(text, wide)
    assert len(line) <= wide
    assert "\n" not in line


def test_cut_says_that_it_cut() -> None:
    assert cut("short", 100) == "short"
    long = cut("ü" * 2_000_000, 4096)
    assert len(long.encode()) < 4200
    assert "2,000,000" in long


def test_columns_align_by_terminal_cells() -> None:
    table = plain((Column("name"), Column("n", right=True)), [["学習", "1"], ["abc", "20"]])
    head, first, second = table.splitlines()
    assert head == "name   n"
    assert first == "学習   1"
    assert second == "abc   20"
    assert width("学習") == 4


def test_markdown_shows_what_a_cell_holds() -> None:
    table = markdown((Column("message"),), [["a | b <script>alert(1)</script> `x` [y](z)\nnext"]])
    assert len(table.splitlines()) == 3
    assert "<script>" not in table
    assert "\\|" in table


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (3599.7, "1 h 00 min"),
        (187200, "2 d 04 h"),
        (725, "12 min 05 s"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_numbers() -> None:
    assert number(None) == "-"
    assert number(2.03149, 3) == "2.031"
    assert number(2.03149) == "2.0315"
    assert number(1.5e-9, 3) == "1.5e-09"
    assert decimals(0.0042) == 4
    assert decimals(42.0) == 0
    assert decimals(None) is None
    assert decimals(0.0) is None
    assert decimals(1e-9, 50_000.0) == 2
    assert (age(30), age(3 * 3600), age(-5)) == ("30 s", "3 h", "0 s")
    assert (size(10), size(2048), size(5 << 30)) == ("10 B", "2.0 KiB", "5.0 GiB")
    assert (times(3.14), times(9.96), times(1234)) == ("3.1", "10", "1,234")
