"""Budgets and the mailbox on fake boxes: what is refused, what is charged, and what an agent can do with its inbox."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import Stage, assert_whole, outcome, request, write_result

from harness import paths
from harness.agents.base import Workspace
from harness.agents.fake import FakeAgent
from harness.errors import InputError
from harness.run.folder import RunFolder
from harness.run.journal import read_events
from harness.run.state import Event, Kind, State, Status


def forever(work: Workspace) -> None:
    """Work until the run ends."""
    while True:
        work.wait(0.01)


def replies(folder: RunFolder) -> dict[str, tuple[int, str]]:
    """Return exit code and text of each reply, by request."""
    found = {}
    for path in (folder.mailbox / "outbox").glob("*.reply"):
        code, _, text = path.read_text().partition("\n")
        found[path.stem] = (int(code), text)
    return found


def test_working_hours_end_the_run_and_judging_is_not_charged(stage: Stage) -> None:
    def slow(logs: Path, seed: int) -> None:
        stage.clock.now += 90 * 60
        write_result(logs, {"loss": 40.0})

    stage.special["40"] = slow

    def overstay(work: Workspace) -> None:
        stage.clock.now += 15 * 60
        forever(work)

    state = stage.run(stage.hand_in(40, hours=0.5), stage.hand_in(30, hours=0.25), overstay)
    assert outcome(state) == [("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    assert state.agent_reason == "the budget of hours is spent"
    assert state.status is Status.COMPLETED
    assert state.ledger["working"] == pytest.approx(3600)
    assert state.ledger["judging"] == pytest.approx(90 * 60)
    first, second = stage.feedback
    assert first is not None
    assert second is not None
    assert (first.working_hours_left, second.working_hours_left) == (0.5, 0.25)


def test_hours_that_run_out_before_the_first_submission_leave_the_final_state(stage: Stage) -> None:
    def late(work: Workspace) -> None:
        work.write("value.txt", b"value = 25\n")
        stage.clock.now += 3600
        forever(work)

    state = stage.run(late)
    assert outcome(state) == [("scored", 25.0, 1.5)]
    assert state.ledger["working"] == pytest.approx(3600)


def test_the_cooldown_counts_working_seconds_alone(tiny_task: Callable[..., Path], stage: Stage) -> None:
    stage.task = tiny_task("patient", change={"hours = 1": "hours = 1\ncooldown_sec = 100"})

    def judged_slowly(logs: Path, seed: int) -> None:
        stage.clock.now += 1000
        write_result(logs, {"loss": 40.0})

    stage.special["40"] = judged_slowly

    def hasty(work: Workspace) -> None:
        stage.clock.now += 40
        assert work.submit("too early") is None
        stage.clock.now += 60
        stage.hand_in(30)(work)

    state = stage.run(stage.hand_in(40), hasty)
    assert outcome(state) == [("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    events = list(read_events(paths.runs() / "staged" / "journal.jsonl"))
    refused = [event for event in events if event["kind"] == Kind.REQUEST_REFUSED]
    assert [event["reason"] for event in refused] == [
        "wait 60 more working seconds: the cooldown between submissions is 100 s"
    ]
    assert state.refused == 1


def test_each_verdict_has_its_exit_status_and_what_is_too_much_is_refused(stage: Stage) -> None:
    stage.special["broken"] = lambda logs, seed: None
    planned = stage.plan(FakeAgent())

    def burst(work: Workspace) -> None:
        for value in ("40", "nothing", "broken"):
            stage.hand_in(value)(work)
        work.write("frozen.txt", b"changed\n")
        for index in range(3):
            request(planned.mailbox, f"burst-{index}")
        while len(list((planned.mailbox / "outbox").glob("burst-*.reply"))) < 3:
            work.wait(0.01)

    state = stage.work(planned, FakeAgent([burst]))
    assert state is not None
    found = replies(planned)
    named = [found[one.id][0] for one in state.submissions]
    assert [str(one.verdict) for one in state.submissions] == ["scored", "invalid", "no_measurement", "violation"]
    assert named == [0, 1, 4, 1]
    assert found["burst-1"] == (3, "refused: all submissions of the budget are used up\n")
    assert found["burst-2"][0] == 3
    assert state.used_submissions == 3
    assert_whole(planned, state)


def test_the_agent_may_end_by_itself_after_its_last_submission(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.engine.GRACE_SEC", 30.0)
    state = stage.run(stage.hand_in(40), lambda work: work.wait(0.05), submissions=1)
    assert state.agent_reason == "the agent ended"
    assert state.agent_code == 0


def test_whatever_lies_in_the_inbox_does_no_more_than_be_refused(stage: Stage, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    planned = stage.plan(FakeAgent())
    inbox = planned.mailbox / "inbox"

    def abuse(work: Workspace) -> None:
        (inbox / "link.req").symlink_to(secret)
        (inbox / "folder.req").mkdir()
        (inbox / "full.req").mkdir()
        (inbox / "full.req" / "deep").mkdir()
        os.mkfifo(inbox / "fifo.req")
        os.link(secret, inbox / "hard")
        (inbox / "..req").write_text("")
        (inbox / ("x" * 200 + ".req")).write_text("")
        (inbox / "spaces and ümlauts.req").write_text("")
        (inbox / "a\nb.req").write_text("")
        with (inbox / "huge").open("wb") as file:
            file.truncate(20 << 30)
        request(planned.mailbox, "giant", "ü" * (5 << 20))
        while not (planned.mailbox / "outbox" / "giant.reply").exists():
            work.wait(0.01)
        request(planned.mailbox, "giant", "the same id again")  # answered before: swept away
        request(planned.mailbox, "final-state", "the engine's own word")
        while not (planned.mailbox / "outbox" / "final-state.reply").exists():
            work.wait(0.01)
        stage.hand_in(30)(work)

    state = stage.work(planned, FakeAgent([abuse]))
    assert state is not None
    assert [one.id for one in state.submissions][:2] == ["giant", "final-state"]
    assert outcome(state)[-1] == ("scored", 30.0, 1.4)
    assert len(state.submissions) == 3
    assert len(state.submissions[0].message.encode()) <= 4096
    assert set(state.submissions[0].message) == {"ü"}
    left = sorted(path.name for path in inbox.iterdir() if not path.name.startswith("."))
    assert left == ["full.req"]  # what is filled stays and counts as nothing
    assert secret.read_text() == "top secret"
    assert "top secret" not in planned.journal.read_text()
    assert_whole_but_inbox(planned, state)


def assert_whole_but_inbox(folder: RunFolder, state: State) -> None:
    """Check the record after removing what a mailbox may leave."""
    (folder.mailbox / "inbox" / "full.req" / "deep").rmdir()
    (folder.mailbox / "inbox" / "full.req").rmdir()
    assert_whole(folder, state)


def test_a_flood_is_answered_slowly_and_does_not_outlast_the_budget(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.engine.MANY_REFUSALS", 5)
    planned = stage.plan(FakeAgent())

    def flood(work: Workspace) -> None:
        for index in range(300):
            request(planned.mailbox, f"flood-{index:03d}")
        forever(work)

    monkeypatch.setattr("harness.run.engine.REFUSAL_PAUSE_SEC", 0.002)
    state = stage.work(planned, FakeAgent([flood]))
    assert state is not None
    assert len(state.submissions) == 3
    assert 0 < state.refused <= 300
    assert state.agent_reason == "the budget of submissions is spent"


def test_a_refusal_that_an_engine_died_on_is_answered_by_the_next(stage: Stage) -> None:
    planned = stage.plan(FakeAgent())

    def burst(work: Workspace) -> None:
        for index in range(5):
            request(planned.mailbox, f"burst-{index}")
        forever(work)

    def refused(event: Event, state: State) -> bool:
        return event["kind"] == Kind.REQUEST_REFUSED

    assert stage.work(planned, FakeAgent([burst]), refused) is None
    assert "burst-3" not in replies(planned)
    state = stage.work(planned, FakeAgent())
    assert state is not None
    assert replies(planned)["burst-3"] == (3, "refused: the run was interrupted meanwhile; hand in again\n")
    assert_whole(planned, state)


def test_what_was_handed_in_to_a_dead_engine_comes_before_the_agent_goes_on(stage: Stage) -> None:
    planned = stage.plan(FakeAgent())
    agent = FakeAgent([stage.hand_in(40), stage.hand_in(30)])

    def opened(event: Event, state: State) -> bool:
        return event["kind"] == Kind.SUBMISSION_OPENED

    assert stage.work(planned, agent, opened) is None
    assert not stage.judged
    request(planned.mailbox, "host-left-over", "handed in while no engine was there")
    state = stage.work(planned, agent)
    assert state is not None
    assert [one.metric for one in state.submissions] == [40.0, 40.0]
    assert [one.message for one in state.submissions] == ["40", "handed in while no engine was there"]
    assert_whole(planned, state)


@pytest.mark.parametrize("wish", [{"submissions": 0}, {"submissions": -1}, {"hours": 0.0}, {"name": "../out"}])
def test_wishes_that_cannot_be(stage: Stage, wish: dict[str, object]) -> None:
    with pytest.raises(InputError):
        stage.plan(FakeAgent(), **wish)


def test_the_status_says_what_is_left(stage: Stage) -> None:
    planned = stage.plan(FakeAgent())
    state = stage.work(planned, FakeAgent([stage.hand_in(40, hours=0.25)]))
    assert state is not None
    status = json.loads((planned.mailbox / "outbox" / "status.json").read_text())
    assert status["best"] == 40.0
    assert (status["submissions_used"], status["submissions_left"]) == (1, 2)
    assert status["working_hours_left"] == 0.75
    assert status["baseline"] == 50.0
