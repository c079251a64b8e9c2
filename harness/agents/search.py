"""A search without a model: varies the contract's knobs, keeps what scores better, uses every submission.

An evolution strategy with one parent and one child, (1+1)-ES with the 1/5 success rule (Rechenberg 1973): each
child changes one or two knobs of the best candidate so far; steps grow after a success and shrink after failures.
Every decision follows from the seed and the journal, so a new engine goes on exactly where a dead one stopped.
"""

import json
import math
from dataclasses import dataclass
from random import Random
from typing import Any

from harness.agents.base import Try, Workspace
from harness.agents.knobs import Values, knob_names, read_values, write_values
from harness.errors import InputError
from harness.task.contract import Contract, Direction, Knob

RETRY_SEC = 1.0
"""How long to wait after a refusal, which is mostly the cooldown's."""

RECORD = " | values: "
"""Stands in a message between the words for people and what the next engine reads."""

FIRST_STEP = 0.25
"""Standard deviation of the first step, as a part of a knob's range."""


@dataclass
class Parent:
    """The best values so far, and how far the next child may jump."""

    values: Values
    metric: float | None = None
    step: float = FIRST_STEP


class Search:
    """Uses all submissions of the budget."""

    name = "search"
    needs_solution = False

    def check(self, contract: Contract | None) -> None:
        """Refuse a task that names no knobs."""
        if contract is None or not contract.search.knobs:
            raise InputError(
                "agent search has nothing to vary: the contract names no knobs",
                where="task.toml, [[metadata.rsi.search.knobs]]",
                next_step="add knobs there, or choose another agent",
            )

    def run(self, work: Workspace) -> int | None:
        """Propose, hand in, keep the better, until the budget is spent."""
        contract = work.contract
        assert contract is not None  # check() saw to it
        knobs = contract.search.knobs
        start = read_values(work, knobs)
        history = work.history()
        if history:
            start = _values_of(history[0], "from") or start
        while work.submissions_left() > 0:
            history = work.history()
            parent = replay(contract, Parent(start, work.baseline), history)
            child = propose(knobs, parent, Random(f"{work.seed}:{len(history)}"))  # noqa: S311  a search, no secret
            write_values(work, knobs, child)
            record = {"from": start, "values": child} if not history else {"values": child}
            if work.submit(f"{_changes(parent.values, child)}{RECORD}{json.dumps(record, ensure_ascii=False)}") is None:
                work.wait(RETRY_SEC)
        return 0


def _changes(before: Values, after: Values) -> str:
    """Return in words what a child changes of its parent."""
    return ", ".join(
        f"{name} {before.get(name)} to {value}" for name, value in after.items() if before.get(name) != value
    )


def _values_of(one: Try, key: str) -> Values | None:
    try:
        found: Any = json.loads(one.message.rpartition(RECORD)[2]).get(key)
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) else None


def replay(contract: Contract, parent: Parent, history: list[Try]) -> Parent:
    """Return the parent after all submissions of the journal, beginning with the start values."""
    minimize = contract.metric.direction is Direction.MINIMIZE
    for one in history:
        if one.verdict == "no_measurement":
            continue
        values = _values_of(one, "values")
        if values is None:
            continue
        better = one.metric is not None and (
            parent.metric is None or (one.metric < parent.metric if minimize else one.metric > parent.metric)
        )
        if better:
            # exp(1/3) and its fourth root: the step stays constant at one success in five.
            parent = Parent(values, one.metric, min(0.5, parent.step * math.exp(1 / 3)))
        else:
            parent.step = max(0.02, parent.step * math.exp(-1 / 12))
    return parent


def propose(knobs: tuple[Knob, ...], parent: Parent, random: Random) -> Values:
    """Return a child that differs from its parent in one or two knobs; knobs named first are chosen more often."""
    weights = [1 / (1 + index) for index in range(len(knobs))]
    chosen = set(random.choices(range(len(knobs)), weights, k=random.choice((1, 2))))
    names = knob_names(knobs)
    child = dict(parent.values)
    for index in sorted(chosen):
        child[names[index]] = _vary(knobs[index], child.get(names[index]), parent.step, random)
    return child


def _vary(knob: Knob, value: Any, step: float, random: Random) -> Any:
    if knob.choices is not None:
        others = [choice for choice in knob.choices if choice != value]
        return random.choice(others or list(knob.choices))
    assert knob.range is not None  # a knob has choices or a range
    low, high = knob.range
    log = knob.scale == "log"
    a, b = (math.log(low), math.log(high)) if log else (low, high)
    number = float(value) if isinstance(value, int | float) else None
    place = (a + b) / 2 if number is None or (log and number <= 0) else (math.log(number) if log else number)
    for _ in range(20):
        moved = _reflect(place + random.gauss(0, step) * (b - a), a, b)
        new = _rounded(math.exp(moved) if log else moved, knob)
        if new != value:
            break
    return new


def _reflect(x: float, a: float, b: float) -> float:
    """Fold a number into a range at its ends: clamping would try the ends again and again."""
    x = (x - a) % (2 * (b - a))
    return a + (x if x <= b - a else 2 * (b - a) - x)


def _rounded(x: float, knob: Knob) -> int | float:
    """Return a whole number, or one of four digits, within the knob's range."""
    assert knob.range is not None  # choices are not rounded
    low, high = knob.range
    if knob.integer:
        return min(max(round(x), math.ceil(low)), math.floor(high))
    return min(max(float(f"{x:.4g}"), low), high)
