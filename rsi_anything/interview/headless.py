"""The interview without a person: an answers file says it all, or everything that it does not say is listed at once.

What research finds never decides in place of a person. Only what the specification has a default for may be left out,
and facts of the project itself (its place, commit and licence), which are read off it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import InputError
from rsi_anything.contract.answers import Answers, load_answers, toml_value
from rsi_anything.contract.draft import Draft, Status, Who
from rsi_anything.contract.fields import BY_ID, Field, Value, default_of, needs_answer, problem_of, unlisted
from rsi_anything.interview.guided import SURE_ENOUGH, Suggestion, plain_value
from rsi_anything.interview.machine import Look


@dataclass(frozen=True)
class Missing:
    """An answer that only a person can give."""

    field: Field
    options: tuple[str, ...]
    example: Value
    """One that the options allow."""
    suggested: Value = None
    where: str = ""
    """Evidence for the suggestion."""

    def line(self) -> str:
        """Return the key, what it wants, and what to write: the project's hint, else an example."""
        wants = f"{self.field.ask} One of: {', '.join(self.options)}." if self.options else self.field.ask
        if self.suggested is not None:
            hint = f"the project suggests {toml_value(self.suggested)}" + (f" ({self.where})" if self.where else "")
        else:
            hint = f"such as {toml_value(self.example)}"
        return f"{self.field.id}: missing. {wants} {hint}"

    def as_json(self) -> dict[str, Value]:
        """Return plain data with stable keys."""
        return {
            "field": self.field.id,
            "wants": self.field.ask,
            "options": list(self.options),
            "example": self.example,
            "suggested": self.suggested,
            "where": self.where,
        }


@dataclass(frozen=True)
class Wrong:
    """An answer that cannot be taken."""

    field: str
    message: str
    line: int | None

    def as_json(self) -> dict[str, Value]:
        """Return plain data with stable keys."""
        return {"field": self.field, "message": self.message, "line": self.line}


@dataclass
class Outcome:
    """What came of an answers file: a draft that makes a task where `wrong` and `missing` are empty."""

    path: Path
    draft: Draft
    wrong: list[Wrong] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Say whether the answers make a task."""
        return not self.wrong and not self.missing

    def lines(self) -> list[str]:
        """Return everything that is wrong or missing, one a line."""
        shown = [
            f"{self.path}{f':{item.line}' if item.line else ''}: {item.field} {item.message}" for item in self.wrong
        ]
        return shown + [item.line() for item in self.missing]

    def as_json(self) -> dict[str, Any]:
        """Return everything that is wrong or missing as plain data with stable keys."""
        return {"wrong": [item.as_json() for item in self.wrong], "missing": [item.as_json() for item in self.missing]}

    def summary(self) -> str:
        """Return how much is wrong and missing, in words."""
        counts = [(len(self.missing), "missing"), (len(self.wrong), "wrong")]
        parts = [f"{n} answer{'s are' if n > 1 else ' is'} {what}" for n, what in counts if n]
        return " and ".join(parts)


def read(path: Path) -> Answers:
    """Read the answers file; raises InputError where it is none."""
    return load_answers(path)


def place_of(answers: Answers, project: str | None, name: str | None) -> dict[str, Value]:
    """Put what the command line says over the file, and return where the project is.

    A project named in the file is relative to the file's own folder. Raises InputError where none is named.
    """
    if name is not None:
        answers.values["source.name"] = name
        answers.lines.pop("source.name", None)
    named = project if project is not None else answers.values.get("source.project")
    if not isinstance(named, str) or not named:
        raise InputError("which project?", where=str(answers.path), next_step="rsi new PROJECT --answers FILE")
    beside = answers.path.parent / named
    if project is None and beside.is_dir():
        named = str(beside)
    answers.values["source.project"] = named
    place: dict[str, Value] = {"source.project": named}
    for key in ("source.commit", "source.subdir"):
        if problem_of(BY_ID[key], answers.values.get(key), {}) is None:
            place[key] = answers.values.get(key)
    return place


def take(
    answers: Answers, facts: Mapping[str, Value], suggestions: Mapping[str, Suggestion], look: Look | None = None
) -> Outcome:
    """Confirm what the file says, fill in facts of the project and usual values, and name everything else.

    `look` gives the texts that the project allows for a field, where it allows only some.
    """
    outcome = Outcome(answers.path, Draft())
    outcome.wrong = [Wrong(item.field, item.message, item.line) for item in answers.problems]
    values = {name: value for name, value in answers.values.items() if value is not None}
    for name, value in answers.values.items():
        problem = problem_of(BY_ID[name], value, values) if value is not None else None
        if problem is None and look is not None and (found := look(name, values)):
            problem = unlisted(value, found)
        if problem:
            outcome.wrong.append(Wrong(name, problem, answers.lines.get(name)))
        elif value is not None:
            outcome.draft = outcome.draft.suggest(name, value, Who.ANSWERS)
    for name, value in facts.items():
        if outcome.draft[name].status is Status.OPEN and value is not None:
            outcome.draft = outcome.draft.suggest(name, value, Who.PROJECT, reason="read off the project")
    outcome.draft = outcome.draft.with_defaults()
    outcome.missing = _missing(outcome.draft, answers, suggestions)
    _unused(outcome, answers)
    if outcome.whole:
        _confirm(outcome, answers)
    outcome.wrong.sort(key=lambda item: item.line or 0)
    return outcome


def _missing(draft: Draft, answers: Answers, suggestions: Mapping[str, Suggestion]) -> list[Missing]:
    values = draft.values()
    found = []
    for item in draft.active():
        answered = item.id in answers.values
        if answered or values.get(item.id) is not None or not needs_answer(item, values):
            continue
        hint = suggestions.get(item.id)
        options = item.options(values) if item.options else ()
        if hint is None or hint.confidence < SURE_ENOUGH or problem_of(item, plain_value(hint.value), values):
            found.append(Missing(item, options, item.example_for(values)))
        else:
            where = ", ".join(
                f"{lines.path}:{lines.line_from}" if lines.line_from else lines.path for lines in hint.evidence
            )
            found.append(Missing(item, options, item.example_for(values), plain_value(hint.value), where))
    return found


def _unused(outcome: Outcome, answers: Answers) -> None:
    """Name the answers to questions that are not asked: the person expects them to count."""
    active = {item.id for item in outcome.draft.active()}
    values = outcome.draft.values()
    for name in answers.values:
        wrong = {item.field for item in outcome.wrong}
        # A file that a task was made with states every usual value, asked for or not.
        if name in active or name in wrong or answers.values[name] == default_of(BY_ID[name]):
            continue
        unmet = [condition for condition in BY_ID[name].when if not condition.holds(values)]
        if unmet and unmet[0].field not in wrong:
            outcome.wrong.append(Wrong(name, f"counts only if {unmet[0].words()}", answers.lines.get(name)))


def _confirm(outcome: Outcome, answers: Answers) -> None:
    """Confirm all: an answers file stands for a person who has seen what it leaves to the usual values."""
    for problem in outcome.draft.problems():
        outcome.wrong.append(Wrong(problem.field or "answers", problem.message, answers.lines.get(problem.field)))
    for item in outcome.draft.active() if outcome.whole else []:
        outcome.draft = outcome.draft.confirm(item.id, Who.ANSWERS)
