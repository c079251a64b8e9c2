"""The interview as a state machine that knows no screen: events in, states out, and every accepted answer kept first.

A front shows `state` and sends events. An event that cannot be taken raises InputError and changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, assert_never

from harness.errors import InputError
from rsi_anything.contract.draft import Answer as Known
from rsi_anything.contract.draft import Draft, Evidence, Problem, Status, Who
from rsi_anything.contract.fields import (
    BY_ID,
    GROUPS,
    ROUNDS,
    Field,
    Group,
    Value,
    Values,
    nearest,
    needs_answer,
    problem_of,
    unlisted,
)
from rsi_anything.contract.spec import TaskSpec

REVIEW = "review"
"""Place after the last question."""


class Store(Protocol):
    """Keeps a draft and the place in the interview; returns only when both would survive a crash."""

    def save(self, draft: Draft, at: str) -> None:
        """Keep them."""


@dataclass(frozen=True)
class Answer:
    """The person gives a value for a field, which confirms it."""

    field: str
    value: Value


@dataclass(frozen=True)
class Confirm:
    """The person agrees: with one field, or with all that is shown."""

    field: str | None = None


@dataclass(frozen=True)
class Skip:
    """The person leaves a field out on purpose."""

    field: str


@dataclass(frozen=True)
class Back:
    """To the question before."""


@dataclass(frozen=True)
class Jump:
    """To a field, a question, or a round; the last part of a field's name is enough."""

    target: str


@dataclass(frozen=True)
class Propose:
    """Somebody who cannot confirm (project, default, model) drafts a value."""

    field: str
    value: Value
    who: Who
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""


Event = Answer | Confirm | Skip | Back | Jump | Propose


@dataclass(frozen=True)
class View:
    """One field as it is shown."""

    field: Field
    known: Known
    needed: bool
    options: tuple[str, ...]
    problem: str | None
    """Why the value as it stands cannot be confirmed."""
    example: Value
    """An example that the options allow."""
    hints: tuple[str, ...] = ()
    """What more there is to say of it now."""


@dataclass(frozen=True)
class State:
    """All that a front needs to show."""

    group: Group | None
    """The question; None in the review."""
    views: tuple[View, ...]
    """Its fields; in the review all of them."""
    focus: str | None
    """The field that is asked for; None where all that is shown can be confirmed together."""
    number: int
    """Position of the question, counted from 1."""
    total: int
    confirmed: int
    """Fields confirmed so far, of `fields` that apply."""
    fields: int
    problems: tuple[Problem, ...] = ()
    """In the review: what keeps the answers from being a task."""

    @property
    def round(self) -> str:
        """Name of the round."""
        return self.group.round if self.group else REVIEW

    @property
    def ready(self) -> bool:
        """Say whether every answer is confirmed and they make a task."""
        return self.group is None and not self.problems and self.confirmed == self.fields


Look = Callable[[str, Values], tuple[str, ...]]
"""Gives the texts that the project allows for a field, such as the columns of its table; none where any will do."""


