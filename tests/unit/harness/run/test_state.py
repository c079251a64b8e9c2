"""The fold: pure, the same whole or piecewise, and a ledger in which every second has its place."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run.state import PHASES, Kind, State, Status, fold, step
from harness.run.verdict import Verdict


class Story:
    """Writes legal events, as an engine would; time passes before each."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.now = 1_700_000_000.0

    def tell(self, kind: Kind, after: float = 1.0, **fields: Any) -> "Story":
        if self.events:
            self.now += after
        self.events.append({"n": len(self.events) + 1, "t": self.now, "kind": kind.value, **fields})
        return self

    def begin(self) -> "Story":
        self.tell(Kind.RUN_CREATED, plan="x").tell(Kind.ENGINE_STARTED, pid=1, resumed=False)
        self.tell(Kind.IMAGE_READY, digest="d", seconds=1.0, notes=["RUN was run"])
        self.tell(Kind.CONTROL_STARTED, role="solution", seed=1)
        self.tell(Kind.CONTROL_JUDGED, role="solution", verdict="scored", metric=2.0, seconds=3.0)
        return self.tell(Kind.AGENT_STARTED, agent="script", start=1)

    def open(self, number: int, after: float = 10.0) -> "Story":
        self.tell(Kind.SUBMISSION_OPENED, after, number=number, id=f"r-{number}", message="try")
        return self

    def freeze(self, number: int) -> "Story":
        self.tell(Kind.WORK_FROZEN, number=number)
        return self.tell(Kind.SNAPSHOT_TAKEN, number=number, snapshot="s", files=1, bytes=2, frozen_sec=0.1)

    def judge(self, number: int, verdict: str = "scored", metric: float | None = 1.5, attempt: int = 1) -> "Story":
        self.tell(Kind.JUDGING_STARTED, number=number, attempt=attempt, seed=1)
        return self.tell(
            Kind.JUDGING_ENDED, 5.0, number=number, attempt=attempt, verdict=verdict, metric=metric, message="m"
        )

    def close(self, number: int, verdict: str = "scored", metric: float | None = 1.5) -> "Story":
        return self.tell(Kind.SUBMISSION_CLOSED, number=number, verdict=verdict, metric=metric, score=metric)

    def thaw(self, number: int) -> "Story":
        return self.tell(Kind.WORK_THAWED, number=number)

    @property
    def state(self) -> State:
        return fold(self.events)


def one_round() -> Story:
    return Story().begin().open(1).freeze(1).judge(1).close(1).thaw(1)


def test_an_undisturbed_round() -> None:
    story = one_round().tell(Kind.AGENT_ENDED, 4.0, code=0, reason="done").tell(Kind.RUN_ENDED, status="completed")
    state = story.state
    assert state.status is Status.COMPLETED
    assert (state.used_submissions, state.open_submission, state.frozen) == (1, None, False)
    (one,) = state.submissions
    assert (one.verdict, one.metric, one.files, one.attempts) == (Verdict.SCORED, 1.5, 1, 1)
    assert one.working_sec == 10.0
    assert state.control is not None
    assert state.ledger == {
        "setup": 5.0,
        "working": 10.0 + 1.0 + 4.0,
        "paused": 1.0 + 1.0 + 1.0 + 1.0,
        "judging": 5.0,
        "down": 0.0,
        "closing": 1.0,
    }
    assert sum(state.ledger.values()) == state.wall_sec


def test_a_frozen_agent_is_not_charged_and_a_running_one_is_also_beside_a_judge() -> None:
    frozen = Story().begin().open(1).freeze(1).judge(1).state
    beside = Story().begin().open(1).freeze(1).thaw(1).judge(1).state
    assert frozen.ledger["working"] == 11.0
    assert beside.ledger["working"] == 11.0 + 1.0 + 5.0
    assert beside.ledger["judging"] == 0.0


def test_a_judge_beside_an_agent_that_ended_meanwhile() -> None:
    story = Story().begin().open(1).freeze(1).thaw(1).tell(Kind.JUDGING_STARTED, number=1, attempt=1, seed=1)
    story.tell(Kind.AGENT_ENDED, 2.0, code=0)
    assert story.state.phase == "judging"
    story.tell(Kind.JUDGING_ENDED, 7.0, number=1, attempt=1, verdict="scored", metric=1.0)
    assert story.state.ledger["judging"] == 7.0
    assert story.state.phase == "closing"


def test_the_time_without_an_engine_is_down_and_its_judge_is_gone() -> None:
    story = Story().begin().open(1).freeze(1).tell(Kind.JUDGING_STARTED, number=1, attempt=1, seed=1)
    assert story.state.phase == "judging"
    story.tell(Kind.ENGINE_STARTED, 100.0, pid=2, resumed=True)
    assert story.state.ledger["down"] == 100.0
    assert story.state.phase == "paused"
    assert story.state.engines == 2
    assert story.state.open_submission is not None


def test_the_time_after_the_end_is_down() -> None:
    story = one_round().tell(Kind.AGENT_ENDED, code=0).tell(Kind.RUN_ENDED, status="stopped", reason="asked")
    wall = story.state.wall_sec
    story.tell(Kind.REJUDGED, 1e6, number=1, verdict="scored", metric=1.4, score=1.1)
    assert story.state.wall_sec == wall  # judging again is no part of the run
    assert story.state.ledger["closing"] == 1.0
    story.tell(Kind.ENGINE_STARTED, pid=3, resumed=True)
    assert story.state.ledger["down"] == 1e6 + 1
    assert story.state.status is Status.RUNNING
    assert story.state.reason == ""


