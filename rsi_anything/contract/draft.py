"""A set of answers in the making: what is known of each field, who said it, and what still has to be looked at.

Pure data: every transition returns a new draft, so that a front, a session file or a test can hold on to any of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from harness.errors import InputError
from rsi_anything.contract.fields import (
    BY_ID,
    CATALOGUE,
    Field,
    Value,
    active,
    default_of,
    dependents,
    leaves,
    needs_answer,
    problem_of,
    spec_message,
)
from rsi_anything.contract.spec import TaskSpec


class Status(StrEnum):
    """How far a field is."""

    OPEN = "open"
    DRAFT = "draft"
    CONFIRMED = "confirmed"
    TO_REVIEW = "to review"


class Who(StrEnum):
    """Who said it."""

    PROJECT = "project"
    DEFAULT = "default"
    PERSON = "person"
    ANSWERS = "answers file"
    MODEL = "model"


CONFIRMING = frozenset({Who.PERSON, Who.ANSWERS})


@dataclass(frozen=True)
class Evidence:
    """A path of the project, with lines, and the fact it supports."""

    path: str
    first: int | None = None
    last: int | None = None
    fact: str = ""

    def place(self) -> str:
        """Return `path`, `path:line` or `path:first-last`."""
        if self.first is None:
            return self.path
        if self.last is None or self.last == self.first:
            return f"{self.path}:{self.first}"
        return f"{self.path}:{self.first}-{self.last}"


@dataclass(frozen=True)
class Answer:
    """What is known of one field."""

    value: Value = None
    """None: nothing; confirmed, it means that the field is left out on purpose."""
    status: Status = Status.OPEN
    who: Who | None = None
    """Who gave the value."""
    confirmed_by: Who | None = None
    """Who confirmed it: a person or an answers file."""
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    """Why this value is thought right, or why it is to review."""


@dataclass(frozen=True)
class Problem:
    """Something about one field that keeps the specification from being made."""

    field: str
    """Id of the field, or empty where the problem is of the whole."""
    message: str


class DraftError(InputError):
    """A draft is no specification yet; `problems` holds everything that is in the way."""

    def __init__(self, problems: list[Problem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.field or 'the answers'}: {first.message}{more}", next_step="answer what is missing")
        self.problems = problems


OPEN = Answer()
USUAL = "the usual value"
"""Reason of a default."""


@dataclass(frozen=True)
class Draft:
    """What is known of every field; a field that is not held is open."""

    answers: Mapping[str, Answer] = field(default_factory=dict)

    def __getitem__(self, field_id: str) -> Answer:
        return self.answers.get(field_id, OPEN)

    def values(self) -> dict[str, Value]:
        """Return what is known, whatever its status; fields that do not apply have no value."""
        known = {name: answer.value for name, answer in self.answers.items()}
        return {item.id: known[item.id] for item in active(known) if known.get(item.id) is not None}

    def active(self) -> list[Field]:
        """Return the fields that apply, in order."""
        return active({name: answer.value for name, answer in self.answers.items()})

    def suggest(
        self, field_id: str, value: Value, who: Who, *, evidence: Iterable[Evidence] = (), reason: str = ""
    ) -> "Draft":
        """Propose a value: it becomes a draft unless a person already spoke, whose word stays."""
        if self[field_id].status in {Status.CONFIRMED, Status.TO_REVIEW}:
            return self
        status = Status.OPEN if value is None else Status.DRAFT
        return self._with(field_id, Answer(value, status, who, None, tuple(evidence), reason))

    def with_defaults(self) -> "Draft":
        """Draft the specification's default for every open field that has one."""
        draft = self
        for item in CATALOGUE:
            default = default_of(item)
            if default is not None and self[item.id].status is Status.OPEN:
                draft = draft.suggest(item.id, default, Who.DEFAULT, reason=USUAL)
        return draft

    def answer(self, field_id: str, value: Value, who: Who) -> "Draft":
        """Take an answer of a person or an answers file as confirmed; what depended on another value is to review.

        Raises InputError where the value is wrong for the field.
        """
        assert who in CONFIRMING, f"{who} never confirms"
        problem = problem_of(BY_ID[field_id], value, self.values())
        if problem:
            raise InputError(f"{field_id} {problem}", next_step=BY_ID[field_id].ask)
        before = self[field_id]
        same = before.status is not Status.OPEN and _equal(before.value, value)
        if same:
            return self._with(field_id, replace(before, status=Status.CONFIRMED, confirmed_by=who, reason=""))
        draft = self._with(field_id, Answer(value, Status.CONFIRMED, who, who))
        return draft if before.status is Status.OPEN else _dependents_to_review(draft, field_id)

    def confirm(self, field_id: str, who: Who) -> "Draft":
        """Confirm the value as it stands; an open field that may be left out is confirmed as left out."""
        return self.answer(field_id, self[field_id].value, who)

    def review(self, field_id: str, reason: str) -> "Draft":
        """Ask for a second look at a field, keeping its value."""
        return self._with(field_id, replace(self[field_id], status=Status.TO_REVIEW, reason=reason))

    def missing(self) -> list[Field]:
        """Return the fields that apply and are not confirmed, in order."""
        return [item for item in self.active() if self[item.id].status is not Status.CONFIRMED]

    def problems(self) -> list[Problem]:
        """Return everything that keeps this draft from being a specification: each field first, then the whole."""
        values = self.values()
        found = []
        for item in self.active():
            message = problem_of(item, self[item.id].value, values)
            if message is None and needs_answer(item, values) and self[item.id].status is Status.OPEN:
                message = "needs an answer"
            if message:
                found.append(Problem(item.id, message))
        return found or self._spec_problems()

    def to_spec(self) -> TaskSpec:
        """Return the specification these values make, whatever their status; raises DraftError with all problems."""
        problems = self.problems()
        if problems:
            raise DraftError(problems)
        return TaskSpec.model_validate(self.nested())

    def nested(self) -> dict[str, Any]:
        """Return the values as nested tables, the shape of an answers file."""
        tables: dict[str, Any] = {}
        for name, value in self.values().items():
            *path, last = name.split(".")
            table = tables
            for part in path:
                table = table.setdefault(part, {})
            table[last] = value
        return tables

    def as_json(self) -> dict[str, Any]:
        """Return the draft as plain JSON values."""
        return {name: asdict(answer) for name, answer in self.answers.items()}

    def _spec_problems(self) -> list[Problem]:
        try:
            TaskSpec.model_validate(self.nested())
        except ValidationError as error:
            return [_problem(item) for item in error.errors()]
        return []

    def _with(self, field_id: str, answer: Answer) -> "Draft":
        assert field_id in BY_ID, field_id
        return Draft({**self.answers, field_id: answer})


