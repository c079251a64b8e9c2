"""The agents that make no choices, and how agents are named."""

import pytest
from room import Room

from harness.agents import BUILT_IN, NAMES, get_agent
from harness.agents.fake import FakeAgent
from harness.agents.feedback import MAX_MESSAGE, Feedback, clip
from harness.errors import InputError


def room() -> Room:
    """Return an empty workspace."""
    return Room(None, {}, lambda files: ("scored", 1.0))


def test_oracle_runs_the_solution_and_hands_in_only_if_that_worked() -> None:
    agent, work = get_agent("oracle"), room()
    assert agent.needs_solution
    assert agent.run(work) == 0
    (command,) = work.commands
    assert command[:2] == ("sh", "-c")
    assert '/solve.sh" && rsi-submit' in command[2]


def test_nop_changes_nothing_and_hands_in() -> None:
    agent, work = get_agent("nop"), room()
    assert agent.run(work) == 0
    assert work.commands == [("rsi-submit", "-m", "the untouched workspace")]
    assert work.files == {}


def test_script_runs_its_command_as_it_is() -> None:
    agent, work = get_agent("script", ["sh", "-c", "echo $HOME; rm -rf *"]), room()
    assert agent.run(work) == 0
    assert work.commands == [("sh", "-c", "echo $HOME; rm -rf *")]


def test_fake_leaves_out_the_steps_that_the_journal_holds() -> None:
    work = room()
    seen: list[int] = []

    def step(number: int) -> None:
        seen.append(number)
        work.submit(str(number))

    steps = [lambda _, number=number: step(number) for number in range(4)]
    FakeAgent(steps[:2]).run(work)
    FakeAgent(steps).run(work)
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("name", NAMES)
def test_every_agent_accepts_a_task_that_it_can_work_on(name: str) -> None:
    agent = get_agent(name, ["true"] if name == "script" else [])
    assert agent.name == name
    if name != "search":
        agent.check(None)
    assert (name in BUILT_IN) == (name != "script")


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("magic", [], "there is no agent 'magic'"),
        ("script", [], "needs a command"),
        ("nop", ["true"], "takes no command"),
    ],
)
def test_wrong_names(name: str, command: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        get_agent(name, command)
    assert caught.value.next_step


def test_feedback_shows_what_is_there_and_nothing_else() -> None:
    whole = Feedback(3, "scored", 2, 0.5, "loss", 1.23456789, 1.1, 1.2, 1.3, 0.01, "well done")
    assert whole.text().splitlines() == [
        "submission: 3", "verdict: scored", "loss: 1.23457", "score: 1.1", "best: 1.2", "baseline: 1.3", "noise: 0.01",
        "submissions left: 2", "working hours left: 0.500", "message: well done",
    ]  # fmt: skip
    assert "loss" not in Feedback(3, "invalid", 2, 0.5, "loss").text()
    assert '"message": "größer"' in Feedback(1, "invalid", 0, 0.0, message="größer").as_json()


@pytest.mark.parametrize("text", ["", "short", "ü" * MAX_MESSAGE, "a" + "漢" * MAX_MESSAGE, "\ud800" * 3000])
def test_a_message_is_cut_between_characters(text: str) -> None:
    cut = clip(text)
    assert len(cut.encode("utf-8", "replace")) <= MAX_MESSAGE
    assert cut in {text, text[: len(cut)], "?" * len(cut)}
