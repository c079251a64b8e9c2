"""The state machine: moves, what is kept, and what becomes to review; then any sequence of moves with crashes."""

import os
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.errors import InputError
from rsi_anything.contract.draft import Draft, Status, Who
from rsi_anything.contract.fields import BY_ID, CATALOGUE, GROUPS, ROUNDS
from rsi_anything.interview.machine import REVIEW, Answer, Back, Confirm, Jump, Machine, Propose, Skip
from rsi_anything.interview.session import create, new_setting, resume

EXAMPLES = {field.id: field.example for field in CATALOGUE}


class Memory:
    def __init__(self) -> None:
        self.draft, self.at, self.saves = Draft(), "", 0

    def save(self, draft: Draft, at: str) -> None:
        self.draft, self.at, self.saves = draft, at, self.saves + 1


def machine(draft: Draft | None = None) -> tuple[Machine, Memory]:
    memory = Memory()
    return Machine(draft if draft is not None else Draft().with_defaults(), memory), memory


def answer_all(made: Machine) -> None:
    """Give every asked field its example, as a person would go."""
    values = {**EXAMPLES, "evaluation.kind": "next-token"}
    for _ in range(200):
        state = made.state
        if state.group is None:
            return
        made.send(Answer(state.focus, values[state.focus]) if state.focus else Confirm())


def test_straight_through_to_a_specification() -> None:
    made, memory = machine()
    answer_all(made)
    assert made.state.ready
    assert made.state.round == REVIEW
    spec = made.spec()
    assert spec.evaluation.kind == "next-token"
    assert memory.draft == made.draft
    assert memory.at == REVIEW


def test_a_drafted_question_takes_one_confirmation() -> None:
    draft = Draft().with_defaults()
    for name in ("source.name", "source.title", "source.category"):
        draft = draft.suggest(name, EXAMPLES[name], Who.PROJECT)
    made, memory = machine(draft)
    made.send(Confirm())
    assert made.state.group.id == "source.identity"
    assert made.state.focus is None
    saves = memory.saves
    state = made.send(Confirm())
    assert state.group.id == "question.question"
    assert memory.saves == saves + 1


def test_confirming_with_an_open_field_names_it_and_changes_nothing() -> None:
    made, memory = machine()
    made.send(Confirm())
    saves = memory.saves
    with pytest.raises(InputError, match=r"source\.name needs an answer"):
        made.send(Confirm())
    assert made.state.focus == "source.name"
    assert memory.saves == saves
    assert made.draft["source.track"].status is Status.DRAFT


def test_back_then_forward_changes_nothing() -> None:
    made, memory = machine()
    made.send(Confirm())
    before, place = made.draft, made.state
    made.send(Back())
    assert made.state.group.id == "source.project"
    made.send(Confirm())
    assert made.draft == before
    assert made.state == place
    made.send(Back())
    with pytest.raises(InputError, match="first question"):
        made.send(Back())
    assert memory.at == "source.project"


def test_edit_after_the_review_returns_there_through_what_depended_on_it() -> None:
    made, _ = machine()
    answer_all(made)
    state = made.send(Jump("kind"))
    assert state.focus == "evaluation.kind"
    state = made.send(Answer("kind", "predictions"))
    assert state.group.id == "evaluation.data"
    assert made.draft["evaluation.measure"].status is Status.TO_REVIEW
    assert made.draft["evaluation.measure"].value == "nll"
    assert not made.send(Jump("review")).ready
    with pytest.raises(InputError, match="not confirmed"):
        made.spec()
    made.send(Jump("evaluation.data"))
    made.send(Answer("split", "rows"))
    assert made.state.focus == "evaluation.data.label"
    made.send(Answer("label", "price"))
    made.send(Confirm())
    assert made.state.focus == "evaluation.measure"
    made.send(Answer("measure", "mse"))
    for _ in range(20):
        if made.state.group is not None:
            made.send(Confirm())
    assert made.state.ready
    assert made.spec().evaluation.measure == "mse"


