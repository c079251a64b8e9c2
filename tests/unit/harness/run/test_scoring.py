"""Scores: one formula both ways, the best with ties, and only what the contract shows."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.agents.feedback import MAX_MESSAGE
from harness.run.scoring import baseline_of, best_of, feedback_of, floor_of, score_of
from harness.run.state import Control, Judging, State, Submission
from harness.run.verdict import Finding, Verdict
from harness.task.contract import Contract, FeedbackPart, score

FINITE = st.floats(-1e6, 1e6)


def make(contract: dict[str, Any], **evaluation: Any) -> Contract:
    """Return a contract with another evaluation."""
    contract["evaluation"] |= evaluation
    return Contract.model_validate_json(json.dumps(contract))


def measured(baseline: float | None = None, floor: float | None = None) -> State:
    """Return a state whose controls were judged on this host."""
    found = [("baseline", baseline), ("floor", floor)]
    controls = [Control(role, Verdict.SCORED, value, 1.0) for role, value in found if value is not None]
    return State(controls=tuple(controls))


def closed(number: int, metric: float | None, verdict: Verdict = Verdict.SCORED, message: str = "") -> Submission:
    """Return a submission with its verdict."""
    judging = Judging(0.0, verdict, metric, None, message, "for the operator alone")
    return Submission(number, f"r{number}", "", 0.0, 0.0, judgings=(judging,), verdict=verdict, metric=metric)


@given(FINITE, FINITE, FINITE)
def test_the_floor_is_zero_and_the_baseline_one_both_ways(floor: float, baseline: float, metric: float) -> None:
    assume(abs(baseline - floor) > 1e-3)
    assert score(floor, floor=floor, baseline=baseline) == 0
    assert score(baseline, floor=floor, baseline=baseline) == pytest.approx(1)
    found = score(metric, floor=floor, baseline=baseline)
    mirrored = score(-metric, floor=-floor, baseline=-baseline)
    assert found is not None
    assert found == pytest.approx(mirrored)
    beyond = metric > baseline if baseline > floor else metric < baseline
    assert (found > 1) == beyond or found == pytest.approx(1)


@pytest.mark.parametrize(("floor", "baseline"), [(None, 1.0), (1.0, None), (None, None), (2.0, 2.0)])
def test_a_score_that_is_not_defined_is_none(floor: float | None, baseline: float | None) -> None:
    assert score(1.0, floor=floor, baseline=baseline) is None


def test_what_was_measured_on_this_host_counts_before_the_contract(contract: dict[str, Any]) -> None:
    task = make(contract)
    assert (baseline_of(task, State()), floor_of(task, State())) == (2.11, 3.3)
    assert (baseline_of(task, measured(2.0)), floor_of(task, measured(2.0))) == (2.0, 3.3)
    assert floor_of(task, measured(2.0, 3.0)) == 3.0
    failed = State(controls=(Control("baseline", Verdict.INVALID, None, 1.0),))
    assert baseline_of(task, failed) == 2.11
    assert (baseline_of(None, State()), floor_of(None, State())) == (None, None)


@pytest.mark.parametrize(("on_invalid", "expected"), [("unscored", None), (-0.5, -0.5), (0, 0.0)])
def test_each_verdict_has_its_score(contract: dict[str, Any], on_invalid: Any, expected: float | None) -> None:
    task, state = make(contract, on_invalid=on_invalid), measured(2.0, 3.0)
    assert score_of(task, state, Finding(Verdict.SCORED, 1.5)) == 1.5
    assert score_of(task, state, Finding(Verdict.INVALID)) == expected
    assert score_of(task, state, Finding(Verdict.VIOLATION)) == 0
    assert score_of(task, state, Finding(Verdict.NO_MEASUREMENT)) is None


def test_a_plain_task_s_score_is_its_reward() -> None:
    assert score_of(None, State(), Finding(Verdict.SCORED, 0.25)) == 0.25
    assert score_of(None, State(), Finding(Verdict.INVALID)) is None


@pytest.mark.parametrize(("direction", "best"), [("minimize", 2), ("maximize", 1)])
def test_the_first_of_the_best_is_the_best(contract: dict[str, Any], direction: str, best: int) -> None:
    contract["metric"]["direction"] = direction
    submissions = (
        closed(1, 3.0),
        closed(2, 1.0),
        closed(3, 1.0),
        closed(4, 3.0),
        closed(5, None, Verdict.VIOLATION),
        closed(6, None, Verdict.NO_MEASUREMENT),
        Submission(7, "open", "", 0.0, 0.0),
    )
    found = best_of(make(contract), submissions)
    assert found is not None
    assert found.number == best
    assert best_of(make(contract), submissions[4:]) is None


@pytest.mark.parametrize("hidden", list(FeedbackPart))
def test_a_hidden_part_is_not_told(contract: dict[str, Any], hidden: FeedbackPart) -> None:
    shown = [part.value for part in FeedbackPart if part is not hidden]
    task = make(contract, feedback=shown)
    one = replace(closed(1, 1.5, message="a word"), score=1.75)
    state = replace(measured(2.0, 3.0), submissions=(one,))
    told = feedback_of(task, state, one, submissions_left=3, hours_left=0.123456)
    values = {
        FeedbackPart.METRIC: told.metric,
        FeedbackPart.SCORE: told.score,
        FeedbackPart.BEST: told.best,
        FeedbackPart.BASELINE: told.baseline,
        FeedbackPart.MESSAGE: told.message or None,
    }
    assert [part for part, value in values.items() if value is None] == [hidden]
    assert (told.noise is None) == (hidden is FeedbackPart.BASELINE)
    assert (told.verdict, told.submissions_left, told.working_hours_left) == ("scored", 3, 0.1235)
    assert "operator" not in told.text() + told.as_json()


def test_a_message_of_any_size_is_cut(contract: dict[str, Any]) -> None:
    one = closed(1, None, Verdict.INVALID, "ü" * 5000)
    told = feedback_of(make(contract), State(submissions=(one,)), one, submissions_left=0, hours_left=0)
    assert len(told.message.encode()) <= MAX_MESSAGE
    assert set(told.message) == {"ü"}
