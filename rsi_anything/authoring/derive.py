"""The contract of a task, derived from what a person answered; nothing of it is typed in twice."""

from harness.task.contract import Boundary, Contract, Evaluation, Judge, Search, Source
from harness.task.globs import any_matches
from rsi_anything.contract.spec import TaskSpec

WORKDIR = "/app"
ADAPTER = "rsi_adapter.py"


def contract_of(spec: TaskSpec, source: Source) -> Contract:
    """Return the contract; the adapter is editable and delivered unless the answers freeze it."""
    boundary = spec.boundary
    return Contract(
        track=spec.source.track,
        category=spec.source.category,
        question=spec.question.question,
        source=source,
        metric=spec.evaluation.metric,
        evaluation=Evaluation(
            mode=spec.evaluation.mode,
            repeats=spec.evaluation.repeats,
            on_invalid=spec.evaluation.on_invalid,
            feedback=spec.evaluation.feedback,
            start=spec.baseline.start,
        ),
        boundary=Boundary(
            editable=_with_adapter(spec, boundary.editable),
            frozen=boundary.frozen,
            deliver=_with_adapter(spec, boundary.deliver),
            max_mb=boundary.max_mb,
            max_files=boundary.max_files,
        ),
        budget=spec.compute.budget,
        judge=Judge(gpus=spec.compute.gpus),
        search=Search(knobs=spec.compute.knobs),
    )


def _with_adapter(spec: TaskSpec, globs: tuple[str, ...]) -> tuple[str, ...]:
    fixed = any_matches((*globs, *spec.boundary.frozen), ADAPTER)
    return globs if spec.evaluation.adapter is None or fixed else (*globs, ADAPTER)


def verifier_sec(spec: TaskSpec) -> float:
    """Return how long one judging may take: its parts' own limits, and a minute or a tenth for all else."""
    train = spec.baseline.train_sec if spec.evaluation.mode == "retrain" else 0.0
    parts = train + spec.evaluation.predict_sec
    return float(round(parts + max(60.0, parts / 10)))
