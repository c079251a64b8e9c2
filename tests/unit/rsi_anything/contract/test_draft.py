"""Drafts: who may confirm, what becomes to review, and how a specification comes out."""

import json
from dataclasses import replace

import pytest

from harness.errors import InputError
from rsi_anything.contract.draft import (
    Draft,
    DraftError,
    Evidence,
    Status,
    Who,
    draft_from_json,
    draft_from_spec,
)
from rsi_anything.contract.fields import BY_ID, CATALOGUE, default_of

ANSWERS = {
    "source.name": "tiny",
    "source.title": "Tiny 小さい",
    "source.category": "regression",
    "question.question": "Can it be better?",
    "baseline.description": "A line.",
    "baseline.command": "python train.py",
    "evaluation.mode": "retrain",
    "evaluation.kind": "predictions",
    "evaluation.data.file": "data.csv",
    "evaluation.data.split": "rows",
    "evaluation.data.holdout": 0.2,
    "evaluation.data.label": "y",
    "evaluation.measure": "mse",
    "evaluation.metric.name": "mse",
    "evaluation.metric.direction": "minimize",
    "evaluation.metric.lowest": 0,
    "evaluation.metric.highest": 100,
    "evaluation.adapter": "def predict():\n    ...\n",
    "boundary.editable": ["train.py"],
    "boundary.deliver": ["train.py"],
    "compute.budget.hours": 1,
    "compute.budget.submissions": 8,
}


def whole() -> Draft:
    draft = Draft()
    for name, value in ANSWERS.items():
        draft = draft.answer(name, value, Who.PERSON)
    return draft


def test_answers_make_a_specification_and_back() -> None:
    spec = whole().with_defaults().to_spec()
    assert spec.source.title == "Tiny 小さい"
    assert spec.evaluation.data is not None
    assert spec.evaluation.data.label == "y"
    assert draft_from_spec(spec, Who.ANSWERS).to_spec() == spec


def test_custom_without_data_leaves_the_table_out() -> None:
    draft = whole().answer("evaluation.kind", "custom", Who.PERSON)
    draft = draft.answer("evaluation.data.file", None, Who.PERSON)
    draft = draft.answer("evaluation.evaluator", "def evaluate(c): ...\n", Who.PERSON)
    spec = draft.to_spec()
    assert spec.evaluation.data is None
    assert spec.evaluation.measure is None
    back = draft.answer("evaluation.kind", "predictions", Who.PERSON)
    assert back["evaluation.adapter"].value == ANSWERS["evaluation.adapter"]


def test_all_problems_come_at_once() -> None:
    with pytest.raises(DraftError) as caught:
        Draft().to_spec()
    named = {problem.field for problem in caught.value.problems}
    assert set(ANSWERS) - named <= {"evaluation.data.split", "evaluation.data.holdout", "evaluation.data.label"}
    assert "and" in caught.value.what


def test_cross_problem_is_put_under_a_field() -> None:
    draft = whole().answer("evaluation.metric.lowest", 1000, Who.PERSON)
    assert draft["evaluation.metric.highest"].status is Status.TO_REVIEW
    assert [problem.field for problem in draft.problems()] == ["evaluation.metric.highest"]


def test_only_a_person_or_an_answers_file_confirms() -> None:
    for who in (Who.PROJECT, Who.DEFAULT, Who.MODEL):
        with pytest.raises(AssertionError):
            Draft().answer("source.name", "x", who)
        with pytest.raises(AssertionError):
            Draft().suggest("source.name", "x", who).confirm("source.name", who)
        assert Draft().suggest("source.name", "x", who)["source.name"].status is Status.DRAFT


def test_suggestion_never_touches_what_a_person_said() -> None:
    draft = Draft().answer("source.name", "mine", Who.PERSON)
    assert draft.suggest("source.name", "other", Who.MODEL) == draft
    review = draft.review("source.name", "look again")
    assert review.suggest("source.name", "other", Who.MODEL) == review


def test_confirming_keeps_evidence_and_origin() -> None:
    evidence = (Evidence("train.py", 3, 5, "prints val_loss"),)
    draft = Draft().suggest("evaluation.metric.name", "val_loss", Who.PROJECT, evidence=evidence, reason="printed")
    answer = draft.confirm("evaluation.metric.name", Who.PERSON)["evaluation.metric.name"]
    assert answer.status is Status.CONFIRMED
    assert answer.who is Who.PROJECT
    assert answer.confirmed_by is Who.PERSON
    assert answer.evidence == evidence
    assert evidence[0].place() == "train.py:3-5"
    assert replace(evidence[0], last=3).place() == "train.py:3"


def test_change_moves_dependents_to_review_and_keeps_their_values() -> None:
    draft = whole()
    changed = draft.answer("evaluation.kind", "next-token", Who.PERSON)
    assert changed["evaluation.measure"].status is Status.TO_REVIEW
    assert changed["evaluation.measure"].value == "mse"
    assert "kind changed" in changed["evaluation.measure"].reason
    assert changed["source.name"].status is Status.CONFIRMED
    with pytest.raises(InputError, match="none of nll, bits"):
        changed.confirm("evaluation.measure", Who.PERSON)
    again = draft.answer("evaluation.kind", "predictions", Who.PERSON)
    assert again == draft


def test_missing_lists_what_is_not_confirmed() -> None:
    draft = whole()
    missing = {field.id for field in draft.missing()}
    assert not missing & set(ANSWERS)
    assert missing == {field.id for field in draft.active() if field.id not in ANSWERS}
    for field in draft.missing():
        draft = draft.confirm(field.id, Who.PERSON)
    assert draft.missing() == []
    assert draft["compute.budget.tokens"].value is None


def test_defaults_are_drafts() -> None:
    draft = Draft().with_defaults()
    for field in CATALOGUE:
        default = default_of(field)
        assert draft[field.id].status is (Status.OPEN if default is None else Status.DRAFT)


def test_json_round_trip() -> None:
    draft = whole().with_defaults().suggest("source.license", "MIT", Who.PROJECT, evidence=(Evidence("LICENSE", 1),))
    assert draft_from_json(json.loads(json.dumps(draft.as_json()))) == draft


def test_flag_is_not_a_number() -> None:
    draft = Draft().answer("compute.network", True, Who.PERSON)
    with pytest.raises(InputError, match="wants yes or no"):
        draft.answer("compute.network", 1, Who.PERSON)
    assert BY_ID["compute.network"].round == "compute"