class Machine:
    """The interview over one draft. `follow` may draft further fields after each change; it never confirms."""

    def __init__(
        self,
        draft: Draft,
        store: Store,
        *,
        at: str = "",
        follow: Callable[[Draft], Draft] | None = None,
        look: Look | None = None,
    ) -> None:
        self._store = store
        self._look = look or (lambda _field, _values: ())
        self._follow = follow or (lambda same: same)
        self._draft = self._follow(draft)
        self._focus: str | None = None
        self._at = at if at == REVIEW or at in _groups(self._draft) else GROUPS[0].id
        self._store.save(self._draft, self._at)

    @property
    def draft(self) -> Draft:
        """The answers as they stand."""
        return self._draft

    @property
    def state(self) -> State:
        """What is to be shown now."""
        groups = _groups(self._draft)
        here = self._here()
        active = self._draft.active()
        shown = active if here is None else groups[here.id]
        values = self._draft.values()
        views = tuple(self._view(item, values) for item in shown)
        return State(
            group=here,
            views=views,
            focus=None if here is None else self._focus_among(views),
            number=len(groups) + 1 if here is None else list(groups).index(here.id) + 1,
            total=len(groups) + 1,
            confirmed=len(active) - len(self._draft.missing()),
            fields=len(active),
            problems=tuple(self._draft.problems()) if here is None else (),
        )

    def send(self, event: Event) -> State:
        """Take an event and return what is to be shown next; what it changed is kept before this returns."""
        match event:
            case Answer(field_id, value):
                self._settle(self._answered(_known(self._draft, field_id), value))
            case Skip(field_id):
                self._settle(self._draft.answer(_known(self._draft, field_id), None, Who.PERSON))
            case Confirm(field_id):
                self._confirm(field_id)
            case Back():
                self._back()
            case Jump(target):
                self._jump(target)
            case Propose(field_id, value, who, evidence, reason):
                draft = self._draft.suggest(field_id, value, who, evidence=evidence, reason=reason)
                self._keep(self._follow(draft), self._at, self._focus)
            case _:
                assert_never(event)
        return self.state

    def draft_values(self) -> dict[str, Value]:
        """Return what is known so far, by field."""
        return self._draft.values()

    def spec(self) -> TaskSpec:
        """Return the specification that was confirmed; raises InputError where something is not."""
        missing = self._draft.missing()
        if missing:
            raise InputError(f"{len(missing)} answers are not confirmed, first {missing[0].id}", next_step="answer it")
        return self._draft.to_spec()

    def _settle(self, draft: Draft) -> None:
        """Keep a confirmed answer; go on where the question is now wholly confirmed."""
        draft = self._follow(draft)
        here = self._here()
        unsettled = here is not None and _unsettled(draft, here.id)
        if unsettled:
            self._keep(draft, self._at, None)
        else:
            self._keep(*self._onward(draft))

    def _answered(self, field_id: str, value: Value) -> Draft:
        """Return the draft with a person's answer; raises InputError where the project has no such thing."""
        problem = unlisted(value, found) if (found := self._look(field_id, self._draft.values())) else None
        if problem:
            raise InputError(f"{field_id} {problem}", next_step=BY_ID[field_id].ask)
        return self._draft.answer(field_id, value, Who.PERSON)

    def _confirm(self, field_id: str | None) -> None:
        if field_id is not None:
            known = _known(self._draft, field_id)
            self._settle(self._answered(known, self._draft[known].value))
            return
        draft = self._draft
        here = self._here()
        for item in _groups(draft)[here.id] if here else []:
            problem = self._view(item, draft.values(), draft).problem
            if problem:
                self._focus = item.id
                raise InputError(f"{item.id} {problem}", next_step=item.ask)
            draft = draft.confirm(item.id, Who.PERSON)
        self._keep(*self._onward(self._follow(draft)))

    def _onward(self, draft: Draft) -> tuple[Draft, str, str | None]:
        """Return the draft and the next place: a later question with something to confirm, any other, or the review."""
        order = list(_groups(draft))
        start = order.index(self._at) + 1 if self._at in order else 0
        for group_id in order[start:] + order[:start]:
            if _unsettled(draft, group_id):
                return draft, group_id, None
        named = [problem for problem in draft.problems() if problem.field]
        for problem in named:
            draft = draft.review(problem.field, problem.message)
        return (draft, BY_ID[named[0].field].group, named[0].field) if named else (draft, REVIEW, None)

    def _back(self) -> None:
        order = [*_groups(self._draft), REVIEW]
        position = order.index(self._at)
        if position == 0:
            raise InputError("this is the first question", next_step="answer it, or go to another one")
        self._keep(self._draft, order[position - 1], None)

    def _jump(self, target: str) -> None:
        groups = _groups(self._draft)
        asked = {item.id for items in groups.values() for item in items}
        if target == REVIEW or (target in groups and target not in asked):
            self._keep(self._draft, target, None)
        elif target in ROUNDS:
            self._keep(self._draft, next(name for name in groups if name.startswith(target + ".")), None)
        else:
            field_id = _known(self._draft, target)
            self._keep(self._draft, BY_ID[field_id].group, field_id)

    def _keep(self, draft: Draft, at: str, focus: str | None) -> None:
        if draft != self._draft or at != self._at:
            self._store.save(draft, at)
        self._draft, self._at, self._focus = draft, at, focus

    def _here(self) -> Group | None:
        return next((group for group in GROUPS if group.id == self._at), None)

    def _view(self, item: Field, values: dict[str, Value], draft: Draft | None = None) -> View:
        known = (draft or self._draft)[item.id]
        found = self._look(item.id, values)
        problem = problem_of(item, known.value, values) or (unlisted(known.value, found) if found else None)
        options = item.options(values) if item.options else found
        hints = item.hints(values) if item.hints else ()
        return View(item, known, needs_answer(item, values), options, problem, item.example_for(values), hints)

    def _focus_among(self, views: tuple[View, ...]) -> str | None:
        if self._focus in {view.field.id for view in views}:
            return self._focus
        waiting = [view.field.id for view in views if view.problem]
        if waiting:
            return waiting[0]
        return views[0].field.id if len(views) == 1 else None


def _groups(draft: Draft) -> dict[str, list[Field]]:
    """Return the questions that apply with their fields, in order."""
    groups: dict[str, list[Field]] = {}
    for item in draft.active():
        groups.setdefault(item.group, []).append(item)
    return groups


def _unsettled(draft: Draft, group_id: str) -> bool:
    return any(draft[item.id].status is not Status.CONFIRMED for item in _groups(draft).get(group_id, []))


def _known(draft: Draft, name: str) -> str:
    """Return the id of a field that applies, from its id or the end of it."""
    active = [item.id for item in draft.active()]
    if name in active:
        return name
    ending = [field_id for field_id in active if field_id.endswith("." + name)]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise InputError(f"{name!r} may be {' or '.join(ending)}", next_step="give the whole name")
    unasked = [field_id for field_id in BY_ID if field_id == name or field_id.endswith("." + name)]
    if unasked:
        unmet = next(condition for condition in BY_ID[unasked[0]].when if not condition.holds(draft.values()))
        raise InputError(f"{unasked[0]} is asked only if {unmet.words()}", next_step=f"answer {unmet.field} first")
    near = nearest(name, [*active, *dict.fromkeys(BY_ID[field_id].group for field_id in active), *ROUNDS])
    raise InputError(f"there is no question {name!r}", next_step=f"did you mean {near}?" if near else "see the review")
