"""Hostile text stays text in every language that a task is written in."""

import json
import re
import shlex
import subprocess
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.task.contract import Metric
from rsi_anything.authoring.quoting import code, fence, heading, inline, json_text, number, quoted, sh, table, toml

texts = st.text(st.characters(codec="utf-8"), max_size=200)
HOSTILE = "a ``` b\n# c | {{ d }} {% e %} <!-- $(touch /tmp/x) `id` \\ \"'\n\r\tÄ\u2028"


@given(texts)
def test_inline_text_is_one_line_that_opens_nothing(text: str) -> None:
    shown = inline(text)
    assert "\n" not in shown
    assert shown == shown.strip()
    # every special sign is escaped, so no cell ends early, no span and no tag opens
    assert not re.search(r"(?<!\\)(?:\\\\)*[`|<]", shown)


@given(texts)
def test_code_spans_hold_their_text(text: str) -> None:
    shown = code(text)
    ticks = re.match(r"`+", shown)
    assert ticks is not None
    run = ticks[0]
    assert shown.endswith(run)
    inner = shown[len(run) : -len(run)]
    assert run not in re.findall(r"`+", inner)
    assert "\n" not in shown


@given(texts)
def test_fences_cannot_be_closed_from_within(text: str) -> None:
    lines = fence(text, "sh").split("\n")
    ticks = lines[0].removesuffix("sh")
    assert lines[-1] == ticks
    assert not any(ticks in line for line in lines[1:-1])


@given(texts)
def test_quotes_hold_every_line(text: str) -> None:
    assert all(line.startswith(">") for line in quoted(text).split("\n") if line)


@given(texts)
def test_shell_words_come_through(text: str) -> None:
    if "\0" not in text:
        assert shlex.split(sh(text)) == [text]


def test_the_shell_runs_nothing() -> None:
    done = subprocess.run(["sh", "-c", f"printf %s {sh(HOSTILE)}"], capture_output=True, check=True)
    assert done.stdout.decode("utf-8") == HOSTILE


@given(texts, texts)
def test_toml_comes_through(name: str, unit: str) -> None:
    assert tomllib.loads(f"x = {toml(name)}")["x"] == name
    metric = Metric(name="m", direction="minimize", unit=unit, lowest=-1e-7, highest=1e22)
    assert Metric(**tomllib.loads(table(metric))) == metric


@given(st.dictionaries(texts, texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False)))
def test_json_comes_through(value: dict[str, str]) -> None:
    assert json.loads(json_text(value)) == value


def test_a_title_about_canaries_is_no_comment() -> None:
    assert heading("Plain *title*").startswith("# ")
    assert not heading("A canary in the mine").startswith("#")


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (0.5, "0.5"), (1e6, "1000000"), (1e-7, "1e-07"), (1e300, "1e+300"), (3, "3")]
)
def test_numbers_are_written_as_people_do(value: float, shown: str) -> None:
    assert number(value) == shown
