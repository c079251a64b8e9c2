"""What a run may still spend, and why a request is refused."""

from dataclasses import dataclass

from harness.run.state import State


@dataclass(frozen=True)
class Limits:
    """The bounds of a run, as its plan has them."""

    submissions: int
    hours: float
    cooldown_sec: float


def working_sec(state: State, now: float) -> float:
    """Return the agent's working time up to `now` (Unix seconds), the running stretch included."""
    running = max(0.0, now - state.last) if state.phase == "working" else 0.0
    return state.ledger["working"] + running


def hours_left(limits: Limits, state: State, now: float) -> float:
    """Return the working hours that are left, never below 0."""
    return max(0.0, limits.hours - working_sec(state, now) / 3600)


def submissions_left(limits: Limits, state: State) -> int:
    """Return how many submissions are left."""
    return max(0, limits.submissions - state.used_submissions)


def refusal(limits: Limits, state: State, now: float) -> str | None:
    """Return why a submission cannot be taken now, or None when it can."""
    if submissions_left(limits, state) == 0:
        return "all submissions of the budget are used up"
    if hours_left(limits, state, now) == 0:
        return "the working hours of the budget are used up"
    last = state.last_closed_working_sec
    if last is not None:
        rest = limits.cooldown_sec - (working_sec(state, now) - last)
        if rest > 0:
            return (
                f"wait {rest:.0f} more working seconds: the cooldown between submissions is {limits.cooldown_sec:g} s"
            )
    return None
