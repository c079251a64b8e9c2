"""Knobs: what is set is found again, and nothing else of a file changes."""

import json
import tomllib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.agents.knobs import get_value, knob_names, set_value
from harness.errors import InputError
from harness.task.contract import Knob

NUMBERS = st.one_of(
    st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False, width=64).map(lambda x: x + 0.0)
)
VALUES = st.one_of(NUMBERS, st.booleans(), st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20))
KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TREES = st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)


def knob(file: str = "recipe.toml", **fields: Any) -> Knob:
    """Return a knob with a wide range."""
    return Knob(file=file, **{"range": (-1e300, 1e300), **fields})


def same(a: Any, b: Any) -> bool:
    """Say whether two values are equal and of one kind."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(KEYS, st.dictionaries(KEYS, TREES, min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_a_key_in_json(document: dict[str, dict[str, Any]], data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(sorted(document)))
    key = data.draw(st.sampled_from(sorted(document[table])))
    value = data.draw(VALUES)
    one = knob("deep/config.json", key=f"{table}.{key}")
    after = set_value(json.dumps(document), one, value)
    assert same(get_value(after, one), value)
    document[table][key] = value
    assert json.loads(after) == document


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=6), st.data())
def test_a_key_in_toml_keeps_every_comment(table: dict[str, Any], data: st.DataObject) -> None:
    lines = [
        "# the recipe",
        "[train] # here",
        *(f"{key} = {_toml(each)}  # about {key}" for key, each in table.items()),
    ]
    key = data.draw(st.sampled_from(sorted(table)))
    value = data.draw(VALUES)
    one = knob(key=f"train.{key}")
    before = "\n".join([*lines, "[other]", "x = 1 # stays", ""])
    assume(tomllib.loads(before)["train"] == table)
    after = set_value(before, one, value)
    assert same(get_value(after, one), value)
    assert tomllib.loads(after) == {"train": {**table, key: value}, "other": {"x": 1}}
    changed = [(a, b) for a, b in zip(before.split("\n"), after.split("\n"), strict=True) if a != b]
    assert len(changed) <= 1
    assert all(f"# about {key}" in b for _, b in changed)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


@given(
    st.floats(min_value=1e-12, max_value=1e12).map(lambda x: float(f"{x:.4g}")),
    st.floats(min_value=1e-12, max_value=1e12),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_a_pattern_of_digits_and_dots(value: float, other: float, before: str, after: str) -> None:
    assume("rate" not in before + after)
    text = f"{before}\nrate = 0.5  # a comment\nother = {other!r}\n{after}"
    one = knob("train.py", pattern=r"^rate = ([0-9.]+)")
    changed = set_value(text, one, value)
    assert get_value(changed, one) == value
    again = set_value(changed, one, 0.5)
    assert again == text
    assert changed.replace(f"rate = {Decimal(repr(value)):f}", "") in {
        changed,
        text.replace("rate = 0.5", ""),
    }


@given(st.sampled_from([True, False]), st.sampled_from(["true", "false", "True", "False"]))
def test_a_truth_value_is_written_as_the_file_writes_them(value: bool, before: str) -> None:
    one = knob("run.yaml", pattern=r"use: (\w+)", range=None, choices=(True, False))
    after = set_value(f"use: {before}\n", one, value)
    assert get_value(after, one) is value
    assert after == f"use: {str(value).lower() if before.islower() else value}\n"


@given(st.lists(st.from_regex(r"[A-Za-z0-9_.-]{1,8}", fullmatch=True), min_size=1, unique=True), st.data())
def test_a_choice_is_found_again_as_it_was_given(choices: list[str], data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(choices))
    one = knob("train.sh", pattern=r"--kind ([\w.-]+)", range=None, choices=tuple(choices))
    after = set_value("python train.py --kind first --other 1\n", one, value)
    assert get_value(after, one) == value
    assert isinstance(get_value(after, one), str)
    assert after == f"python train.py --kind {value} --other 1\n"


def test_a_value_that_the_pattern_would_cut_is_refused() -> None:
    one = knob("train.py", pattern=r"^steps = (\d+)")
    assert set_value("steps = 10\n", one, 20.0) == "steps = 20\n"
    with pytest.raises(InputError, match=r"does not match the value 2\.5") as caught:
        set_value("steps = 10\n", one, 2.5)
    assert "widen the pattern" in caught.value.next_step


@pytest.mark.parametrize(
    ("file", "text", "where"),
    [
        ("a.json", '{"x": 1}', {"key": "y"}),
        ("a.json", '{"x": 1}', {"key": "x.y"}),
        ("a.json", '{"x": [1]}', {"key": "x.1"}),
        ("a.json", "[1]", {"key": "first"}),
        ("a.json", "no json", {"key": "x"}),
        ("a.json", "", {"key": "x"}),
        ("a.toml", "x = 1", {"key": "y"}),
        ("a.toml", "x = = 1", {"key": "x"}),
        ("a.toml", "x = 1", {"key": "x.y"}),
        ("a.py", "x = 1", {"pattern": "y = (.*)"}),
        ("a.py", "x = 1", {"pattern": r"x = (2)?"}),
    ],
)
def test_a_knob_that_is_not_there(file: str, text: str, where: dict[str, str]) -> None:
    one = knob(file, **where)
    for attempt in (lambda: get_value(text, one), lambda: set_value(text, one, 2)):
        with pytest.raises(InputError) as caught:
            attempt()
        assert file in caught.value.what
        assert caught.value.next_step


def test_a_key_in_another_kind_of_file_names_the_way_out() -> None:
    with pytest.raises(InputError, match="neither JSON nor TOML") as caught:
        get_value("x: 1", knob("a.yaml", key="x"))
    assert "pattern" in caught.value.next_step


def test_a_key_leads_through_lists() -> None:
    one = knob("a.json", key="layers.1.width")
    text = '{"layers": [{"width": 1}, {"width": 2}]}'
    assert get_value(text, one) == 2
    assert json.loads(set_value(text, one, 8)) == {"layers": [{"width": 1}, {"width": 8}]}


def test_names_tell_knobs_apart() -> None:
    knobs = (
        knob(key="train.rate"),
        knob("train.py", pattern=r"^(?:learning_rate)\s*=\s*(\S+)"),
        knob("train.py", pattern=r"--learning_rate (\S+)"),
        knob("train.py", pattern=r"= ([0-9]+)"),
    )
    names = knob_names(knobs)
    assert names[0] == "recipe.toml:train.rate"
    assert "learning_rate" in names[1]
    assert len(set(names)) == 4
