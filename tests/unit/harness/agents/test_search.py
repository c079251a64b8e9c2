"""The search: what it proposes follows from seed and history alone, stays in its range, and gets better."""

import json
import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from room import Room

from harness.agents.base import Stopped, Try
from harness.agents.knobs import knob_names
from harness.agents.search import FIRST_STEP, RECORD, Parent, Search, propose, replay
from harness.errors import InputError
from harness.task.contract import Contract, Direction, Knob

KNOBS = [
    {"file": "a.json", "key": "rate", "range": [1e-4, 1.0], "scale": "log"},
    {"file": "a.json", "key": "width", "range": [1, 64], "integer": True},
    {"file": "run.sh", "pattern": r"--kind (\w+)", "choices": ["sgd", "adam", "lion"]},
]
FILES = {"a.json": '{"rate": 0.5, "width": 60, "stays": "Ünchanged"}\n', "run.sh": "train --kind sgd  # a comment\n"}


@pytest.fixture
def task(contract: dict[str, Any]) -> Callable[..., Contract]:
    """Return a maker of contracts with knobs."""

    def make(direction: str = "minimize", knobs: list[dict[str, Any]] = KNOBS) -> Contract:
        contract["metric"]["direction"] = direction
        contract["search"] = {"knobs": knobs}
        return Contract.model_validate_json(json.dumps(contract))

    return make


def bowl(files: Mapping[str, str]) -> tuple[str, float | None]:
    """Score best at rate 0.01, width 16 and adam."""
    values = json.loads(files["a.json"])
    kind = 0.0 if "--kind adam " in files["run.sh"] else 1.0
    return "scored", abs(math.log10(values["rate"] / 0.01)) + abs(values["width"] - 16) / 16 + kind


def test_uses_every_submission_and_gets_better(task: Callable[..., Contract]) -> None:
    room = Room(task(), FILES, bowl, submissions=60)
    start = bowl(FILES)[1]
    assert Search().run(room) == 0
    assert room.left == 0
    assert start is not None
    best = min(one.metric for one in room.tries if one.metric is not None)
    assert best < start / 3
    assert json.loads(room.files["a.json"])["stays"] == "Ünchanged"
    assert b"# a comment" in room.files["run.sh"]


def test_maximises_where_the_contract_says_so(task: Callable[..., Contract]) -> None:
    def hill(files: Mapping[str, str]) -> tuple[str, float | None]:
        verdict, metric = bowl(files)
        assert metric is not None
        return verdict, -metric

    down, up = Room(task(), FILES, bowl, submissions=30), Room(task("maximize"), FILES, hill, submissions=30)
    Search().run(down)
    Search().run(up)
    assert [one.message for one in down.tries] == [one.message for one in up.tries]


def test_the_first_message_holds_the_start_and_each_the_values(task: Callable[..., Contract]) -> None:
    room = Room(task(), FILES, bowl, submissions=3)
    Search().run(room)
    first, *others = [json.loads(one.message.rpartition(RECORD)[2]) for one in room.tries]
    names = knob_names(task().search.knobs)
    assert first["from"] == dict(zip(names, [0.5, 60, "sgd"], strict=True))
    assert all(list(each) == ["values"] and list(each["values"]) == names for each in others)


@settings(max_examples=40, deadline=None)
@given(die_after=st.integers(1, 11), seed=st.integers(0, 2**31), odd=st.integers(0, 3))
def test_a_new_engine_goes_on_exactly_where_a_dead_one_stopped(die_after: int, seed: int, odd: int) -> None:
    contract = Contract.model_validate_json(json.dumps(CONTRACT))

    def judge(files: Mapping[str, str]) -> tuple[str, float | None]:
        verdict, metric = bowl(files)
        assert metric is not None
        if odd and int(metric * 1000) % 4 == odd:
            return ("invalid", "violation", "no_measurement")[odd - 1], None
        return verdict, metric

    calm = Room(contract, FILES, judge, submissions=12, seed=seed)
    calm.left = 12
    run_bounded(calm)
    troubled = Room(contract, FILES, judge, submissions=12, seed=seed)
    troubled.die_after = die_after
    run_bounded(troubled)
    troubled.die_after = None
    run_bounded(troubled)
    assert [one.message for one in troubled.tries] == [one.message for one in calm.tries]
    assert troubled.files == calm.files


def run_bounded(room: Room) -> None:
    """Run the search, at most 40 submissions: a judge that never measures would go on for ever here."""
    room.die_after = room.die_after or 40
    try:
        Search().run(room)
    except Stopped:
        return


CONTRACT: dict[str, Any] = {
    "version": 1,
    "category": "test",
    "question": "Is it better?",
    "source": {"repository": "local", "commit": "none", "license": "MIT"},
    "metric": {"name": "loss", "direction": "minimize", "lowest": 0, "highest": 100},
    "evaluation": {"mode": "retrain"},
    "boundary": {"editable": ["**"], "deliver": ["**"]},
    "budget": {"hours": 1, "submissions": 12},
    "search": {"knobs": KNOBS},
}


