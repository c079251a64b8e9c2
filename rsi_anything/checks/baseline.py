"""Rung 4: the author's solution scores through a candidate's path, again and again; that is baseline and noise."""

import statistics
from pathlib import Path

from harness.run.bench import open_bench
from harness.run.control import measure
from harness.run.host import host_facts, host_words
from harness.run.verdict import Finding as Judged
from harness.run.verdict import Verdict
from harness.task.contract import Contract, Reference
from harness.task.reference import write_reference
from rsi_anything.checks.finding import Finding
from rsi_anything.checks.keeping import keep_output
from rsi_anything.checks.ladder import Context, Outcome
from rsi_anything.checks.measuring import SEED, image_of, keep_control, sandbox_of, task_of, trial
from rsi_anything.checks.rules import raised

REPEATS = 3
"""Judgings of the solution by default: the fewest that give a spread with an idea of its own error."""

WIN = 3.0
"""A baseline judging this many standard deviations from the others' mean would pass for progress."""


def climb(folder: Path, context: Context) -> Outcome:
    """Judge the solution `repeats` times on fresh seeds, compare it with itself, write what was measured."""
    task = task_of(folder, context)
    if task.contract is None:
        return _plain(folder, context)
    times = int(context.options.get("repeats") or REPEATS)
    with open_bench(
        task, sandbox_of(context), tell=context.progress, seed=SEED, image=image_of(task, context)
    ) as bench:
        measured = measure(bench, "baseline", times=times)
        finding = measured.finding
        if finding.verdict is not Verdict.SCORED or finding.metric is None:
            return Outcome([_not_scored(finding, keep_output(bench.folder, task.name))])
    noise = statistics.stdev(finding.values) if len(finding.values) > 1 else None
    keep_control(task, "baseline", measured, context)
    reference = Reference(
        baseline=finding.metric,
        noise=noise,
        floor=task.contract.reference.floor if task.contract.reference.tests_digest == task.tests_digest else None,
        repeats=len(finding.values),
        judge_sec=round(measured.seconds, 3),
        tests_digest=task.tests_digest,
        host=host_words(host_facts()),
    )
    context.found["reference"] = reference
    if context.options.get("record", True):
        write_reference(folder, reference)
    outcome = Outcome(_against_itself(task.contract, finding.values, noise))
    outcome.measurements = {
        "baseline": finding.metric,
        "noise": noise,
        "values": list(finding.values),
        "judge_sec": reference.judge_sec,
    }
    return outcome


def _not_scored(finding: Judged, output: Path) -> Finding:
    reason = f"the author's solution was not scored: {finding.verdict}: {finding.message}"
    if finding.evidence:
        reason += f" ({finding.evidence[-400:]})"
    fix = f"mend the solution or the judge; what they printed is in {output}"
    return raised("baseline/not-scored", reason, file="solution/solve.sh", fix=fix)


def _against_itself(contract: Contract, values: tuple[float, ...], noise: float | None) -> list[Finding]:
    """Compare each judging with the rest: none may look like progress, for nothing differs but the seed."""
    if noise is None:
        reason = "one judging gives no noise: progress cannot be told from luck"
        return [raised("baseline/no-noise", reason, file="task.toml", fix="rsi check TASK --repeats 3")]
    if noise == 0:
        reason = "every judging gave the same number: the metric has no noise, or the judge ignores its seed"
        return [raised("baseline/no-spread", reason, file="tests/test.sh", fix="make sure that $RSI_SEED is used")]
    if len(values) < 4:  # fewer leave no spread of the others to compare with
        return []
    findings = []
    for index, value in enumerate(values):
        others = values[:index] + values[index + 1 :]
        mean, spread = statistics.fmean(others), statistics.stdev(others)
        if (
            spread
            and contract.improves(value, mean)
            and abs(value - mean) > WIN * spread * (1 + 1 / len(others)) ** 0.5
        ):
            reason = f"judging {index + 1} of the unchanged baseline ({value:g}) would pass for progress over {mean:g}"
            findings.append(raised("baseline/wins-alone", reason, fix="raise evaluation.repeats or fix what is random"))
    return findings


def _plain(folder: Path, context: Context) -> Outcome:
    """Run the solution of a plain Harbor task once, as Harbor would."""
    task = task_of(folder, context)
    if not (task.solution / "solve.sh").is_file():
        reason = "there is no solution, so whether the task can be solved is not known"
        return Outcome([raised("baseline/no-solution", reason, file="solution/solve.sh", fix="add one")])
    state = trial(task, "oracle", context, submissions=1)
    last = state.submissions[-1]
    context.found["oracle"] = last.metric
    if last.verdict is not Verdict.SCORED:
        message = last.judgings[-1].message if last.judgings else ""
        judged = Judged(last.verdict or Verdict.NO_MEASUREMENT, message=message)
        return Outcome([_not_scored(judged, context.found["output"])])
    return Outcome(measurements={"reward": last.metric})
