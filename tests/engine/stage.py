"""A run of the tiny task on fake boxes: judge and agent are Python functions, time moves when a test says so."""

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.agents.base import Agent, Workspace
from harness.agents.fake import FakeAgent, Step
from harness.agents.feedback import Feedback
from harness.run.create import Wishes, create_run
from harness.run.engine import Engine
from harness.run.folder import RunFolder
from harness.run.journal import read_events, verify
from harness.run.state import Event, Kind, State, fold
from harness.sandbox.fake import FakeBox, FakeSandbox
from harness.task.load import load_task

SEED = 7_000_000_007


class Clock:
    """The run's clock: it stands still unless a test moves it."""

    def __init__(self) -> None:
        # Later than the plan, which is written by the host's clock; whole, so that sums of it are exact.
        self.now = float(int(time.time()) + 60)

    def __call__(self) -> float:
        return self.now


class Killed(BaseException):
    """The engine's process is killed: nothing of ours may catch it."""


class MortalEngine(Engine):
    """An engine that can be killed at an event; its agent's process lives on in the box, its own threads do not."""

    dead = False

    def _halt_agent(self) -> None:
        if not self.dead:
            super()._halt_agent()
        elif self.scene.workspace is not None and self.thread is not None:
            self.scene.workspace.end()
            self.thread.join(timeout=30)


def write_result(logs: Path, numbers: Mapping[str, Any], message: str = "", evidence: str = "") -> None:
    """Write what a judge writes."""
    (logs / "reward.json").write_text(json.dumps(numbers))
    if message or evidence:
        (logs / "reward-details.json").write_text(json.dumps({"message": message, "evidence": evidence}))


class Stage:
    """Plans runs and works on them; everything that a test wants to see is kept here."""

    def __init__(self, task: Path) -> None:
        self.task = task
        self.clock = Clock()
        self.judged: list[tuple[str, int]] = []
        """Value and seed of each judging, the author's candidates left out."""
        self.seeds: list[int] = []
        self.feedback: list[Feedback | None] = []
        self.told: list[str] = []
        self.special: dict[str, Callable[[Path, int], None]] = {}
        """What the judge does for a value instead of scoring it; given its logs and the seed."""
        self.commands: dict[str, Callable[[FakeBox, Mapping[str, str], Path, Path], int]] = {}
        self.sandbox = FakeSandbox({"*": self.play})
        self.engine_at_work: MortalEngine | None = None

    # --- what runs in the boxes ------------------------------------------------------------------------------------

    def play(self, box: FakeBox, env: Mapping[str, str], workdir: Path, logs: Path) -> int:
        """Play a command by what it is."""
        if box.spec.name.startswith("judge-"):
            return self.judge(box, env, workdir, logs)
        if box.spec.name.startswith("control-"):
            value = "50" if box.spec.name.endswith("baseline") else "100"
            (workdir / "value.txt").write_text(f"value = {value}\n")
            return 0
        return self.commands["agent"](box, env, workdir, logs)

    def judge(self, box: FakeBox, env: Mapping[str, str], workdir: Path, logs: Path) -> int:
        """Score the number in value.txt, as the tiny task's own test.sh does."""
        value = (workdir / "value.txt").read_text().removeprefix("value = ").strip()
        seed = int(env["RSI_SEED"])
        self.seeds.append(seed)
        if not box.spec.name.startswith("judge-control"):
            self.judged.append((value, seed))
        if value in self.special:
            self.special[value](logs, seed)
            return 0
        try:
            number = float(value)
        except ValueError:
            write_result(logs, {"reward": 0, "invalid": 1}, "value.txt holds no value")
            return 0
        write_result(logs, {"reward": -number, "loss": number} if math.isfinite(number) else {"loss": number})
        return 0

    # --- planning and working --------------------------------------------------------------------------------------

    def plan(self, agent: Agent | None = None, command: Sequence[str] = (), **wishes: Any) -> RunFolder:
        """Plan a run."""
        wanted = Wishes(**{"seed": SEED, "name": "staged", "weak": True, **wishes})
        planned = agent or FakeAgent()
        return create_run(load_task(self.task), planned, tuple(command), self.sandbox, wanted, self.told.append)

    def engine(
        self, folder: RunFolder, agent: Agent, kill: Callable[[Event, State], bool] | None = None
    ) -> MortalEngine:
        """Return an engine that works on the run, to be killed at the first event for which `kill` says so."""

        def observe(event: Event, state: State) -> None:
            if kill is not None and not engine.dead and kill(event, state):
                engine.dead = True
                raise Killed

        engine = MortalEngine(
            folder,
            self.sandbox,
            agent,
            tell=self.told.append,
            observe=observe,
            stop=threading.Event(),
            clock=self.clock,
        )
        self.engine_at_work = engine
        return engine

    def work(self, folder: RunFolder, agent: Agent, kill: Callable[[Event, State], bool] | None = None) -> State | None:
        """Work on the run; None where the engine was killed."""
        with contextlib.suppress(Killed):
            return self.engine(folder, agent, kill).run()
        return None

    def run(self, *steps: Step, **wishes: Any) -> State:
        """Plan a run of these steps and take it to its end."""
        agent = FakeAgent(steps)
        state = self.work(self.plan(agent, **wishes), agent)
        assert state is not None
        return state

    def wait_for_thaw(self, work: Workspace) -> None:
        """Wait until work goes on: an agent on the host has its answer a moment before, and time must not move then."""
        assert self.engine_at_work is not None
        while self.engine_at_work.scene.state.frozen:
            work.wait(0.001)

    def hand_in(self, value: object, message: str = "", *, hours: float = 0.0) -> Step:
        """Return a step that works for some hours, writes a value and hands it in."""

        def step(work: Workspace) -> None:
            self.clock.now += hours * 3600
            work.write("value.txt", f"value = {value}\n".encode())
            self.feedback.append(work.submit(message or str(value)))
            self.wait_for_thaw(work)

        return step


def request(mailbox: Path, name: str, message: str = "") -> None:
    """Hand in as rsi-submit does, and do not wait."""
    part = mailbox / "inbox" / f".part-{name}"
    part.write_text(message)
    os.rename(part, mailbox / "inbox" / f"{name}.req")  # noqa: PTH104  as the shell does


def outcome(state: State) -> list[tuple[str, float | None, float | None]]:
    """Return verdict, metric and score of each submission."""
    return [(str(one.verdict), one.metric, one.score) for one in state.submissions]


def assert_whole(folder: RunFolder, state: State) -> None:
    """Hold a run's record against itself."""
    events = list(read_events(folder.journal))
    assert state == fold(events)
    assert verify(folder.journal) == []
    assert math.isclose(sum(state.ledger.values()), state.wall_sec, abs_tol=1e-6)
    opened = [event["id"] for event in events if event["kind"] == Kind.SUBMISSION_OPENED]
    refused = [event["id"] for event in events if event["kind"] == Kind.REQUEST_REFUSED]
    answered = [*opened, *refused]
    assert len(answered) == len(set(answered)), "a request was taken twice"
    for name in answered:
        assert (folder.mailbox / "outbox" / f"{name}.reply").is_file(), f"{name} has no reply"
    assert not list((folder.mailbox / "inbox").glob("[!.]*.req"))
    closed = [event["number"] for event in events if event["kind"] == Kind.SUBMISSION_CLOSED]
    assert sorted(closed) == [one.number for one in state.submissions if one.verdict is not None]
