"""Random agents, random kills, stops and dead hosts: whatever happens, a run's record and its promises hold."""

import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from stage import Stage, assert_whole, request

from harness.agents.script import Script
from harness.errors import RsiError
from harness.run.again import judge_again
from harness.run.journal import read_events
from harness.run.state import Event, Kind, State, Status, fold
from harness.run.verdict import Verdict
from harness.sandbox.fake import FakeBox

ACTIONS = st.one_of(
    st.tuples(st.just("hand in"), st.sampled_from(["40", "30", "100", "nothing", "broken", "flaky", "slow"])),
    st.tuples(st.just("burst"), st.integers(2, 4)),
    st.tuples(st.just("cheat"), st.none()),
    st.tuples(st.just("work"), st.sampled_from([10, 600, 1500])),
    st.tuples(st.just("junk"), st.none()),
    st.tuples(st.just("again"), st.none()),
)
NUMBERS = itertools.count(1)
EXAMPLES = int(os.environ.get("RSI_TEST_EXAMPLES", "15"))
"""How many runs are tried; more of them find rarer trouble."""


class Runs(RuleBasedStateMachine):
    """One run: its agent works through a list of actions, its engine comes and goes."""

    stage: Stage

    @initialize(
        actions=st.lists(ACTIONS, max_size=8),
        submissions=st.integers(1, 4),
        cooldown=st.sampled_from([0, 0, 300]),
    )
    def plan(self, actions: list[tuple[str, object]], submissions: int, cooldown: int) -> None:
        self.actions = list(actions)
        self.sent: list[str] = []
        self.flaky: set[int] = set()
        self.seen: dict[int, tuple[Verdict, float | None, float | None]] = {}
        self.rejudged: set[int] = set()
        self.budget = submissions
        self.stage.commands["agent"] = self.agent
        self.stage.special["broken"] = lambda logs, seed: None
        self.stage.special["flaky"] = self.judge_flaky
        self.stage.special["slow"] = self.judge_slowly
        self.stage.task = self.tasks[cooldown]
        name = f"machine-{next(NUMBERS)}"
        self.folder = self.stage.plan(Script(("go",)), ("go",), submissions=submissions, name=name)
        self.state = fold(read_events(self.folder.journal))

    tasks: Mapping[int, Path]

    # --- what the agent and the judge do ---------------------------------------------------------------------------

    def agent(self, box: FakeBox, env: Mapping[str, str], workdir: Path, logs: Path) -> int:
        """Work through the actions; one that was begun before a stop is not begun again."""
        while self.actions:
            what, value = self.actions.pop(0)
            box.checkpoint()
            if what == "work":
                self.stage.clock.now += int(str(value))
            elif what == "junk":
                (self.folder.mailbox / "inbox" / "junk").write_text("no request")
                (self.folder.mailbox / "inbox" / "link.req").symlink_to("/etc/passwd")
            elif what == "again":
                for name in self.sent[-1:]:
                    request(self.folder.mailbox, name, "the same once more")
            elif what == "burst":
                names = [self.send("one of a burst") for _ in range(int(str(value)))]
                self.wait(box, *names)
            else:
                (workdir / "value.txt").write_text(f"value = {value or 35}\n")
                (workdir / "frozen.txt").write_text("must stay\n" if what == "hand in" else "changed\n")
                self.wait(box, self.send(str(value)))
                (workdir / "frozen.txt").write_text("must stay\n")
        return 0

    def send(self, message: str) -> str:
        name = f"r-{len(self.sent):03d}"
        self.sent.append(name)
        request(self.folder.mailbox, name, message)
        return name

    def wait(self, box: FakeBox, *names: str) -> None:
        while not all((self.folder.mailbox / "outbox" / f"{name}.reply").exists() for name in names):
            box.sleep(0.003)

    def judge_flaky(self, logs: Path, seed: int) -> None:
        if seed in self.flaky:
            (logs / "reward.json").write_text('{"loss": 45}')
        self.flaky.add(seed)

    def judge_slowly(self, logs: Path, seed: int) -> None:
        self.stage.clock.now += 700
        (logs / "reward.json").write_text('{"loss": 60}')

    # --- what happens to the engine --------------------------------------------------------------------------------

    def work(self, kill: Callable[[Event, State], bool] | None = None) -> None:
        try:
            self.stage.work(self.folder, Script(("go",)), kill)
        except RsiError as error:
            if not any(each in error.what for each in ("gave no measurement", "is gone")):
                raise
        self.state = fold(read_events(self.folder.journal))

    @rule(after=st.integers(1, 25))
    def killed(self, after: int) -> None:
        """The engine dies right after some event."""
        left = itertools.count(1)
        self.work(lambda event, state: next(left) >= after)

    @rule(
        kind=st.sampled_from([Kind.SUBMISSION_OPENED, Kind.REQUEST_REFUSED, Kind.SUBMISSION_CLOSED, Kind.WORK_THAWED])
    )
    def killed_at(self, kind: Kind) -> None:
        """The engine dies where a request is in the balance."""
        self.work(lambda event, state: event["kind"] == kind)

    @rule(after=st.integers(1, 25))
    def stopped(self, after: int) -> None:
        """The operator asks for a stop at some event."""
        left = itertools.count(1)

        def ask(event: Event, state: State) -> bool:
            if next(left) == after:
                self.folder.stop_flag.touch()
            return False

        self.work(ask)

    @rule()
    def host_dies(self) -> None:
        """The host goes down while no engine is there; the files stay."""
        for box in list(self.stage.sandbox.boxes.values()):
            if box.spec.run == self.folder.name:
                box.vanish()

    @rule(seconds=st.integers(0, 10_000))
    def time_passes(self, seconds: int) -> None:
        """Nobody is there; an agent in its box may be."""
        self.stage.clock.now += seconds

    @rule()
    def judged_again(self) -> None:
        """The operator has all submissions judged again."""
        before = self.state
        for each in judge_again(self.folder, None, lambda line: None):
            if each.after.verdict is not before.submissions[each.number - 1].verdict:
                self.rejudged.add(each.number)
        self.state = fold(read_events(self.folder.journal))
        assert self.state.ledger["working"] == before.ledger["working"]

    # --- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def promises(self) -> None:
        state = self.state
        assert sum(state.ledger.values()) == pytest.approx(state.wall_sec, abs=1e-5)
        assert state.used_submissions <= self.budget or self.rejudged
        for one in state.submissions:
            if one.verdict is None:
                continue
            found = (one.verdict, one.metric, one.score)
            if one.number not in self.rejudged:
                assert self.seen.setdefault(one.number, found) == found
        ids = [one.id for one in state.submissions]
        assert len(ids) == len(set(ids))

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            for _ in range(20):
                self.work()
                if self.state.status is Status.COMPLETED:
                    break
            assert self.state.status is Status.COMPLETED, self.state.reason
            self.promises()
            self.check_answers()
            assert not [box for box in self.stage.sandbox.boxes if box[0] == self.folder.name]
        finally:
            self.stage.sandbox.sweep(self.folder.name)
            shutil.rmtree(self.folder.path)

    def check_answers(self) -> None:
        """Hold what was sent against what was answered: an agent that was not cut off got all its answers."""
        outbox = self.folder.mailbox / "outbox"
        if self.state.agent_reason == "the agent ended":
            assert [name for name in self.sent if not (outbox / f"{name}.reply").exists()] == []
        for path in (self.folder.mailbox / "inbox").glob("[!.]*"):
            path.unlink()  # an agent that was cut off may have left some
        assert_whole(self.folder, self.state)
        assert self.state.submissions


def test_whatever_happens(stage: Stage, tiny_task: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.setting.get_sandbox", lambda name, level: stage.sandbox)
    tasks = {
        0: stage.task,
        300: tiny_task("patient", change={"hours = 1": "hours = 1\ncooldown_sec = 300"}),
    }
    machine = type("StagedRuns", (Runs,), {"stage": stage, "tasks": tasks})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=6,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            database=None,
        ),
    )