def test_a_refusal_is_waited_out_and_the_same_candidate_handed_in(task: Callable[..., Contract]) -> None:
    calm, refused = Room(task(), FILES, bowl, submissions=4), Room(task(), FILES, bowl, submissions=4)
    refused.refuse = 5
    Search().run(calm)
    Search().run(refused)
    assert refused.waited >= 5
    assert [one.message for one in refused.tries] == [one.message for one in calm.tries]


def test_steps_follow_the_rule_of_one_success_in_five(task: Callable[..., Contract]) -> None:
    contract = task()
    values = {"x": 1.0}
    message = json.dumps({"values": values})
    start = Parent({"x": 0.0}, 10.0)
    won = replay(contract, Parent(start.values, 10.0), [Try(1, message, "scored", 9.0)])
    assert (won.values, won.metric) == (values, 9.0)
    assert won.step == pytest.approx(FIRST_STEP * math.exp(1 / 3))
    one_in_five = [Try(1, message, "scored", 9.0), *(Try(n, message, "scored", 9.5) for n in range(2, 6))]
    assert replay(contract, Parent(start.values, 10.0), one_in_five).step == pytest.approx(FIRST_STEP)
    for verdict in ("invalid", "violation"):
        lost = replay(contract, Parent(start.values, 10.0), [Try(1, message, verdict, None)])
        assert (lost.values, lost.step) == (start.values, pytest.approx(FIRST_STEP * math.exp(-1 / 12)))
    ignored = [Try(1, message, "no_measurement", None), Try(2, "not json", "scored", 1.0), Try(3, "[]", "scored", 1.0)]
    assert replay(contract, Parent(start.values, 10.0), ignored) == start
    tie = replay(contract, Parent(start.values, 10.0), [Try(1, message, "scored", 10.0)])
    assert tie.values == start.values
    many = [Try(n, message, "scored", 20.0) for n in range(100)]
    assert replay(contract, Parent(start.values, 10.0), many).step == 0.02
    rising = [Try(n, message, "scored", 9.0 - n * 0.01) for n in range(100)]
    assert replay(contract, Parent(start.values, 10.0), rising).step == 0.5
    assert contract.metric.direction is Direction.MINIMIZE


def test_a_known_baseline_must_be_beaten(task: Callable[..., Contract]) -> None:
    room = Room(task(), FILES, lambda files: ("scored", 5.0), submissions=6, baseline=4.0)
    Search().run(room)
    start = json.loads(room.tries[0].message.rpartition(RECORD)[2])["from"]
    for one in room.tries:
        values = json.loads(one.message.rpartition(RECORD)[2])["values"]
        assert 1 <= sum(values[name] != start[name] for name in values) <= 2


@given(
    st.floats(1e-9, 1e9),
    st.floats(1e-9, 1e9),
    st.sampled_from(["linear", "log"]),
    st.booleans(),
    st.one_of(st.none(), st.floats(-1e9, 1e9), st.text(max_size=3), st.booleans()),
    st.integers(0, 2**31),
    st.floats(0.02, 0.5),
)
def test_a_child_lies_in_the_range(
    a: float, b: float, scale: str, integer: bool, value: Any, seed: int, step: float
) -> None:
    low, high = min(a, b), max(a, b)
    if not low < high or (integer and math.ceil(low) > math.floor(high)):
        return
    knob = Knob.model_validate({"file": "x.json", "key": "k", "range": (low, high), "scale": scale, "integer": integer})
    child = propose((knob,), Parent({"x.json:k": value}, None, step), Random(seed))["x.json:k"]
    assert low <= child <= high
    assert not integer or isinstance(child, int)


def test_choices_change_to_another_one() -> None:
    knob = Knob(file="x", pattern="k (.)", choices=("a", "b", "c"))
    (name,) = knob_names((knob,))
    for seed in range(20):
        assert propose((knob,), Parent({name: "a"}), Random(seed))[name] in {"b", "c"}


@pytest.mark.parametrize("knobs", [None, []])
def test_a_task_without_knobs_is_refused(task: Callable[..., Contract], knobs: list[dict[str, Any]] | None) -> None:
    with pytest.raises(InputError, match="names no knobs") as caught:
        Search().check(None if knobs is None else task(knobs=knobs))
    assert caught.value.next_step


def test_a_knob_that_is_missing_is_named(task: Callable[..., Contract]) -> None:
    with pytest.raises(InputError, match=r"knob 'rate' is not found in a\.json"):
        Search().run(Room(task(), {**FILES, "a.json": "{}"}, bowl))
    with pytest.raises(InputError, match=r"knob file run\.sh cannot be read"):
        Search().run(Room(task(), {"a.json": FILES["a.json"]}, bowl))
