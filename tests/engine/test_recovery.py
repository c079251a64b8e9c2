"""kill -9 of the engine after every kind of event: the resumed run ends like one that nobody disturbed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import paths
from harness.agents import get_agent
from harness.run.create import Wishes, create_run
from harness.run.folder import RunFolder
from harness.run.journal import read_events, verify
from harness.run.launch import work_on
from harness.run.state import State, Status, fold
from harness.sandbox import get_sandbox
from harness.task.load import load_task

# An agent with every kind of outcome: a score, an invalid candidate, a violation, and a score again.
AGENT = """
echo 'value = 40' > value.txt; rsi-submit -m forty
echo nothing > value.txt; rsi-submit -m nothing
echo 'value = 30' > value.txt; echo changed > frozen.txt; rsi-submit -m cheating
echo 'must stay' > frozen.txt; rsi-submit -m thirty
exit 0
"""

EXPECTED = [("scored", 40.0), ("invalid", None), ("violation", None), ("scored", 30.0)]

KILLER = """
import os, signal, sys
from pathlib import Path
from harness.agents import get_agent
from harness.run.engine import Engine
from harness.run.folder import RunFolder
from harness.sandbox import get_sandbox

folder, last = RunFolder(Path(sys.argv[1])), int(sys.argv[2])
plan = folder.read_plan()

def observe(event, state):
    if event["n"] == last:
        os.kill(os.getpid(), signal.SIGKILL)

Engine(folder, get_sandbox("local", level=plan.level), get_agent(plan.agent, plan.agent_command),
       tell=lambda line: None, observe=observe).run()
"""


def plan_run(task: Path, name: str) -> RunFolder:
    """Plan a run of the agent above."""
    # Without measurements of earlier runs every run has the same events.
    shutil.rmtree(paths.home() / "controls", ignore_errors=True)
    sandbox = get_sandbox("local", level="namespaces")
    command = ("sh", "-c", AGENT)
    wishes = Wishes(submissions=10, seed=7, name=name)
    return create_run(load_task(task), get_agent("script", command), command, sandbox, wishes, lambda line: None)


def outcome(state: State) -> list[tuple[str, float | None]]:
    """Return verdict and metric of each submission."""
    return [(str(one.verdict), one.metric) for one in state.submissions]


def leftovers(run: str) -> list[str]:
    """Return what is left of a run on this machine besides its folder."""
    home = Path(os.environ["RSI_HOME"])
    boxes = [str(path) for path in (home / "boxes").glob(f"{run}/*")]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if run in line]
    processes = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if f"/boxes/{run}" in words:
            processes.append(words)
    return boxes + mounts + processes


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all cases, so that the image is built once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSI_HOME", str(home))


def undisturbed(make: Callable[..., Path]) -> tuple[State, list[dict[str, Any]]]:
    """Run once without a disturbance."""
    folder = plan_run(make("undisturbed"), f"calm-{os.getpid()}")
    state = work_on(folder, lambda line: None)
    return state, list(read_events(folder.journal))


@pytest.mark.timeout(300)
def test_killed_after_each_event(tiny_task: Callable[..., Path], namespaces: None) -> None:
    """The engine dies once after every event of a whole run, each time in a run of its own."""
    calm, events = undisturbed(tiny_task)
    assert outcome(calm) == EXPECTED
    task = tiny_task("disturbed")
    for event in events[1:]:
        name = f"killed-{os.getpid()}-{event['n']}"
        folder = plan_run(task, name)
        killed = subprocess.run(
            [sys.executable, "-c", KILLER, str(folder.path), str(event["n"])],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert killed.returncode == -signal.SIGKILL, (event["kind"], killed.stderr)
        state = work_on(folder, lambda line: None)
        assert outcome(state) == EXPECTED, event["kind"]
        assert [one.score for one in state.submissions] == [one.score for one in calm.submissions]
        assert state.status is Status.COMPLETED
        assert abs(sum(state.ledger.values()) - state.wall_sec) < 1e-6
        assert verify(folder.journal) == []
        assert leftovers(name) == [], event["kind"]


def test_killed_many_times(tiny_task: Callable[..., Path], namespaces: None) -> None:
    """One run whose engine dies after every third event still ends the same."""
    folder = plan_run(tiny_task("often"), f"often-{os.getpid()}")
    for last in range(3, 60, 3):
        killed = subprocess.run(
            [sys.executable, "-c", KILLER, str(folder.path), str(last)], capture_output=True, text=True, timeout=60
        )
        if killed.returncode != -signal.SIGKILL:
            assert killed.returncode == 0, killed.stderr
            break
    state = fold(read_events(folder.journal))
    assert outcome(state) == EXPECTED
    assert state.status is Status.COMPLETED
    assert leftovers(folder.name) == []


def test_each_candidate_is_one_commit(tiny_task: Callable[..., Path], namespaces: None) -> None:
    """The run's repository shows what the agent changed, one commit a submission that had a snapshot."""
    folder = plan_run(tiny_task("commits"), f"commits-{os.getpid()}")
    work_on(folder, lambda line: None)
    log = subprocess.run(
        ["git", "--git-dir", str(folder.candidates), "log", "-p", "--reverse"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert log.count("\ncommit ") + 1 == 4
    assert "-value = 40" in log
    assert "thirty" in log


def test_plan_keeps_secrets(tiny_task: Callable[..., Path], namespaces: None) -> None:
    """Neither mailbox nor agent log holds the judge's seed."""
    folder = plan_run(tiny_task("secret"), f"secret-{os.getpid()}")
    work_on(folder, lambda line: None)
    seed = str(json.loads(folder.plan.read_text())["seed"])
    for path in [*folder.mailbox.rglob("*"), folder.agent_log]:
        if path.is_file():
            assert seed not in path.read_text("utf-8", "replace").split()