def test_judging_again_keeps_the_lineage_and_no_measurement_takes_nothing_back() -> None:
    story = one_round().tell(Kind.REJUDGED, number=1, verdict="scored", metric=1.2, score=1.3)
    assert story.state.submissions[0].metric == 1.2
    story.tell(Kind.REJUDGED, number=1, verdict="no_measurement", metric=None, score=None, message="host")
    (one,) = story.state.submissions
    assert (one.verdict, one.metric, one.score) == (Verdict.SCORED, 1.2, 1.3)
    assert [(judging.metric, judging.again) for judging in one.judgings] == [(1.5, False), (1.2, True), (None, True)]


@pytest.mark.parametrize(("verdict", "used"), [("scored", 1), ("invalid", 1), ("violation", 1), ("no_measurement", 0)])
def test_which_verdicts_use_up_a_submission(verdict: str, used: int) -> None:
    state = Story().begin().open(1).freeze(1).judge(1, verdict, None).close(1, verdict, None).state
    assert state.used_submissions == used
    assert (state.last_closed_working_sec is not None) == bool(used)


def test_requests_are_handled_once() -> None:
    story = Story().begin().open(1).tell(Kind.REQUEST_REFUSED, id="r-9", reason="cooldown")
    assert story.state.handled == {"r-1", "r-9"}
    assert story.state.refused == 1


def test_an_image_made_ready_again_repeats_no_note_and_loses_none() -> None:
    story = (
        Story().begin().tell(Kind.NOTE, text="mine").tell(Kind.IMAGE_READY, digest="d", notes=["RUN was run", "new"])
    )
    assert story.state.notes == ("RUN was run", "mine", "new")


def test_a_kind_from_the_future_is_an_error() -> None:
    with pytest.raises(ValueError):
        fold([{"n": 1, "t": 0.0, "kind": "magic"}])


def test_the_state_before_is_left_alone() -> None:
    events = one_round().events
    state = State()
    seen = []
    for event in events:
        before = state
        copy = (dict(before.ledger), before.submissions, before.phase)
        state = step(state, event)
        assert (dict(before.ledger), before.submissions, before.phase) == copy
        seen.append(state)
    assert seen[-1] == fold(events)


SECONDS = st.floats(min_value=0, max_value=1e5, allow_nan=False).map(lambda x: round(x, 6))


@st.composite
def stories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a run: rounds with retries, waiting for the judge or not, crashes at any event, ends and resumes."""
    story = Story().begin()
    for number in range(1, draw(st.integers(0, 4)) + 1):
        story.open(number, draw(SECONDS)).freeze(number)
        waiting = draw(st.booleans())
        if not waiting:
            story.thaw(number)
        attempts = draw(st.integers(1, 3))
        for attempt in range(1, attempts):
            story.judge(number, "no_measurement", None, attempt)
        verdict = draw(st.sampled_from([each.value for each in Verdict]))
        metric = draw(st.floats(-1e3, 1e3)) if verdict == "scored" else None
        story.judge(number, verdict, metric, attempts).close(number, verdict, metric)
        if waiting:
            story.thaw(number)
        if draw(st.booleans()):
            story.tell(Kind.TICK, draw(SECONDS))
    story.tell(Kind.AGENT_ENDED, draw(SECONDS), code=0).tell(Kind.RUN_ENDED, draw(SECONDS), status="completed")
    crash = draw(st.none() | st.integers(2, len(story.events)))
    if crash is not None:
        story.events[crash:] = []
        story.now = story.events[-1]["t"]
        story.tell(Kind.ENGINE_STARTED, draw(SECONDS), pid=2, resumed=True).tell(Kind.TICK, draw(SECONDS))
    return story.events


@settings(deadline=None)
@given(stories(), st.data())
def test_folded_piecewise_it_is_the_same(events: list[dict[str, Any]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    assert fold(events[cut:], fold(events[:cut])) == fold(events)


@settings(deadline=None)
@given(stories())
def test_the_ledger_adds_up_to_the_wall_time_after_every_event(events: list[dict[str, Any]]) -> None:
    state = State()
    for event in events:
        before = state
        state = step(state, event)
        assert set(state.ledger) == set(PHASES)
        assert all(state.ledger[phase] >= before.ledger[phase] for phase in PHASES)
        assert math.isclose(sum(state.ledger.values()), state.wall_sec, rel_tol=1e-9, abs_tol=1e-6)
        changed = [phase for phase in PHASES if state.ledger[phase] != before.ledger[phase]]
        assert len(changed) <= 1
    assert state.events == len(events)


@settings(deadline=None)
@given(stories())
def test_at_most_one_submission_is_open_and_numbers_run_from_one(events: list[dict[str, Any]]) -> None:
    state = fold(events)
    assert [one.number for one in state.submissions] == list(range(1, len(state.submissions) + 1))
    assert sum(one.verdict is None for one in state.submissions) <= 1
    assert {one.id for one in state.submissions} <= state.handled