def draft_from_spec(spec: TaskSpec, who: Who) -> Draft:
    """Return the draft that a specification answers wholly."""
    draft = Draft()
    data = spec.model_dump(mode="json")
    for path, _, _ in leaves():
        value: Any = data
        for part in path.split("."):
            value = None if value is None else value[part]
        if path in BY_ID:
            draft = Draft({**draft.answers, path: Answer(value, Status.CONFIRMED, who, who)})
    return draft


def draft_from_json(data: Mapping[str, Any]) -> Draft:
    """Return the draft that `as_json` gave; fields this version does not know are dropped."""
    answers = {}
    for name, raw in data.items():
        if name in BY_ID:
            evidence = tuple(Evidence(**item) for item in raw["evidence"])
            who = Who(raw["who"]) if raw["who"] else None
            by = Who(raw["confirmed_by"]) if raw["confirmed_by"] else None
            answers[name] = Answer(raw["value"], Status(raw["status"]), who, by, evidence, raw["reason"])
    return Draft(answers)


def _dependents_to_review(draft: Draft, field_id: str) -> Draft:
    for item in dependents(field_id):
        if draft[item.id].status is Status.CONFIRMED:
            draft = draft.review(item.id, f"{BY_ID[field_id].label} changed")
    return draft


def _equal(one: Value, other: Value) -> bool:
    """Compare values; unlike ==, true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _problem(item: Any) -> Problem:
    """Return one error of the specification under the deepest field that its place names."""
    path = [str(part) for part in item["loc"]]
    for end in range(len(path), 0, -1):
        name = ".".join(path[:end])
        if name in BY_ID:
            return Problem(name, spec_message({**item, "loc": item["loc"][end - 1 :]}))
        inside = [known for known in BY_ID if known.startswith(name + ".")]
        if inside:
            return Problem(inside[0], spec_message({**item, "loc": ()}))
    return Problem("", spec_message({**item, "loc": ()}))
