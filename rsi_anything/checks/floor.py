"""Rung 5: candidates that know nothing score as nothing, and the metric tells more than noise apart."""

from pathlib import Path

from harness.run.bench import open_bench
from harness.run.control import has_role, measure
from harness.run.verdict import Finding as Judged
from harness.run.verdict import Verdict
from harness.task.contract import Contract, Reference, Start
from harness.task.reference import write_reference
from harness.task.task import Task
from rsi_anything.checks.finding import Finding
from rsi_anything.checks.keeping import keep_output
from rsi_anything.checks.ladder import Context, Outcome
from rsi_anything.checks.measuring import SEED, image_of, keep_control, sandbox_of, task_of, trial
from rsi_anything.checks.rules import raised

RESOLUTION = 3.0
"""Baseline and floor must lie at least this many times the noise apart."""


def climb(folder: Path, context: Context) -> Outcome:
    """Judge the untouched workspace and the floor candidate; write the floor."""
    task = task_of(folder, context)
    if task.contract is None:
        return _plain(task, context)
    outcome = Outcome()
    reference = context.found.get("reference") or task.contract.reference
    with open_bench(
        task, sandbox_of(context), tell=context.progress, seed=SEED, image=image_of(task, context)
    ) as bench:
        start = measure(bench, "start").finding
        lowest = measure(bench, "floor") if has_role(bench.solution, "floor") else None
        must = [lowest.finding] if lowest else []
        if task.contract.evaluation.start is not Start.UNSCOREABLE:
            must.append(start)
        unscored = any(each.verdict is not Verdict.SCORED for each in must)
        output = keep_output(bench.folder, task.name) if unscored else None
    floor = lowest.finding if lowest else None
    outcome.measurements = {"start": {"verdict": start.verdict.value, "metric": start.metric}}
    if floor is None:
        reason = "there is no candidate that knows nothing, so scores have no zero"
        outcome.findings.append(raised("floor/none", reason, file="solution/floor.sh", fix="give floor edits"))
    elif floor.verdict is not Verdict.SCORED or floor.metric is None:
        reason = f"the floor candidate was not scored: {floor.verdict}: {floor.message}"
        outcome.findings.append(
            raised("floor/not-scored", reason, file="solution/floor.sh", fix=f"mend it{_see(output)}")
        )
    else:
        assert lowest is not None  # it has a finding
        keep_control(task, "floor", lowest, context)
        outcome.measurements["floor"] = floor.metric
        reference = reference.model_copy(update={"floor": floor.metric})
        context.found["reference"] = reference
        outcome.findings += _distance(task.contract, reference)
        if context.options.get("record", True) and reference.tests_digest == task.tests_digest:
            write_reference(folder, reference)
    outcome.findings += _start(task.contract, reference, start, output)
    return outcome


def _see(output: Path | None) -> str:
    return "" if output is None else f"; what was printed is in {output}"


def _distance(contract: Contract, reference: Reference) -> list[Finding]:
    if reference.baseline is None or reference.floor is None:
        return []
    if not contract.improves(reference.baseline, reference.floor):
        reason = f"the baseline ({reference.baseline:g}) is no better than knowing nothing ({reference.floor:g})"
        return [raised("floor/above-baseline", reason, file="task.toml", fix="check direction, recipe and floor")]
    distance = abs(reference.baseline - reference.floor)
    if reference.noise and distance < RESOLUTION * reference.noise:
        reason = (
            f"baseline and floor are {distance:g} apart, less than {RESOLUTION:g} times the noise {reference.noise:g}"
        )
        return [raised("floor/resolution", reason, file="task.toml", fix="judge on more data or raise repeats")]
    return []


def _start(contract: Contract, reference: Reference, start: Judged, output: Path | None) -> list[Finding]:
    """Compare the untouched workspace with what the contract says of it."""
    said = contract.evaluation.start
    scored = start.verdict is Verdict.SCORED
    if said is Start.UNSCOREABLE:
        if not scored:
            return []
        reason = "the contract says that the untouched workspace cannot be scored, yet it was"
        return [raised("floor/start", reason, file="task.toml", fix="set evaluation.start to baseline or floor")]
    if not scored or start.metric is None:
        reason = f"the untouched workspace was not scored: {start.verdict}: {start.message}"
        fix = f"make the start scoreable, or say unscoreable{_see(output)}"
        return [raised("floor/start", reason, file="task.toml", fix=fix)]
    expected = reference.baseline if said is Start.BASELINE else reference.floor
    slack = max(RESOLUTION * (reference.noise or 0.0) * 2**0.5, 1e-9)
    if expected is not None and reference.noise is not None and abs(start.metric - expected) > slack:
        reason = f"the untouched workspace scores {start.metric:g}, yet the contract says {said} ({expected:g})"
        return [raised("floor/start", reason, file="task.toml", fix="correct evaluation.start or the image")]
    return []


def _plain(task: Task, context: Context) -> Outcome:
    state = trial(task, "nop", context, submissions=1)
    last = state.submissions[-1]
    outcome = Outcome(measurements={"start": {"verdict": str(last.verdict), "metric": last.metric}})
    solved = context.found.get("oracle")
    if last.metric is not None and solved is not None and last.metric >= solved:
        reason = f"doing nothing is rewarded {last.metric:g}, as much as the solution ({solved:g})"
        outcome.findings.append(raised("floor/nothing-rewarded", reason, file="tests/test.sh", fix="tighten the tests"))
    return outcome
