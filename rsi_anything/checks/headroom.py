"""Rung 7: a short search finds whether there is anything to gain, and budgets are held against measured times."""

from pathlib import Path

from harness.run.scoring import best_of
from harness.run.verdict import Verdict
from harness.task.contract import Contract, Reference
from rsi_anything.checks.finding import Finding
from rsi_anything.checks.ladder import Context, Outcome
from rsi_anything.checks.measuring import task_of, trial
from rsi_anything.checks.rules import raised

TRIES = 4
"""Submissions of the short search by default."""

LOOPS = 10
"""Rounds of work and judging that a budget should hold."""


def climb(folder: Path, context: Context) -> Outcome:
    """Run the search agent briefly, and recompute the budget from measured times."""
    task = task_of(folder, context)
    outcome = Outcome()
    if task.contract is None:
        return outcome
    reference = context.found.get("reference") or task.contract.reference
    outcome.findings += _budget(task.contract, reference, task.config.verifier.timeout_sec)
    if not task.contract.search.knobs:
        reason = "the contract names no knobs, so no search was made"
        outcome.findings.append(raised("headroom/no-search", reason, file="task.toml", fix="add knobs"))
        return outcome
    tries = min(int(context.options.get("tries") or TRIES), task.contract.budget.submissions)
    state = trial(task, "search", context, submissions=tries)
    best = best_of(task.contract, state.submissions)
    scored = [one.metric for one in state.submissions if one.verdict is Verdict.SCORED]
    control = state.control()
    outcome.measurements = {
        "tries": tries,
        "scored": len(scored),
        "best": best.metric if best else None,
        "baseline": control.metric if control else None,
    }
    if best is None:
        reason = f"none of {tries} candidates of the search was scored"
        fix = f"check the knobs; what was printed is in {context.found['output']}"
        outcome.findings.append(raised("headroom/nothing-scored", reason, file="task.toml", fix=fix))
    elif control is not None and control.metric is not None and best.metric is not None:
        outcome.findings += _gain(task.contract, reference, best.metric, control.metric)
    return outcome


def _gain(contract: Contract, reference: Reference, best: float, baseline: float) -> list[Finding]:
    gained = abs(best - baseline) if contract.improves(best, baseline) else 0.0
    if gained > 2 * (reference.noise or 0.0):
        return []
    reason = f"a short search came to {best:g} beside {baseline:g}: no gain beyond the noise was seen"
    return [raised("headroom/none-seen", reason, fix="let the search run longer before believing it")]


def _budget(contract: Contract, reference: Reference, timeout: float) -> list[Finding]:
    if not reference.judge_sec:
        return []
    findings = []
    each = reference.judge_sec
    if each * 1.5 > timeout:
        reason = f"one judging takes {each:.0f} s and is cut off at {timeout:.0f} s"
        findings.append(raised("headroom/judge-time", reason, file="task.toml", fix="raise verifier.timeout_sec"))
    if contract.budget.submissions < LOOPS:
        reason = f"{contract.budget.submissions} submissions leave less than {LOOPS} rounds of trying and learning"
        findings.append(raised("headroom/few-loops", reason, file="task.toml", fix="raise budget.submissions"))
    return findings
