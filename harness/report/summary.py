"""What a run found, in one pure function of plan and state; screen, report and JSON all show this.

Improvement is stated against the author's solution judged on the same host, and called real only where luck alone
would hardly reach it: the best of many submissions is a lucky one, so the bar rises with their number.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.report.numbers import decimals, number, times
from harness.run.plan import Plan
from harness.run.state import PHASES, State, Status, Submission
from harness.run.verdict import Verdict

_PURE = {"1", "ratio"}
"""Units of a pure number, which is written without one."""

LUCK = 0.05
"""How often a run whose submissions all equal the baseline would pass the bar."""
HERE = "this host"
AUTHOR = "the author's host"


@dataclass(frozen=True)
class Value:
    """A measured number and where it was measured."""

    value: float
    source: str


@dataclass(frozen=True)
class LedgerLine:
    """One phase of the ledger."""

    phase: str
    seconds: float
    share: float
    """Part of the wall time, 0 to 1."""


@dataclass(frozen=True)
class Summary:
    """What a run found. The metric's numbers are in its own unit."""

    run: str
    task: str
    question: str
    agent: str
    status: str
    """running, completed, stopped, failed, or interrupted: running by the journal, but no engine is there."""
    reason: str
    level: str
    metric: str
    unit: str
    minimize: bool
    baseline: Value | None
    author: Value | None
    """The baseline as the author measured it, where this host has one of its own."""
    noise: Value | None
    floor: Value | None
    best: Submission | None
    improvement: float | None
    """Best against baseline, positive where the best is better."""
    times_noise: float | None
    bar: float | None
    """How many times the noise an improvement must be to count as real."""
    submissions: int
    """How many were handed in."""
    used: int
    """How many of the budget are used up."""
    budget: int
    working_sec: float
    wall_sec: float
    ledger: tuple[LedgerLine, ...]

    @property
    def places(self) -> int | None:
        """How many decimals the metric is shown with."""
        values = (self.baseline.value if self.baseline else None, self.best.metric if self.best else None)
        return decimals(self.noise.value if self.noise else None, *values)

    @property
    def apart(self) -> float | None:
        """How many times the noise this host's baseline and the author's are apart."""
        if self.author is None or self.baseline is None or not self.noise or not self.noise.value:
            return None
        return abs(self.author.value - self.baseline.value) / self.noise.value

    @property
    def real(self) -> bool | None:
        """Whether the best beats the baseline by more than luck explains; None where that is not known."""
        if self.improvement is None or self.noise is None:
            return None
        if self.noise.value == 0:
            return self.improvement > 0
        return self.times_noise is not None and self.bar is not None and self.times_noise > self.bar

    def shown(self, value: float | None) -> str:
        """Return a value of the metric with its unit."""
        return f"{number(value, self.places)} {self.written_unit}".strip() if value is not None else "-"

    @property
    def written_unit(self) -> str:
        """The unit as it stands behind a number; nothing for a pure number."""
        return "" if self.unit.strip().casefold() in _PURE else self.unit

    def headline(self) -> str:
        """Return the result as one honest sentence."""
        if self.best is None:
            handed_in = f"{self.submissions} handed in" if self.submissions else "nothing was handed in"
            return f"no submission was scored ({handed_in})"
        best = f"best {self.shown(self.best.metric)}"
        if self.baseline is None:
            return f"{best}; there is no baseline to compare with"
        noise = f" ± {number(self.noise.value, self.places)}" if self.noise else ""
        baseline = f"baseline {number(self.baseline.value, self.places)}{noise} on {self.baseline.source}"
        return f"{best}, {baseline}: {self.words()}"

    def words(self) -> str:
        """Return what the improvement is worth."""
        if self.improvement is None:
            return "nothing to compare"
        if self.improvement == 0:
            return "equal to the baseline"
        side = "better" if self.improvement > 0 else "worse"
        return f"{side} by {number(abs(self.improvement), self.places)}{self._beside_noise()}"

    def _beside_noise(self) -> str:
        if self.noise is None:
            return "; how much of it is noise was never measured"
        if self.times_noise is None or self.bar is None:
            return "; repeated baselines were all equal"
        if abs(self.times_noise) > self.bar:
            return f", {times(abs(self.times_noise))} times the noise"
        luck = f" (luck alone may reach {times(self.bar)} times the noise)" if self.times_noise > 0 else ""
        return f", within the noise{luck}"


