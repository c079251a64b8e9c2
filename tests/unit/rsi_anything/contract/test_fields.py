"""The catalogue and the specification agree, and every field carries what a person needs."""

import pytest

from rsi_anything.contract.fields import (
    BY_ID,
    CATALOGUE,
    GROUPS,
    ROUNDS,
    Kind,
    active,
    default_of,
    leaves,
    nearest,
    needs_answer,
    problem_of,
)


def test_catalogue_and_specification_have_the_same_leaves() -> None:
    assert {field.id for field in CATALOGUE} == {path for path, _, _ in leaves()} - {"version"}
    assert len(BY_ID) == len(CATALOGUE)


def test_groups_are_those_of_the_fields_in_the_same_order() -> None:
    used = list(dict.fromkeys(field.group for field in CATALOGUE))
    assert used == [group.id for group in GROUPS]
    for field in CATALOGUE:
        assert field.group.partition(".")[0] == field.round
        assert field.round in ROUNDS


@pytest.mark.parametrize("field", CATALOGUE, ids=lambda field: field.id)
def test_field_is_whole(field) -> None:
    assert field.ask.strip()
    assert field.why.endswith(".")
    assert field.label
    position = list(BY_ID).index(field.id)
    earlier = set(list(BY_ID)[:position])
    assert set(field.depends_on) <= earlier
    assert {condition.field for condition in field.when + (field.needed or ())} <= earlier
    assert problem_of(field, field.example, {"evaluation.kind": "custom"}) is None
    assert (field.options is not None) == (field.kind in {Kind.CHOICE, Kind.CHOICES, Kind.NUMBER_OR_WORD})
    default = default_of(field)
    if default is not None:
        assert problem_of(field, default, {}) is None


def test_conditions_follow_the_kind_of_evaluation() -> None:
    custom = {field.id for field in active({"evaluation.kind": "custom"})}
    assert "evaluation.evaluator" in custom
    assert "evaluation.adapter" in custom
    assert not needs_answer(BY_ID["evaluation.adapter"], {"evaluation.kind": "custom"})
    assert needs_answer(BY_ID["evaluation.adapter"], {"evaluation.kind": "predictions"})
    assert "evaluation.data.split" not in custom
    rows = {field.id for field in active({"evaluation.data.file": "a.csv", "evaluation.data.split": "rows"})}
    assert "evaluation.data.label" in rows
    assert "evaluation.data.window" not in rows
    assert not needs_answer(BY_ID["evaluation.data.file"], {"evaluation.kind": "custom"})
    assert needs_answer(BY_ID["evaluation.data.file"], {"evaluation.kind": "predictions"})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("source.name", "Not A Slug", "lower-case"),
        ("source.title", " ", "must not be empty"),
        ("source.title", "two\nlines", "one line"),
        ("source.title", "bell\x07", "control character"),
        ("source.title", "\udcff", "UTF-8"),
        ("source.track", "publik", "did you mean public"),
        ("compute.budget.hours", "2", "wants a number, got the text '2'"),
        ("compute.budget.hours", 0, "must be above 0"),
        ("compute.budget.hours", True, "wants a number"),
        ("compute.budget.submissions", 2.5, "wants a whole number"),
        ("compute.budget.tokens", 10**400, "too large"),
        ("evaluation.metric.lowest", float("nan"), "finite"),
        ("evaluation.metric.name", "val loss", "letters, digits"),
        ("evaluation.metric.name", "reward", "meaning of its own"),
        ("evaluation.on_invalid", "nothing", "none of unscored"),
        ("evaluation.feedback", ["metric", "secret"], "'secret' is none of"),
        ("boundary.editable", [], "must hold at least 1"),
        ("boundary.editable", ["../x"], "relative to the workdir"),
        ("boundary.editable", "train.py", "wants a list of texts"),
        ("compute.packages", ["numpy"], "pinned"),
        ("compute.knobs", [{"file": "a", "key": "b"}], "1: a knob needs exactly one of range and choices"),
        ("compute.knobs", [{"file": "a", "nope": 1}], "1 nope: is not known here"),
        ("baseline.floor", [{"file": "a"}], "1 pattern: is missing"),
        ("baseline.floor", [{"file": "a", "pattern": "lr = (", "value": "0"}], "1: pattern 'lr = (' is no regular"),
        ("baseline.floor", [{"file": "a", "pattern": "lr", "value": "0"}], "has 0 groups"),
        ("evaluation.data.holdout", 1.0, "must be below 1"),
        ("baseline.command", None, "needs an answer"),
    ],
)
def test_wrong_values_are_named(field, value, words) -> None:
    assert words in (problem_of(BY_ID[field], value, {}) or "")


