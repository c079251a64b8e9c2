"""The interviewer that needs no model: it drafts what the project shows and what answers imply; it confirms nothing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from pydantic_core import to_jsonable_python

from rsi_anything.contract.draft import USUAL, Draft, Evidence, Status, Who
from rsi_anything.contract.fields import BY_ID, Value, default_of, problem_of

SURE_ENOUGH = 0.3
"""Least confidence of a suggestion that is shown as a draft; below it, a guess misleads more than an empty field."""

ADAPTER = "rsi_adapter.py"

DOMAINS: dict[str, tuple[str, str, float, float | None]] = {
    "nll": ("minimize", "nats/char", 0.0, 25.0),
    "bits": ("minimize", "bits/char", 0.0, 35.0),
    "accuracy": ("maximize", "", 0.0, 1.0),
    "error-rate": ("minimize", "", 0.0, 1.0),
    "macro-f1": ("maximize", "", 0.0, 1.0),
    "mse": ("minimize", "", 0.0, None),
    "rmse": ("minimize", "", 0.0, None),
    "mae": ("minimize", "", 0.0, None),
    "r2": ("maximize", "", -1e6, 1.0),
    "log-loss": ("minimize", "nats", 0.0, 25.0),
}
"""Direction, unit, lowest and highest value of each measure; the judge bounds a single surprise, hence 25 nats."""


class Lines(Protocol):
    """Evidence as research gives it."""

    @property
    def path(self) -> str:
        """File of the project."""

    @property
    def line_from(self) -> int:
        """First line, or 0 for the whole file."""

    @property
    def line_to(self) -> int:
        """Last line, or 0 for the whole file."""

    @property
    def fact(self) -> str:
        """What it shows."""


class Suggestion(Protocol):
    """A value that research proposes for a field."""

    @property
    def value(self) -> object:
        """The value, as plain data."""

    @property
    def evidence(self) -> Iterable[Lines]:
        """What it rests on."""

    @property
    def confidence(self) -> float:
        """From 0 to 1."""

    @property
    def reason(self) -> str:
        """Why, in a few words."""


def drafted(draft: Draft, suggestions: Mapping[str, Suggestion]) -> Draft:
    """Draft what research suggests, surest grounds only, and the usual value where it suggests nothing.

    A suggestion that the specification would not take is dropped: research guesses, and the field stays open.
    """
    for field_id, item in BY_ID.items():
        found = suggestions.get(field_id)
        if found is None or found.confidence < SURE_ENOUGH:
            continue
        value = plain_value(found.value)
        if value is None or problem_of(item, value, draft.values()):
            continue
        evidence = [_evidence(lines) for lines in found.evidence]
        draft = draft.suggest(field_id, value, Who.PROJECT, evidence=evidence, reason=found.reason)
    return draft.with_defaults()


def follow(draft: Draft) -> Draft:
    """Draft what earlier answers imply, where nothing better than the usual value is known."""
    for field_id, rule in RULES.items():
        known = draft[field_id]
        if known.status not in {Status.OPEN, Status.DRAFT} or known.who not in {None, Who.DEFAULT}:
            continue
        values = draft.values()
        made = rule(values)
        if made is None or problem_of(BY_ID[field_id], made[0], values):
            # What an earlier answer implied is void when that answer is gone.
            made = default_of(BY_ID[field_id]), USUAL
        if made[0] != known.value:
            draft = draft.suggest(field_id, made[0], Who.DEFAULT, reason=made[1])
    return draft


Values = Mapping[str, Value]
Rule = Callable[[Values], tuple[Value, str] | None]


def _evidence(lines: Lines) -> Evidence:
    return Evidence(lines.path, lines.line_from or None, lines.line_to or None, lines.fact)


def plain_value(value: object) -> Value:
    """Return a suggested value as plain data; tuples become lists."""
    plain: Value = to_jsonable_python(value)
    return plain


def _title(values: Values) -> tuple[Value, str] | None:
    name = values.get("source.name")
    return (f"{name} beyond its baseline", "from the name") if isinstance(name, str) else None


def _split(values: Values) -> tuple[Value, str] | None:
    file = values.get("evaluation.data.file")
    if not isinstance(file, str):
        return None
    if "*" in file:
        return "classes", "several files"
    if file.endswith((".csv", ".tsv")):
        return "rows", "a table"
    return ("tail", "a text") if file.endswith((".txt", ".md")) else None


def _holdout(_values: Values) -> tuple[Value, str] | None:
    return 0.1, "one part in ten, as is common"


def _measure(values: Values) -> tuple[Value, str] | None:
    return ("nll", "usual for next-token") if values.get("evaluation.kind") == "next-token" else None


def _metric_name(values: Values) -> tuple[Value, str] | None:
    measure = values.get("evaluation.measure")
    return (measure.replace("-", "_"), "named after the measure") if isinstance(measure, str) else None


def _of_measure(position: int) -> Rule:
    def rule(values: Values) -> tuple[Value, str] | None:
        measure = values.get("evaluation.measure")
        value = DOMAINS[measure][position] if isinstance(measure, str) and measure in DOMAINS else None
        return None if value in {None, ""} else (value, f"goes with {measure}")

    return rule


def _frozen(values: Values) -> tuple[Value, str] | None:
    file = values.get("evaluation.data.file")
    return ([file], "the data stays as it is") if isinstance(file, str) else None


def _deliver(values: Values) -> tuple[Value, str] | None:
    editable, outputs = values.get("boundary.editable"), values.get("baseline.outputs")
    if not isinstance(editable, list):
        return None
    if values.get("evaluation.mode") == "direct" and isinstance(outputs, list):
        extra = [item for item in outputs if item not in editable]
        return [*editable, *extra], "what may change, and what training leaves"
    return editable, "what may change"


RULES: dict[str, Rule] = {
    "source.title": _title,
    "evaluation.data.split": _split,
    "evaluation.data.holdout": _holdout,
    "evaluation.measure": _measure,
    "evaluation.metric.name": _metric_name,
    "evaluation.metric.direction": _of_measure(0),
    "evaluation.metric.unit": _of_measure(1),
    "evaluation.metric.lowest": _of_measure(2),
    "evaluation.metric.highest": _of_measure(3),
    "boundary.frozen": _frozen,
    "boundary.deliver": _deliver,
}
