"""What a run may still spend: counted in working time, never negative, refused with a reason."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.run.budget import Limits, hours_left, refusal, submissions_left, working_sec
from harness.run.state import PHASES, State, Submission
from harness.run.verdict import Verdict

LIMITS = Limits(submissions=2, hours=1.0, cooldown_sec=100.0)


def state(working: float = 0.0, *, last: float = 1000.0, running: bool = True, frozen: bool = False) -> State:
    """Return a state whose agent has worked for some seconds."""
    ledger = {**dict.fromkeys(PHASES, 0.0), "working": working}
    return State(events=1, last=last, ledger=ledger, agent="a", agent_running=running, frozen=frozen)


def closed(number: int, verdict: Verdict, working: float) -> Submission:
    """Return a submission with its verdict."""
    return Submission(number, f"r{number}", "", 0.0, working, verdict=verdict)


def test_the_running_stretch_counts_only_while_the_agent_works() -> None:
    assert working_sec(state(10), 1005) == 15
    assert working_sec(state(10, frozen=True), 1005) == 10
    assert working_sec(state(10, running=False), 1005) == 10
    assert working_sec(state(10), 900) == 10  # a clock that went back charges nobody


def test_hours_and_submissions_never_fall_below_zero() -> None:
    assert hours_left(LIMITS, state(1800), 1000) == 0.5
    assert hours_left(LIMITS, state(4000), 1000) == 0
    many = replace(state(), submissions=tuple(closed(n, Verdict.SCORED, 0) for n in range(1, 5)))
    assert submissions_left(LIMITS, many) == 0


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_no_measurement_is_free(verdict: Verdict) -> None:
    one = replace(state(), submissions=(closed(1, verdict, 0),))
    free = verdict is Verdict.NO_MEASUREMENT
    assert submissions_left(LIMITS, one) == (2 if free else 1)
    assert (refusal(LIMITS, one, 1000) is None) == free  # the cooldown holds after what counted


def test_reasons() -> None:
    assert refusal(LIMITS, state(), 1000) is None
    assert refusal(LIMITS, state(3600), 1000) == "the working hours of the budget are used up"
    spent = replace(state(), submissions=(closed(1, Verdict.SCORED, 0), closed(2, Verdict.INVALID, 0)))
    assert refusal(LIMITS, spent, 1000) == "all submissions of the budget are used up"
    cooling = replace(state(50), submissions=(closed(1, Verdict.SCORED, 20),))
    assert refusal(LIMITS, cooling, 1010) == ("wait 60 more working seconds: the cooldown between submissions is 100 s")
    assert refusal(LIMITS, cooling, 1070) is None


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e4), st.floats(0, 1e4))
def test_waiting_never_takes_a_permission_back_before_the_hours_end(
    worked: float, handed_in: float, first: float, more: float
) -> None:
    one = replace(state(worked), submissions=(closed(1, Verdict.SCORED, min(handed_in, worked)),))
    now, later = refusal(LIMITS, one, 1000 + first), refusal(LIMITS, one, 1000 + first + more)
    assert now is not None or later is None or "hours" in later
    if now is not None and "hours" in now:
        assert later == now
