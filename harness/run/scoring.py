"""From findings to scores and feedback: the one place that knows baseline, floor and what an agent may see."""

from harness.agents.feedback import Feedback, clip
from harness.run.state import State, Submission
from harness.run.verdict import Finding, Verdict
from harness.task.contract import Contract, Direction, FeedbackPart, score


def floor_of(contract: Contract | None, state: State) -> float | None:
    """Return the floor: measured on this host if it was, else the contract's."""
    control = state.control("floor")
    if control is not None:
        return control.metric
    return contract.reference.floor if contract else None


def baseline_of(contract: Contract | None, state: State) -> float | None:
    """Return the baseline: measured on this host if it was, else the contract's."""
    control = state.control("baseline")
    if control is not None:
        return control.metric
    return contract.reference.baseline if contract else None


def score_of(contract: Contract | None, state: State, finding: Finding) -> float | None:
    """Return the score of a finding: 0 for a violation, None where it has none."""
    if finding.verdict is Verdict.VIOLATION:
        return 0.0
    if finding.verdict is Verdict.INVALID:
        on_invalid = contract.evaluation.on_invalid if contract else "unscored"
        return None if isinstance(on_invalid, str) else float(on_invalid)
    if finding.verdict is not Verdict.SCORED or finding.metric is None:
        return None
    if contract is None:
        return finding.metric
    return score(finding.metric, floor=floor_of(contract, state), baseline=baseline_of(contract, state))


def best_of(contract: Contract | None, submissions: tuple[Submission, ...]) -> Submission | None:
    """Return the scored submission with the best metric, the first one on a tie."""
    scored = [s for s in submissions if s.verdict is Verdict.SCORED and s.metric is not None]
    if not scored:
        return None
    minimize = contract is not None and contract.metric.direction is Direction.MINIMIZE
    sign = 1 if minimize else -1
    return min(scored, key=lambda s: (sign * (s.metric or 0.0), s.number))


def feedback_of(
    contract: Contract | None, state: State, one: Submission, *, submissions_left: int, hours_left: float
) -> Feedback:
    """Return what the agent is told about a closed submission: only the parts that the contract shows."""
    shown = set(contract.evaluation.feedback) if contract else set(FeedbackPart)
    best = best_of(contract, state.submissions)
    last = one.judgings[-1] if one.judgings else None

    def part(name: FeedbackPart, value: float | None) -> float | None:
        return value if name in shown else None

    baseline_shown = FeedbackPart.BASELINE in shown and contract is not None
    return Feedback(
        number=one.number,
        verdict=str(one.verdict),
        submissions_left=submissions_left,
        working_hours_left=round(hours_left, 4),
        metric_name=contract.metric.name if contract else "reward",
        metric=part(FeedbackPart.METRIC, one.metric),
        score=part(FeedbackPart.SCORE, one.score),
        best=part(FeedbackPart.BEST, best.metric if best else None),
        baseline=part(FeedbackPart.BASELINE, baseline_of(contract, state)),
        noise=contract.reference.noise if baseline_shown and contract else None,
        message=clip(last.message) if last and FeedbackPart.MESSAGE in shown else "",
    )
