"""The guided interviewer: drafts with evidence, drafts that follow from answers, and never a confirmation."""

from dataclasses import dataclass

from rsi_anything.contract.catalogue.judging import MEASURES
from rsi_anything.contract.draft import Draft, Evidence, Status, Who
from rsi_anything.contract.fields import BY_ID
from rsi_anything.interview.guided import DOMAINS, RULES, drafted, follow


@dataclass(frozen=True)
class Lines:
    path: str
    line_from: int = 0
    line_to: int = 0
    fact: str = "seen"


@dataclass(frozen=True)
class Hint:
    value: object
    evidence: tuple[Lines, ...] = ()
    confidence: float = 0.9
    reason: str = "found"


def test_suggestions_become_drafts_with_evidence() -> None:
    draft = drafted(
        Draft(),
        {
            "baseline.command": Hint("python train.py", (Lines("README.md", 3, 4, "how to train"),)),
            "baseline.outputs": Hint(("model.json",), (Lines("train.py"),)),
        },
    )
    known = draft["baseline.command"]
    assert known.status is Status.DRAFT
    assert known.who is Who.PROJECT
    assert known.evidence == (Evidence("README.md", 3, 4, "how to train"),)
    assert draft["baseline.outputs"].value == ["model.json"]
    assert draft["baseline.outputs"].evidence[0].place() == "train.py"
    assert draft["compute.python"].who is Who.DEFAULT


def test_weak_and_wrong_suggestions_are_dropped() -> None:
    draft = drafted(
        Draft(),
        {
            "source.name": Hint("Not A Name"),
            "source.title": Hint("maybe", confidence=0.1),
            "compute.budget.hours": Hint("two"),
            "nothing.known": Hint("x"),
        },
    )
    for name in ("source.name", "source.title", "compute.budget.hours"):
        assert draft[name].status is Status.OPEN


def test_what_follows_from_a_measure() -> None:
    draft = follow(Draft().with_defaults().answer("evaluation.kind", "predictions", Who.PERSON))
    draft = follow(draft.answer("evaluation.measure", "accuracy", Who.PERSON))
    assert draft["evaluation.metric.direction"].value == "maximize"
    assert draft["evaluation.metric.highest"].value == 1.0
    assert draft["evaluation.metric.highest"].status is Status.DRAFT
    draft = follow(draft.answer("evaluation.measure", "mse", Who.PERSON))
    assert draft["evaluation.metric.direction"].value == "minimize"
    assert draft["evaluation.metric.highest"].status is Status.OPEN
    assert follow(draft) == draft


def test_following_never_overrules_a_person_or_the_project() -> None:
    draft = Draft().answer("evaluation.metric.direction", "minimize", Who.PERSON)
    draft = draft.suggest("evaluation.metric.name", "top1", Who.PROJECT)
    draft = follow(draft.answer("evaluation.measure", "accuracy", Who.PERSON))
    assert draft["evaluation.metric.direction"].value == "minimize"
    assert draft["evaluation.metric.name"].value == "top1"


def test_data_and_files_follow() -> None:
    draft = Draft().answer("evaluation.kind", "predictions", Who.PERSON)
    draft = follow(draft.answer("evaluation.data.file", "a.csv", Who.PERSON))
    assert draft["evaluation.data.split"].value == "rows"
    assert draft["boundary.frozen"].value == ["a.csv"]
    draft = follow(draft.answer("boundary.editable", ["train.py"], Who.PERSON))
    assert draft["boundary.deliver"].value == ["train.py"]


def test_every_measure_has_its_domain_and_every_rule_its_field() -> None:
    assert set(DOMAINS) == {measure for measures in MEASURES.values() for measure in measures}
    assert set(RULES) <= set(BY_ID)
