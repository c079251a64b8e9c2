"""Agents that cheat and break things, in real boxes: each gets its verdict, and the next honest submission scores."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from boxes import leftovers, processes_of, sandbox_at, verdicts

from harness import paths
from harness.agents import get_agent
from harness.errors import RsiError
from harness.run.create import Wishes, create_run
from harness.run.engine import Engine
from harness.run.folder import RunFolder
from harness.run.journal import read_events, verify
from harness.run.launch import work_on
from harness.run.state import Kind, State, Status, fold
from harness.sandbox.docker import names
from harness.task.load import load_task

BEGIN = """
set -u
value() { rm -rf value.txt; echo "value = $1" > value.txt; }
tidy() { rm -rf 2>/dev/null notes frozen.txt value.txt; echo 'must stay' > frozen.txt; value 50; }
hand_in() { rsi-submit -m "$1" || true; }
"""


APART = ("namespaces", "container")
"""Levels at which a box is apart from the host."""


@dataclass(frozen=True)
class Trick:
    """What an agent does before it hands in, and what it gets."""

    name: str
    script: str
    verdict: str
    metric: float | None = None
    said: str = ""
    """What the message to the agent must hold."""
    levels: tuple[str, ...] = ("namespaces", "process", "container")


FILES = [
    Trick("frozen", "echo changed > frozen.txt; value 1", "violation", said="frozen.txt: changed"),
    Trick("frozen gone", "rm frozen.txt; value 1", "violation", said="frozen.txt: removed"),
    Trick("frozen a link", "mv frozen.txt f; ln -s f frozen.txt; value 1", "violation", said="frozen.txt"),
    Trick(
        "reward files",
        """
        for place in /logs/verifier /logs /tests / /tmp /app . notes "${RSI_LOGS:-.}"; do
            mkdir -p "$place" 2>/dev/null
            echo '{"reward": 99, "loss": 0}' > "$place/reward.json"
            echo 99 > "$place/reward.txt"
        done 2>/dev/null
        value 41""",
        "scored",
        41.0,
    ),
    Trick("no file", "rm value.txt", "invalid", said="missing deliverable: there is no file value.txt"),
    Trick("a folder", "rm value.txt; mkdir value.txt", "invalid", said="value.txt"),
    Trick(
        "a link inside",
        "mkdir -p notes; echo 'value = 1' > notes/real; rm value.txt; ln -s notes/real value.txt",
        "invalid",
        said="value.txt is a link",
    ),
    Trick(
        "a link to the tests", "rm value.txt; ln -s /tests/test.sh value.txt", "violation", said="leaves the workdir"
    ),
    Trick("a link to secrets", "rm value.txt; ln -s /etc/shadow value.txt", "violation", said="leaves the workdir"),
    Trick("a folder that is a link", "ln -s /etc notes", "violation", said="notes is a link that leaves the workdir"),
    Trick("a FIFO", "rm value.txt; mkfifo value.txt", "invalid", said="value.txt is a named pipe"),
    Trick(
        "a socket",
        "rm value.txt; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('value.txt')\"",
        "invalid",
        said="value.txt is a socket",
    ),
    Trick("20 GB", "truncate -s 20G value.txt", "invalid", said="at most 1 MiB"),
    Trick(
        "a deep tree",
        "python3 -c \"import os\nfor _ in range(1500): os.mkdir('notes'); os.chdir('notes')\"",
        "invalid",
        said="deeper than 32 folders",
    ),
    Trick(
        "10,000 files",
        "mkdir notes; python3 -c \"for i in range(10000): open(f'notes/{i}', 'w').close()\"",
        "invalid",
        said="at most 20 files",
    ),
    Trick(
        "names that are not UTF-8", "mkdir notes; touch \"notes/$(printf 'a\\377')\"", "invalid", said="is not UTF-8"
    ),
    Trick(
        "odd names",
        "mkdir notes; for name in ' ' -rf '*' \"$(printf 'a\\nb')\" 'ünï' ';ls' '$(id)' .hidden; do"
        ' echo odd > "notes/$name"; done; value 42',
        "scored",
        42.0,
    ),
    Trick("unreadable", "mkdir -m 000 notes; value 43", "scored", 43.0, levels=APART),
]

PROCESSES = [
    Trick(
        "a process that stays",
        """
        mkdir -p notes
        cat > notes/daemon <<'END'
echo $$ > .pid
while :; do
    for place in /logs/verifier /app /tests . notes; do echo '{"reward": 99, "loss": 0}' > "$place/reward.json"; done
    echo "$(date +%N)" > notes/busy
    echo 'value = 1' > notes/v; [ -e notes/go ] && mv notes/v value.txt
