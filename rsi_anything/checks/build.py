"""Rung 3: the image builds, and an untouched workspace is what its boundary expects."""

from pathlib import Path

from harness.errors import RsiError
from harness.run.bench import open_bench
from harness.run.control import untouched
from harness.task.contract import Start
from harness.task.globs import any_matches, literal
from rsi_anything.checks.ladder import Context, Outcome
from rsi_anything.checks.measuring import SEED, image_of, sandbox_of, task_of
from rsi_anything.checks.rules import raised


def climb(folder: Path, context: Context) -> Outcome:
    """Build the image; for a task with a contract look for the files its boundary names."""
    outcome = Outcome()
    task = task_of(folder, context)
    try:
        image = image_of(task, context)
    except RsiError as error:
        reason = f"the image cannot be built: {error.what}"
        place = error.where.removeprefix(f"{folder}/")
        outcome.findings.append(raised("build/fails", reason, file=place, fix=error.next_step or "mend the Dockerfile"))
        return outcome
    outcome.measurements = {"image": image.digest, "workdir": image.workdir, "notes": list(image.notes)}
    if task.contract is None:
        return outcome
    with open_bench(task, sandbox_of(context), tell=context.progress, seed=SEED, image=image) as bench:
        files = untouched(bench)
    boundary = task.contract.boundary
    for glob in boundary.frozen:
        if not any(any_matches([glob], path) for path in files.frozen):
            reason = f"no file of the image matches the frozen glob {glob!r}"
            outcome.findings.append(raised("build/frozen-missing", reason, file="task.toml", fix="correct the glob"))
    if task.contract.evaluation.start is not Start.UNSCOREABLE:
        for glob in boundary.deliver:
            if literal(glob) and glob not in files.deliver:
                reason = f"the untouched workspace has no {glob!r}, yet the contract says that it can be scored"
                fix = "add the file to the image, or set evaluation.start to unscoreable"
                outcome.findings.append(raised("build/deliver-missing", reason, file="task.toml", fix=fix))
    return outcome