def test_problem_across_fields_leads_back_from_the_review() -> None:
    made, _ = machine()
    answer_all(made)
    made.send(Answer("lowest", 100))
    assert made.draft["evaluation.metric.highest"].status is Status.TO_REVIEW
    state = made.send(Confirm()) if made.state.group is None else made.state
    assert state.group.id == "evaluation.metric"
    assert state.focus == "evaluation.metric.highest"


@pytest.mark.parametrize(
    ("target", "words", "step"),
    [
        ("metric.nam", "no question", "evaluation.metric.name"),
        ("name", "may be source.name or evaluation.metric.name", "whole name"),
        ("evaluator", "asked only if evaluation.kind is custom", "evaluation.kind"),
        ("zzz", "no question", "review"),
        ("evaluation.evaluator", "asked only if evaluation.kind is custom", "evaluation.kind"),
        ("", "no question", ""),
    ],
)
def test_wrong_targets(target: str, words: str, step: str) -> None:
    made, _ = machine()
    with pytest.raises(InputError, match=words) as caught:
        made.send(Jump(target))
    assert step in caught.value.next_step


@pytest.mark.parametrize("name", [name for name in ROUNDS if name != REVIEW])
def test_every_round_can_be_reached(name: str) -> None:
    made, _ = machine()
    assert made.send(Jump(name)).round == name


def test_skip_only_what_may_be_left_out() -> None:
    made, _ = machine()
    made.send(Jump("tokens"))
    made.send(Skip("tokens"))
    assert made.draft["compute.budget.tokens"].status is Status.CONFIRMED
    with pytest.raises(InputError, match="needs an answer"):
        made.send(Skip("hours"))


def test_model_proposes_and_cannot_confirm() -> None:
    made, _ = machine()
    made.send(Propose("source.name", "abc", Who.MODEL, reason="short"))
    assert made.draft["source.name"].status is Status.DRAFT
    made.send(Answer("source.name", "mine"))
    made.send(Propose("source.name", "abc", Who.MODEL))
    assert made.draft["source.name"].value == "mine"


def test_an_answer_that_cannot_be_saved_is_not_taken() -> None:
    class Full(Memory):
        def save(self, draft: Draft, at: str) -> None:
            if self.saves:
                raise OSError(28, "full")
            super().save(draft, at)

    made = Machine(Draft().with_defaults(), Full())
    before = made.draft
    with pytest.raises(OSError, match="full"):
        made.send(Answer("source.name", "abc"))
    assert made.draft == before


VALUES = {
    "evaluation.kind": ["next-token", "predictions", "custom"],
    "evaluation.data.split": ["lines", "rows", "tail"],
    "evaluation.measure": ["nll", "mse"],
    "evaluation.metric.lowest": [0.0, 50],
    "evaluation.metric.highest": [20.0, 100],
    "source.title": ["a", "题目 🧪", "שלום"],
}