def test_highest_is_compared_with_lowest() -> None:
    field = BY_ID["evaluation.metric.highest"]
    assert "above" in (problem_of(field, 1.0, {"evaluation.metric.lowest": 1}) or "")
    assert problem_of(field, 1.0, {"evaluation.metric.lowest": 0}) is None


RETRAINED = {
    "evaluation.mode": "retrain",
    "boundary.deliver": ["train.py"],
    "baseline.floor": [{"file": "recipe.toml", "pattern": "(x)", "value": "0"}],
}


def test_what_floor_edits_and_knobs_change_must_be_delivered() -> None:
    deliver, knobs = BY_ID["boundary.deliver"], BY_ID["compute.knobs"]
    turned = [{"file": "recipe.toml", "key": "lr", "range": [0.1, 1.0]}]
    assert "leaves out recipe.toml, which baseline.floor edits" in (problem_of(deliver, ["train.py"], RETRAINED) or "")
    assert "add it to boundary.deliver" in (problem_of(knobs, turned, RETRAINED) or "")
    for values in (RETRAINED | {"evaluation.mode": "direct"}, RETRAINED | {"boundary.deliver": ["*.toml"]}):
        assert problem_of(knobs, turned, values) is None
    assert problem_of(deliver, ["*.toml"], RETRAINED) is None
    adapter = [{"file": "rsi_adapter.py", "key": "lr", "range": [0.1, 1.0]}]
    assert problem_of(knobs, adapter, RETRAINED | {"evaluation.adapter": "def load(): ..."}) is None


@pytest.mark.parametrize("kind", ["next-token", "predictions", "custom"])
def test_examples_are_among_the_options_that_there_are(kind: str) -> None:
    values = {"evaluation.kind": kind}
    for field in CATALOGUE:
        if field.options and field.applies(values):
            assert problem_of(field, field.example_for(values), values) is None, field.id


def test_the_adapter_says_what_load_returns() -> None:
    hints = BY_ID["evaluation.adapter"].hints
    assert hints is not None
    assert ".predict(rows)" in " ".join(hints({"evaluation.kind": "predictions"}))
    assert ".vocabulary" not in " ".join(hints({"evaluation.kind": "predictions"}))
    assert ".logits(prefixes)" in " ".join(hints({"evaluation.kind": "next-token"}))
    assert all(word in " ".join(hints({})) for word in (".predict_proba(rows)", ".vocabulary", "custom:"))


def test_options_follow_the_kind() -> None:
    measure = BY_ID["evaluation.measure"]
    assert problem_of(measure, "nll", {"evaluation.kind": "next-token"}) is None
    assert problem_of(measure, "nll", {"evaluation.kind": "predictions"}) is not None


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("evaluation.metric.nam", "evaluation.metric.name"),
        ("metric.direction", "evaluation.metric.direction"),
        ("knobs", "compute.knobs"),
        ("zzz", None),
    ],
)
def test_nearest_field(wrong, right) -> None:
    assert nearest(wrong) == right


@pytest.mark.parametrize("text", ["更低的损失", "سؤال عن النموذج", "🧪🧠 café", "a\u200fb"])
def test_any_language_is_welcome(text) -> None:
    assert problem_of(BY_ID["source.title"], text, {}) is None
    assert problem_of(BY_ID["question.question"], text + "\n" + text, {}) is None
