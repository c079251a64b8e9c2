"""The plain front with a scripted person: every command, every way of leaving, and a whole interview."""

from pathlib import Path

import pytest

from harness.errors import InputError, Interrupted
from rsi_anything.contract.draft import Draft, Evidence, Status, Who
from rsi_anything.contract.fields import CATALOGUE
from rsi_anything.interview.guided import follow
from rsi_anything.interview.machine import REVIEW, Answer, Confirm, Jump, Machine
from rsi_anything.interview.plain import Plain

EXAMPLES = {field.id: field.example for field in CATALOGUE} | {"evaluation.kind": "next-token"}
CODE = "def load():\n    return 1\n"


class Memory:
    def save(self, draft: Draft, at: str) -> None:
        self.draft, self.at = draft, at


class Script:
    """A person who types these lines and then closes the terminal."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.said: list[str] = []
        self.editor = lambda text: None

    def say(self, text: str = "") -> None:
        self.said.append(text)

    def ask(self, prompt: str) -> str:
        self.said.append(prompt)
        if not self.lines:
            raise EOFError
        line = self.lines.pop(0)
        if line == "^C":
            raise KeyboardInterrupt
        return line

    def ask_lines(self, prompt: str) -> str:
        lines = []
        while (line := self.ask(prompt)) != ".":
            lines.append(line)
        return "\n".join(lines)

    def edit(self, text: str, suffix: str) -> str | None:
        return self.editor(text)

    @property
    def text(self) -> str:
        return "\n".join(self.said)


class End:
    def __init__(self) -> None:
        self.written = 0

    def preview(self) -> str:
        return "TREE"

    def diff(self) -> str:
        return "DIFF"

    def question(self) -> str:
        return "Write?"

    def write(self) -> None:
        self.written += 1


def talk(*lines: str, at: str = "", draft: Draft | None = None, **options):
    screen, end = Script(*lines), End()
    for name, value in options.items():
        setattr(screen, name, value)
    machine = Machine((draft or Draft()).with_defaults(), Memory(), at=at, follow=follow)
    left = None
    try:
        Plain(machine, screen, end, "rsi new --resume x").run()
    except Interrupted as error:
        left = error
    return machine, screen, end, left


def finished() -> Draft:
    machine = Machine(Draft().with_defaults(), Memory())
    while machine.state.group is not None:
        focus = machine.state.focus
        machine.send(Answer(focus, EXAMPLES[focus]) if focus else Confirm())
    return machine.draft


@pytest.mark.parametrize(
    ("lines", "words"), [((), "input ended"), (("^C",), "stopped"), ((":quit",), "left"), ((":q",), "left")]
)
def test_every_way_of_leaving_names_the_command_that_comes_back(lines, words) -> None:
    _, _, end, left = talk(*lines)
    assert words in left.what
    assert left.next_step == "rsi new --resume x"
    assert end.written == 0


def test_no_at_the_end_leaves_as_well() -> None:
    _, screen, end, left = talk("n", at=REVIEW, draft=finished())
    assert "nothing was written" in left.what
    assert end.written == 0
    assert "TREE" in screen.text


def test_yes_writes_once_after_the_difference() -> None:
    _, screen, end, left = talk("d", "y", at=REVIEW, draft=finished())
    assert left is None
    assert end.written == 1
    assert "DIFF" in screen.text


def test_refusal_to_write_keeps_the_conversation() -> None:
    class Full(End):
        def write(self) -> None:
            raise InputError("no room", next_step="make some")

    screen = Script("y")
    machine = Machine(finished(), Memory(), at=REVIEW)
    with pytest.raises(Interrupted):
        Plain(machine, screen, Full(), "c").run()
    assert "no room" in screen.text


def test_groups_are_taken_with_one_enter_and_changed_by_number() -> None:
    draft = Draft()
    for name in ("source.name", "source.title", "source.category"):
        evidence = [Evidence("README.md", 1, 1, "heading")]
        draft = draft.suggest(name, EXAMPLES[name], Who.PROJECT, evidence=evidence)
    machine, screen, _, _ = talk("3", "other", "", at="source.identity", draft=draft)
    assert machine.draft["source.track"].value == "public"
    assert machine.draft["source.track"].confirmed_by is Who.PERSON
    assert "README.md:1  heading" in screen.text
    assert "'other' is none of public, signature" in screen.text
    machine, _, _, _ = talk("title", "人的题目 🧪 שלום", "", at="source.identity", draft=draft)
    assert machine.draft["source.title"].value == "人的题目 🧪 שלום"
    assert machine.state.group.id == "question.question"


def test_back_goto_skip_and_help() -> None:
    machine, screen, _, _ = talk("<", "?", ":goto tokens", "?", ":skip", at="source.identity")
    assert machine.draft["compute.budget.tokens"].status is Status.CONFIRMED
    assert "Which project is it?" in screen.text
    assert ":goto NAME" in screen.text
    assert "In an answers file: compute.budget.tokens" in screen.text


def test_first_question_has_nothing_before_it() -> None:
    _, screen, _, _ = talk("<")
    assert "first question" in screen.text


def test_unknown_command_names_the_nearest() -> None:
    _, screen, _, _ = talk(":revew")
    assert "did you mean :review?" in screen.text


def test_wrong_answers_are_explained_and_asked_again() -> None:
    machine, screen, _, _ = talk("Not A Slug", "good", at="source.identity")
    assert "lower-case" in screen.text
    assert machine.draft["source.name"].value == "good"


def test_enter_without_a_draft_asks_again() -> None:
    _, screen, _, _ = talk("", at="source.identity")
    assert "name needs an answer" in screen.text


def test_long_text_by_lines_editor_and_file(tmp_path: Path) -> None:
    machine, _, _, _ = talk(":lines", "一行", "", "二行目", ".", at="question.question")
    assert machine.draft["question.question"].value == "一行\n\n二行目"
    machine, _, _, _ = talk(":edit", at="question.question", editor=lambda text: text + "asked\n")
    assert machine.draft["question.question"].value == "asked"
    (tmp_path / "a.py").write_text(CODE, encoding="utf-8")
    draft = Draft().answer("evaluation.kind", "next-token", Who.PERSON)
    machine, screen, _, _ = talk(
        "x = 1", f":file {tmp_path / 'no.py'}", f":file {tmp_path / 'a.py'}", at="evaluation.code", draft=draft
    )
    assert machine.draft["evaluation.adapter"].value == CODE
    assert "several lines" in screen.text
    assert "no such file" in screen.text


def test_editor_opens_with_the_shape_the_judge_expects_and_unchanged_is_no_answer() -> None:
    seen = []
    draft = Draft().answer("evaluation.kind", "next-token", Who.PERSON)
    machine, screen, _, _ = talk(":edit", at="evaluation.code", draft=draft, editor=seen.append)
    assert "def logits" in seen[0]
    assert machine.draft["evaluation.adapter"].status is Status.OPEN
    assert "left as it was" in screen.text


def test_edit_names_a_field_or_asks_which() -> None:
    machine, screen, _, _ = talk("", ":edit", at="", draft=finished().review("source.license", "x"))
    machine, screen, _, _ = talk(":edit", at="boundary.size")
    assert "which one?" in screen.text
    machine, _, _, _ = talk(":edit max_mb", at="boundary.size", editor=lambda text: "7")
    assert machine.draft["boundary.max_mb"].value == 7.0


def test_pasted_lines_never_reach_the_next_question() -> None:
    machine, screen, _, _ = talk(
        "one\ntwo\nthree", at="source.identity", draft=Draft().answer("source.name", "x", Who.PERSON)
    )
    assert "one line" in screen.text
    assert machine.draft["source.title"].status is not Status.CONFIRMED
    machine, _, _, _ = talk("a.py\nb.py", at="boundary.files")
    assert machine.draft["boundary.editable"].value == ["a.py", "b.py"]


def test_review_shows_status_and_evidence_and_goes_anywhere() -> None:
    draft = finished().review("evaluation.metric.unit", "metric changed")
    machine, screen, end, _ = talk("", "", "kind", at=REVIEW, draft=draft)
    assert "evaluation" in screen.text
    assert "to review" in screen.text
    assert "metric changed" in screen.text
    assert end.written == 0
    assert machine.state.focus == "evaluation.kind"
    machine, screen, _, _ = talk("1", at=REVIEW, draft=finished())
    assert machine.state.focus == "source.project"


def test_terminal_codes_of_a_project_are_not_passed_on(capsys, monkeypatch) -> None:
    from rsi_anything.interview.terminal import Terminal

    Terminal().say("a\x1b[31mb\nc")
    assert capsys.readouterr().err == "a\ufffd[31mb\nc\n"


def test_machine_can_be_driven_from_the_review_by_name() -> None:
    machine = Machine(finished(), Memory(), at=REVIEW)
    assert machine.send(Jump("hours")).focus == "compute.budget.hours"


@pytest.mark.parametrize(("word", "meant"), [("back", "<"), ("help", "?"), ("Quit", ":quit")])
def test_a_word_that_may_be_a_command_is_asked_about(word: str, meant: str) -> None:
    draft = Draft().answer("source.name", "x", Who.PERSON)
    machine, screen, _, _ = talk(word, at="source.identity", draft=draft)
    assert f"did you mean {meant} ?" in screen.text
    title = "source.title"
    assert machine.draft[title].status is not Status.CONFIRMED
    machine, _, _, _ = talk(":goto title", word, word, at="source.identity", draft=draft)
    assert machine.draft[title].value == word
    _, screen, end, _ = talk(word, at=REVIEW, draft=finished())
    assert f"did you mean {meant} ?" in screen.text
    assert end.written == 0


def test_review_shows_optional_answers_and_units() -> None:
    draft = Draft().answer("compute.budget.hours", 2.0, Who.PERSON)
    _, screen, _, _ = talk(at=REVIEW, draft=draft)
    lines = {line.split()[1]: line for line in screen.text.split("\n") if len(line.split()) > 2}
    assert " 2.0 hours" in lines["budget.hours"]
    assert "4096 MiB" in lines["memory_mb"]
    assert " optional " in lines["budget.tokens"]
    assert " open " in lines["name"]


def test_examples_and_hints_fit_what_was_answered() -> None:
    draft = Draft().answer("evaluation.kind", "predictions", Who.PERSON)
    _, screen, _, _ = talk(":goto measure", at="evaluation.metric", draft=draft)
    assert "such as: accuracy" in screen.text
    assert "such as: nll" not in screen.text
    _, screen, _, _ = talk("?", at="evaluation.code", draft=draft)
    assert ".predict(rows)" in screen.text
    assert ".logits" not in screen.text
    _, screen, _, _ = talk(":goto floor", "learning rate 0", at="baseline.start")
    assert "learning_rate = (.*)" in screen.text
    assert "range =" not in screen.text
