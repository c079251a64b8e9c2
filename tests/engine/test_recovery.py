"""kill -9 of the engine after every kind of event: the resumed run ends like one that nobody disturbed."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from boxes import leftovers, sandbox_at  # lies beside this file

from harness import paths
from harness.agents import get_agent
from harness.run.create import Wishes, create_run
from harness.run.folder import RunFolder
from harness.run.journal import read_events, verify
from harness.run.launch import work_on
from harness.run.state import Kind, State, Status, fold
from harness.task.load import load_task

# A score, an invalid candidate, a violation, and a score again.
AGENT = """
echo 'value = 40' > value.txt; rsi-submit -m forty
echo nothing > value.txt; rsi-submit -m nothing
echo 'value = 30' > value.txt; echo changed > frozen.txt; rsi-submit -m cheating
echo 'must stay' > frozen.txt; rsi-submit -m thirty
exit 0
"""

EXPECTED = [("scored", 40.0, 1.2), ("invalid", None, None), ("violation", None, 0.0), ("scored", 30.0, 1.4)]

KILLER = """
import os, signal, sys
from pathlib import Path
from harness.agents import get_agent
from harness.run.engine import Engine
from harness.run.folder import RunFolder
from harness.run.setting import planned_sandbox

folder, kind, left = RunFolder(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
plan = folder.read_plan()

def observe(event, state):
    global left
    left -= kind in ("any", event["kind"])
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

Engine(folder, planned_sandbox(plan), get_agent(plan.agent, plan.agent_command),
       tell=lambda line: None, observe=observe).run()
"""

ONCE = [
    Kind.ENGINE_STARTED,
    Kind.IMAGE_READY,
    Kind.CONTROL_STARTED,
    Kind.CONTROL_JUDGED,
    Kind.AGENT_STARTED,
    Kind.AGENT_ENDED,
    Kind.RUN_ENDED,
]
EACH_SUBMISSION = [
    Kind.SUBMISSION_OPENED,
    Kind.WORK_FROZEN,
    Kind.SNAPSHOT_TAKEN,
    Kind.JUDGING_STARTED,
    Kind.JUDGING_ENDED,
    Kind.SUBMISSION_CLOSED,
    Kind.WORK_THAWED,
]
# The first submission is scored, the third a violation that is never judged.
CASES = [(kind, 1) for kind in (*ONCE, *EACH_SUBMISSION)] + [(Kind.SNAPSHOT_TAKEN, 3), (Kind.JUDGING_ENDED, 3)]


def plan_run(task: Path, level: str, name: str) -> RunFolder:
    """Plan a run of the agent above, without measurements of earlier runs: every run has the same events."""
    shutil.rmtree(paths.home() / "controls", ignore_errors=True)
    sandbox = sandbox_at(level)
    command = ("sh", "-c", AGENT)
    wishes = Wishes(submissions=10, seed=7_000_000_007, name=name)
    return create_run(load_task(task), get_agent("script", command), command, sandbox, wishes, lambda line: None)


def kill_after(folder: RunFolder, kind: str, count: int) -> "subprocess.CompletedProcess[str]":
    """Let an engine work and kill it right after the count-th event of a kind is on disk."""
    command = [sys.executable, "-c", KILLER, str(folder.path), kind, str(count)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def outcome(state: State) -> list[tuple[str, float | None, float | None]]:
    """Return verdict, metric and score of each submission."""
    return [(str(one.verdict), one.metric, one.score) for one in state.submissions]


def assert_as_undisturbed(folder: RunFolder, state: State) -> None:
    """Hold a resumed run against what an undisturbed one gives."""
    assert outcome(state) == EXPECTED
    assert state.status is Status.COMPLETED
    assert state == fold(read_events(folder.journal))
    assert sum(state.ledger.values()) == pytest.approx(state.wall_sec, abs=1e-6)
    assert verify(folder.journal) == []
    assert leftovers(folder.name) == []


def test_undisturbed(tiny_task: Callable[..., Path], level: str) -> None:
    """The run that the others are held against: verdicts, one commit a submission, no secret in sight of the agent."""
    folder = plan_run(tiny_task(), level, "calm")
    state = work_on(folder, lambda line: None)
    assert_as_undisturbed(folder, state)
    log = subprocess.run(
        ["git", "--git-dir", str(folder.candidates), "log", "-p", "--reverse"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len([line for line in log.splitlines() if line.startswith("commit ")]) == len(EXPECTED)
    assert "-value = 40" in log
    assert "thirty" in log
    seed = str(json.loads(folder.plan.read_text())["seed"])
    for path in [*folder.mailbox.rglob("*"), folder.agent_log]:
        if path.is_file():
            assert seed not in path.read_text("utf-8", "replace").split()


@pytest.mark.parametrize(("kind", "count"), CASES)
def test_killed_after(kind: Kind, count: int, tiny_task: Callable[..., Path], level: str) -> None:
    """The engine dies right after an event is on disk."""
    folder = plan_run(tiny_task(), level, f"killed-{kind.value}".replace("_", "-"))
    killed = kill_after(folder, kind.value, count)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [event["kind"] for event in read_events(folder.journal)][-1] == kind
    assert_as_undisturbed(folder, work_on(folder, lambda line: None))


def test_killed_again_and_again(tiny_task: Callable[..., Path], level: str) -> None:
    """One run whose every engine dies after five events still ends the same."""
    folder = plan_run(tiny_task(), level, "often")
    while kill_after(folder, "any", 5).returncode == -signal.SIGKILL:
        pass
    assert_as_undisturbed(folder, work_on(folder, lambda line: None))