done 2>/dev/null
END
        value 44
        setsid sh -c 'setsid sh notes/daemon stay-behind & exec sleep 0' & wait
        sleep 0.2; rm notes/daemon""",
        "scored",
        44.0,
    ),
    # It goes on after the verdict as if nothing had been.
    Trick("and writes the deliverable",
          "mkdir -p notes; touch notes/go; until grep -q 'value = 1$' value.txt; do sleep 0.05; done",
          "scored", 1.0),
    Trick("and is gone", "kill -9 $(cat .pid); sleep 0.1; tidy; value 45", "scored", 45.0),
    Trick(
        "inbox",
        """
        inbox=${RSI_MAILBOX:-/run/rsi}/inbox
        ln -s /etc/shadow "$inbox/link.req"; mkdir -p "$inbox/full.req/deep"; mkfifo "$inbox/fifo.req"
        echo x > "$inbox/..req"; echo x > "$inbox/$(printf 'a\\nb').req"
        chmod 000 "$inbox"; sleep 0.1; chmod 777 "$inbox"
        echo '0' > "${RSI_MAILBOX:-/run/rsi}/outbox/forged.reply"
        rm -rf "$inbox" "${RSI_MAILBOX:-/run/rsi}/outbox" "${RSI_MAILBOX:-/run/rsi}/bin/rsi-submit"
        value 46""",
        "scored",
        46.0,
        levels=APART,
    ),
    Trick("a workdir that is gone", "rm -rf /app/* /app; mkdir -p /app; cd /app; tidy; value 47", "scored", 47.0,
          levels=APART),
]  # fmt: skip


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that other users may pass, as plain processes need it."""
    folder = Path(tempfile.mkdtemp(prefix="rsi-test-"))
    folder.chmod(0o755)
    monkeypatch.setenv("RSI_HOME", str(folder / "home"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["namespaces", "process", pytest.param("container", marks=pytest.mark.docker)])
def level(request: pytest.FixtureRequest) -> str:
    """Each level of `local`."""
    if request.param == "namespaces":
        request.getfixturevalue("namespaces")
    return str(request.param)


def run_tricks(task: Path, level: str, tricks: list[Trick]) -> tuple[RunFolder, State]:
    """Let one agent do all tricks in one run, each followed by an honest submission of 30."""
    lines = [BEGIN]
    for trick in tricks:
        lines += ["tidy", trick.script.strip(), f"hand_in '{trick.name}'"]
    lines += ["tidy", "value 30", "hand_in honest", "exit 0"]
    command = ("sh", "-c", "\n".join(lines))
    agent, sandbox = get_agent("script", command), sandbox_at(level)
    wishes = Wishes(submissions=100, seed=7, name=f"tricks-{level}", weak=True)
    folder = create_run(load_task(task), agent, command, sandbox, wishes, lambda line: None)
    return folder, work_on(folder, lambda line: None)


def check_tricks(folder: RunFolder, state: State, tricks: list[Trick]) -> None:
    """Hold each submission against what its trick must get, and the host against what it was."""
    assert state.status is Status.COMPLETED
    assert verify(folder.journal) == []
    found = {one.message: one for one in state.submissions}
    log = folder.agent_log.read_text("utf-8", "replace")
    assert list(found) == [*(trick.name for trick in tricks), "honest"], log
    for trick in tricks:
        one = found[trick.name]
        said = one.judgings[-1].message
        assert (trick.name, str(one.verdict), one.metric) == (trick.name, trick.verdict, trick.metric), said
        assert trick.said in said
    honest = found["honest"]
    assert (str(honest.verdict), honest.metric, honest.score) == ("scored", 30.0, 1.4)
    assert leftovers(folder.name) == []


def test_files_of_every_kind(tiny_task: Callable[..., Path], home: Path, level: str) -> None:
    tricks = [trick for trick in FILES if level in trick.levels]
    task = tiny_task(change={"storage_mb = 256": "storage_mb = 65536"})  # else the box itself forbids 20 GB
    folder, state = run_tricks(task, level, tricks)
    check_tricks(folder, state, tricks)
    secret = Path("/etc/shadow")
    if os.access(secret, os.R_OK):
        lines = [line for line in secret.read_text().splitlines() if len(line.split(":")[1]) > 3]
        kept = b"".join(path.read_bytes() for path in folder.store.rglob("*") if path.is_file())
        assert not [line for line in lines if line.encode() in kept]


def test_processes_that_stay_and_a_mailbox_under_fire(tiny_task: Callable[..., Path], home: Path, level: str) -> None:
    tricks = [trick for trick in PROCESSES if level in trick.levels]
    folder, state = run_tricks(tiny_task(), level, tricks)
    check_tricks(folder, state, tricks)
    assert processes_of("stay-behind") == []
    assert not Path("/logs/verifier/reward.json").exists()
    ids = [event["id"] for event in read_events(folder.journal) if event["kind"] == Kind.SUBMISSION_OPENED]
    assert len(ids) == len(set(ids)) == len(tricks) + 1


def test_a_stop_leaves_no_process_and_the_run_goes_on(tiny_task: Callable[..., Path], home: Path, level: str) -> None:
    script = BEGIN + "value 40; hand_in forty; (setsid sh -c 'while sleep 0.1; do :; done' stay-behind &); sleep 600"
    command = ("sh", "-c", script)
    agent, sandbox = get_agent("script", command), sandbox_at(level)
    wishes = Wishes(seed=7, name=f"stopped-{level}", weak=True)
    folder = create_run(load_task(tiny_task()), agent, command, sandbox, wishes, lambda line: None)
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if line.startswith("submission 1"):
            folder.stop_flag.touch()

    state = Engine(folder, sandbox, agent, tell=tell).run()
    assert state.status is Status.STOPPED
    assert verdicts(state) == [("scored", 40.0, 1.2)]
    until = time.monotonic() + 5
    while processes_of("stay-behind") and time.monotonic() < until:
        time.sleep(0.02)
    assert processes_of("stay-behind") == []
    ending = ("sh", "-c", "echo 'value = 30' > value.txt; rsi-submit -m thirty")
    ended = Engine(folder, sandbox, get_agent("script", ending), tell=tell).run()
    assert ended.status is Status.COMPLETED
    assert verdicts(ended) == [("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    assert leftovers(folder.name) == []


def test_a_stop_while_a_judge_works(tiny_task: Callable[..., Path], home: Path, level: str) -> None:
    script = BEGIN + "value slow; hand_in slow; value 30; hand_in thirty; exit 0"
    command = ("sh", "-c", script)
    agent, sandbox = get_agent("script", command), sandbox_at(level)
    wishes = Wishes(seed=7, name=f"halted-{level}", weak=True)
    folder = create_run(load_task(tiny_task(verifier_sec=20)), agent, command, sandbox, wishes, lambda line: None)

    def stop_at(kind: Kind) -> Callable[..., None]:
        return lambda event, state: folder.stop_flag.touch() if event["kind"] == kind else None

    state = Engine(folder, sandbox, agent, tell=print, observe=stop_at(Kind.JUDGING_STARTED)).run()
    assert state.status is Status.STOPPED
    assert state.submissions[0].judgings == ()
    assert state.frozen
    tests = folder.tests / "test.sh"
    assert "slow) sleep 60" in tests.read_text()
    # The same snapshot is judged again after the resume; a limit that has come down meanwhile ends it soon.
    plan = json.loads(folder.plan.read_text())
    folder.plan.write_text(json.dumps({**plan, "judge_timeout_sec": 0.3}))
    resumed = get_agent("script", ("sh", "-c", BEGIN + "value 30; hand_in thirty; exit 0"))
    state = Engine(folder, sandbox, resumed, tell=print).run()
    assert [str(one.verdict) for one in state.submissions] == ["no_measurement", "scored"]
    assert [one.message for one in state.submissions] == ["slow", "thirty"]
    assert state == fold(read_events(folder.journal))
    assert leftovers(folder.name) == []


@pytest.mark.parametrize("level", ["namespaces", pytest.param("container", marks=pytest.mark.docker)], indirect=True)
def test_a_dead_workspace_goes_on_with_its_files(tiny_task: Callable[..., Path], home: Path, level: str) -> None:
    command = ("sh", "-c", "echo 'value = 20' > value.txt; rm frozen.txt; echo ready; sleep 600")
    agent, sandbox = get_agent("script", command), sandbox_at(level)
    wishes = Wishes(seed=7, name="dead")
    folder = create_run(load_task(tiny_task()), agent, command, sandbox, wishes, lambda line: None)

    def kill_when_ready() -> None:
        while not (folder.agent_log.exists() and "ready" in folder.agent_log.read_text()):
            time.sleep(0.01)
        if level == "container":
            subprocess.run(["docker", "kill", names.thing(sandbox.attach(folder.name, "work").spec)], check=True)
            return
        keeper = int((paths.home() / "boxes" / folder.name / "work" / "keeper").read_text().split()[0])
        os.kill(keeper, 9)

    threading.Thread(target=kill_when_ready, daemon=True).start()
    with pytest.raises(RsiError, match="gone"):
        Engine(folder, sandbox, agent, tell=print).run()
    resumed = get_agent("script", ("sh", "-c", "echo 'must stay' > frozen.txt; rsi-submit -m twenty"))
    state = Engine(folder, sandbox, resumed, tell=print).run()
    assert verdicts(state) == [("scored", 20.0, 1.6)]
    assert state.work_box == "work-2"
    assert leftovers(folder.name) == []