class Interview(RuleBasedStateMachine):
    """Any moves, with crashes between and within them: what was accepted is there, and statuses stay lawful."""

    @initialize()
    def start(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.before = os.environ.get("RSI_HOME")
        os.environ["RSI_HOME"] = self.home.name
        self.session = create("x", new_setting("/p", None), Draft().with_defaults())
        self.machine = Machine(self.session.draft, self.session)
        self.accepted: dict[str, object] = {}

    def teardown(self) -> None:
        if hasattr(self, "home"):
            self.session.close()
            self.home.cleanup()
            os.environ.pop("RSI_HOME")
            if self.before is not None:
                os.environ["RSI_HOME"] = self.before

    def send(self, event) -> bool:
        before = self.machine.draft
        try:
            self.machine.send(event)
        except InputError:
            assert self.machine.draft == before
            return False
        return True

    @rule(data=st.data(), name=st.sampled_from([field.id for field in CATALOGUE]))
    def answer(self, data, name) -> None:
        value = data.draw(st.sampled_from(VALUES.get(name, [EXAMPLES[name]])))
        if self.send(Answer(name, value)):
            self.accepted[name] = value

    @rule(name=st.sampled_from([field.id for field in CATALOGUE]))
    def skip(self, name) -> None:
        if self.send(Skip(name)):
            self.accepted[name] = None

    @rule()
    def confirm(self) -> None:
        state = self.machine.state
        if self.send(Confirm()):
            for view in state.views if state.group else ():
                self.accepted[view.field.id] = view.known.value

    @rule()
    def answer_what_is_asked(self) -> None:
        name = self.machine.state.focus
        if name and self.send(Answer(name, EXAMPLES[name])):
            self.accepted[name] = EXAMPLES[name]

    @rule(to=st.sampled_from([*ROUNDS, *(group.id for group in GROUPS), *EXAMPLES]))
    def jump(self, to) -> None:
        before = self.machine.draft
        self.send(Jump(to))
        assert self.machine.draft == before

    @rule()
    def back_and_forward(self) -> None:
        before, place = self.machine.draft, self.machine.state
        if not self.send(Back()):
            return
        assert self.machine.draft == before
        if self.machine.state.confirmed and all(v.known.status is Status.CONFIRMED for v in self.machine.state.views):
            self.send(Confirm())
            assert {name: a.value for name, a in self.machine.draft.answers.items()} == {
                name: a.value for name, a in before.answers.items()
            }
            unsettled = [v for v in place.views if v.known.status is not Status.CONFIRMED]
            if place.group is not None and unsettled:
                assert self.machine.state.group == place.group

    @rule(name=st.sampled_from([field.id for field in CATALOGUE]), who=st.sampled_from([Who.PROJECT, Who.MODEL]))
    def propose(self, name, who) -> None:
        self.send(Propose(name, EXAMPLES[name], who))

    @rule()
    def crash(self) -> None:
        at = self.machine.state.group
        draft = self.machine.draft
        (self.session.folder / "session.json.new").write_text('{"torn', encoding="utf-8")
        self.session.close()
        self.session = resume("x")
        self.machine = Machine(self.session.draft, self.session, at=self.session.at)
        assert self.machine.draft == draft
        assert self.machine.state.group == at

    @precondition(lambda self: hasattr(self, "machine"))
    @invariant()
    def accepted_answers_are_there(self) -> None:
        for name, value in self.accepted.items():
            assert self.machine.draft[name].value == value, name

    @precondition(lambda self: hasattr(self, "machine"))
    @invariant()
    def statuses_are_lawful(self) -> None:
        for name, known in self.machine.draft.answers.items():
            if known.status is Status.CONFIRMED:
                assert known.confirmed_by is Who.PERSON
                assert name in self.accepted
            if known.status is Status.DRAFT:
                assert known.value is not None
                assert known.who in {Who.PROJECT, Who.DEFAULT, Who.MODEL}
            if known.status is Status.TO_REVIEW:
                assert known.reason
        state = self.machine.state
        assert state.number <= state.total
        if state.ready:
            self.machine.spec()
        assert BY_ID


Interview.TestCase.settings = settings(max_examples=10, stateful_step_count=30, deadline=None)
TestInterview = Interview.TestCase


def test_what_the_project_has_is_listed_and_checked_at_once() -> None:
    draft = Draft().answer("evaluation.kind", "predictions", Who.PERSON)
    draft = draft.answer("evaluation.data.file", "a.csv", Who.PERSON).answer(
        "evaluation.data.split", "rows", Who.PERSON
    )
    draft = draft.suggest("evaluation.data.label", "prize", Who.PROJECT)
    draft = draft.answer("evaluation.data.holdout", 0.1, Who.PERSON).with_defaults()
    columns = ("size", "price")

    def look(name: str, _values: object) -> tuple[str, ...]:
        return columns if name == "evaluation.data.label" else ()

    made = Machine(draft, Memory(), at="evaluation.data", look=look)
    state = made.send(Jump("label"))
    view = next(view for view in state.views if view.field.id == state.focus)
    assert view.options == columns
    assert "did you mean price?" in (view.problem or "")
    for event in (Answer("evaluation.data.label", "prize"), Confirm("evaluation.data.label"), Confirm()):
        with pytest.raises(InputError, match="none of size, price"):
            made.send(event)
    made.send(Answer("evaluation.data.label", "price"))
    assert made.draft["evaluation.data.label"].status is Status.CONFIRMED