def summarize(plan: Plan, state: State, *, alive: bool = True) -> Summary:
    """Return what a run found; `alive` says whether an engine works on it now."""
    contract = plan.contract or {}
    metric = contract.get("metric", {})
    minimize = metric.get("direction") == "minimize"
    scored = [s for s in state.submissions if s.verdict is Verdict.SCORED and s.metric is not None]
    best = min(scored, key=lambda s: _badness(s.metric, minimize=minimize), default=None)
    baseline, noise = _measured(state, contract, "baseline"), _noise(state, contract)
    improvement = None
    if best is not None and best.metric is not None and baseline is not None:
        improvement = (baseline.value - best.metric) if minimize else (best.metric - baseline.value)
    return Summary(
        run=plan.run,
        task=plan.task,
        question=contract.get("question", ""),
        agent=plan.agent,
        status=status_word(state, alive=alive),
        reason=state.reason,
        level=plan.level,
        metric=metric.get("name", "reward"),
        unit=metric.get("unit", ""),
        minimize=minimize,
        baseline=baseline,
        author=_author(contract) if baseline is not None and baseline.source != AUTHOR else None,
        noise=noise,
        floor=_measured(state, contract, "floor"),
        best=best,
        improvement=improvement,
        times_noise=improvement / noise.value if improvement is not None and noise and noise.value else None,
        bar=luck_bar(len(scored)) if scored else None,
        submissions=len(state.submissions),
        used=state.used_submissions,
        budget=plan.submissions,
        working_sec=state.ledger["working"],
        wall_sec=state.wall_sec,
        ledger=_ledger(state),
    )


def status_word(state: State, *, alive: bool) -> str:
    """Return where a run stands, in one word."""
    return "interrupted" if state.status is Status.RUNNING and not alive else state.status.value


def luck_bar(count: int) -> float:
    """Return the improvement, in units of noise, that the best of `count` equals of the baseline hardly reaches.

    A submission and the baseline both carry noise, hence the root of two; the quantile is that of the best of `count`.
    """
    return math.sqrt(2) * statistics.NormalDist().inv_cdf((1 - LUCK) ** (1 / count))


def _badness(metric: float | None, *, minimize: bool) -> float:
    if metric is None:
        return math.inf
    return metric if minimize else -metric


def _author(contract: Mapping[str, Any]) -> Value | None:
    reference = contract.get("reference", {})
    if reference.get("baseline") is None:
        return None
    repeats = reference.get("repeats")
    return Value(float(reference["baseline"]), f"mean of {repeats} judgings on {AUTHOR}" if repeats else AUTHOR)


def _measured(state: State, contract: Mapping[str, Any], role: str) -> Value | None:
    """Return the control of this run, or else what the author measured."""
    control = state.control(role)
    if control is not None and control.metric is not None:
        return Value(control.metric, f"{HERE}, {control.reused_from}" if control.reused_from else HERE)
    value = contract.get("reference", {}).get(role)
    return None if value is None else Value(float(value), AUTHOR)


def _noise(state: State, contract: Mapping[str, Any]) -> Value | None:
    """Return the author's measurement, or else the spread of the control's own repeats."""
    reference = contract.get("reference", {})
    if reference.get("noise") is not None:
        repeats = reference.get("repeats")
        return Value(float(reference["noise"]), f"{repeats} judgings on {AUTHOR}" if repeats else AUTHOR)
    control = state.control("baseline")
    if control is None or len(control.values) < 2:
        return None
    return Value(statistics.stdev(control.values), f"{len(control.values)} judgings on {HERE}")


def _ledger(state: State) -> tuple[LedgerLine, ...]:
    wall = state.wall_sec
    return tuple(
        LedgerLine(phase, state.ledger[phase], state.ledger[phase] / wall if wall > 0 else 0.0) for phase in PHASES
    )
