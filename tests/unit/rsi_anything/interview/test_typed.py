"""What is typed and what is shown undo each other, in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from rsi_anything.contract.fields import BY_ID, CATALOGUE
from rsi_anything.interview.typed import brief, parse, show


def test_every_example_can_be_typed() -> None:
    for field in CATALOGUE:
        options = field.options({}) if field.options else ()
        assert parse(field, show(field, field.example), options) == field.example, field.id


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12), max_size=5))
def test_any_list_of_texts_survives(items: list[str]) -> None:
    assert parse(BY_ID["boundary.editable"], show(BY_ID["boundary.editable"], items)) == items


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("boundary.editable", "a.py, b/**", ["a.py", "b/**"]),
        ("boundary.editable", "a.py\n\n b c.py \n", ["a.py", "b c.py"]),
        ("boundary.editable", '["a,b.py"]', ["a,b.py"]),
        ("boundary.editable", "[ab].py", ["[ab].py"]),
        ("boundary.exclude", "", []),
        ("compute.packages", "torch[cpu,x]==2.2.0, numpy==1.26.4", ["torch[cpu,x]==2.2.0", "numpy==1.26.4"]),
        ("compute.network", "Y", True),
        ("compute.network", "off", False),
        ("compute.budget.tokens", "2_000_000", 2_000_000),
        ("compute.budget.hours", "1e-1", 0.1),
        ("evaluation.on_invalid", "-3", -3.0),
        ("evaluation.on_invalid", "unscored", "unscored"),
        ("question.question", "一行\n二行\n", "一行\n二行"),
        ("compute.knobs", 'file = "a", key = "b", range = [0, 1]', [{"file": "a", "key": "b", "range": [0, 1]}]),
        (
            "compute.knobs",
            '[\n {file = "a", key = "b", choices = ["é"]},\n]',
            [{"file": "a", "key": "b", "choices": ["é"]}],
        ),
        ("compute.knobs", "[]", []),
    ],
)
def test_ways_of_typing(field: str, text: str, value: object) -> None:
    assert parse(BY_ID[field], text) == value


@pytest.mark.parametrize("text", ["retrain", "ret", "1", "RETRAIN"])
def test_choices_by_name_beginning_or_number(text: str) -> None:
    field = BY_ID["evaluation.mode"]
    assert parse(field, text, field.options({})) == "retrain"


@pytest.mark.parametrize(
    ("field", "text"),
    [("compute.gpus", "two"), ("compute.gpus", "1.5"), ("compute.network", "maybe"), ("compute.knobs", "lr 0.1")],
)
def test_what_cannot_be_meant(field: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(BY_ID[field], text)
    assert caught.value.next_step


def test_brief_is_one_safe_line() -> None:
    field = BY_ID["evaluation.adapter"]
    shown = brief(field, "import x\x1b[31m\n" + "y\n" * 9)
    assert "\x1b" not in shown
    assert shown.endswith("(10 lines)")
    assert brief(field, None) == "-"
    assert len(brief(BY_ID["source.title"], "x" * 500)) <= 72
