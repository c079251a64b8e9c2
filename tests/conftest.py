"""Keeps tests apart from the person's machine: own home, no network, no keys, and in CI no silent skips."""

import copy
import dataclasses
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import paths
from harness.run.folder import RunFolder
from harness.run.journal import Journal
from harness.run.plan import Plan
from harness.run.state import Kind
from harness.sandbox.docker.engine import DockerSandbox

# Whoever started the tests in the background has SIGINT or SIGHUP ignored, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ALLOWED_TO_SKIP = {"projects", "torch", "machine", "harbor", "model"}
"""Markers of tests that say what they need, as a reason that begins with `needs` does; any other skip fails in CI."""

_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RSI_RUN", "RSI_TASK", "RSI_LEVEL", "RSI_SEED", "RSI_MAILBOX")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of public projects unless a folder for them is named, and tests of containers without an engine."""
    if not os.environ.get("RSI_TEST_PROJECTS"):
        _skip(items, "projects", "RSI_TEST_PROJECTS is not set")
    if any(item.get_closest_marker("docker") for item in items):
        lacks = DockerSandbox().lacks()
        if lacks:
            _skip(items, "docker", f"needs Docker: {lacks[0].what}")


def _skip(items: list[pytest.Item], marker: str, reason: str) -> None:
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turn a skip into a failure in CI, unless the test is marked as one that may be skipped."""
    report = yield
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    marked = any(item.get_closest_marker(name) for name in ALLOWED_TO_SKIP)
    expected = hasattr(report, "wasxfail") or marked or said.startswith("Skipped: needs ")
    wanted = os.environ.get("RSI_TEST_DOCKER") == "1" and said.startswith("Skipped: needs Docker:")
    if report.skipped and (wanted or (not expected and os.environ.get("CI") == "true")):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI without a marker that allows it: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for what is slow to make and the same for all tests, such as a font list."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Path:
    """Give every test an empty home, an empty data folder, plain git and no keys."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RSI_HOME", str(home / "rsi"))
    monkeypatch.setenv("MPLCONFIGDIR", str(shared_cache))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", *_KEYS):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection to another machine, except for tests that fetch projects or install packages."""
    if request.node.get_closest_marker("projects") or request.node.get_closest_marker("packaging"):
        return
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _only_here(getattr(socket.socket, name)))


def _only_here(connect: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in {socket.AF_INET, socket.AF_INET6} and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"a test tried to reach {address[0]}")
        return connect(self, address)

    return guarded


@dataclass
class Handed:
    """One submission of a made-up run."""

    metric: float | None = None
    verdict: str = "scored"
    message: str = "a try"
    feedback: str = ""
    evidence: str = ""
    score: float | None = None
    working: float = 60.0
    """Seconds of work before it."""


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now


CONTRACT: dict[str, Any] = {
    "version": 1,
    "track": "public",
    "category": "pre-training",
    "question": "Can the recipe reach a lower loss?",
    "source": {"repository": "local", "commit": "none", "license": "MIT"},
    "metric": {"name": "nll", "direction": "minimize", "unit": "nats/char", "lowest": 0.0, "highest": 100.0},
    "reference": {"baseline": 2.11, "noise": 0.0042, "floor": 3.3, "repeats": 5, "judge_sec": 3.0},
    "evaluation": {"mode": "retrain"},
    "boundary": {"editable": ["*.py"], "deliver": ["*.py"]},
    "budget": {"hours": 1.0, "submissions": 8},
}


@pytest.fixture
def make_run(own_home: Path) -> Callable[..., RunFolder]:
    """Return a maker of run folders: a plan and a journal as an engine writes them, without running anything."""

    def make(
        name: str = "calm-otter",
        handed: Sequence[Handed] = (),
        *,
        contract: dict[str, Any] | None = CONTRACT,
        control: float | None = 2.114,
        status: str | None = "completed",
        refused: Sequence[str] = (),
    ) -> RunFolder:
        folder = RunFolder(paths.runs() / name)
        folder.path.mkdir(parents=True)
        clock = Clock()
        folder.write_plan(_plan(name, contract, clock.now))
        with Journal.create(folder.journal, clock) as journal:
            journal.append(Kind.RUN_CREATED, plan="0" * 64)
            journal.append(Kind.ENGINE_STARTED, pid=1, resumed=False)
            clock.now += 2
            journal.append(Kind.IMAGE_READY, digest="b" * 64, notes=["RUN was carried out in a layer"])
            if control is not None:
                journal.append(Kind.CONTROL_STARTED, role="baseline", seed=987654321)
                clock.now += 3
                journal.append(
                    Kind.CONTROL_JUDGED,
                    role="baseline",
                    verdict="scored",
                    metric=control,
                    values=[control],
                    seconds=3.0,
                )
            journal.append(Kind.AGENT_STARTED, agent="search", start=1)
            for number, one in enumerate(handed, 1):
                _hand_in(journal, clock, number, one)
            for index, reason in enumerate(refused):
                journal.append(Kind.REQUEST_REFUSED, id=f"r{index}", reason=reason)
            clock.now += 5
            if status is not None:
                journal.append(Kind.AGENT_ENDED, code=0, reason="")
                journal.append(Kind.RUN_ENDED, status=status, reason="the budget is used up")
        return folder

    return make


@pytest.fixture
def contract() -> dict[str, Any]:
    """Return the contract of a made-up run, to be changed at will."""
    return copy.deepcopy(CONTRACT)


@pytest.fixture
def handed() -> type[Handed]:
    """Return the class of a made-up submission."""
    return Handed


def _hand_in(journal: Journal, clock: Clock, number: int, one: Handed) -> None:
    found = {"verdict": one.verdict, "metric": one.metric, "score": one.score}
    texts = {"message": one.feedback, "evidence": one.evidence}
    clock.now += one.working
    journal.append(Kind.SUBMISSION_OPENED, number=number, id=f"s{number}", message=one.message)
    journal.append(Kind.WORK_FROZEN, number=number)
    journal.append(Kind.SNAPSHOT_TAKEN, number=number, snapshot="c" * 64, files=2, bytes=1000, frozen_sec=0.01)
    journal.append(Kind.JUDGING_STARTED, number=number, attempt=1, seed=987654321 + number)
    clock.now += 3
    journal.append(Kind.JUDGING_ENDED, number=number, attempt=1, values=[], details={}, seconds=3.0, **found, **texts)
    journal.append(Kind.SUBMISSION_CLOSED, number=number, **found)
    journal.append(Kind.WORK_THAWED, number=number)


def _plan(name: str, contract: dict[str, Any] | None, created: float) -> Plan:
    values: dict[str, Any] = {
        "run": name,
        "task": "tiny-lm",
        "task_folder": "/home/secret-person/projects/tiny-lm",
        "task_digest": "1" * 64,
        "tests_digest": "2" * 64,
        "image": "3" * 64,
        "agent": "search",
        "agent_command": ("/home/secret-person/bin/try", "--all"),
        "sandbox": "local",
        "level": "namespaces",
        "isolation": ("Own mounts, pids and hostname.", "The kernel is shared with the host."),
        "contract": contract,
        "submissions": 8,
        "hours": 1.0,
        "cooldown_sec": 0.0,
        "judge_base": "clean",
        "judge_timeout_sec": 60.0,
        "seed": 987654321,
        "created": created,
        "host": {"cpu": "a processor", "cores": 2, "node": "secret-person-laptop"},
        "versions": {"rsi-anything": "0.1.0"},
    }
    # The plan grows with the engine: whatever else it holds is empty here.
    for field in dataclasses.fields(Plan):
        if field.name not in values and field.default is field.default_factory is dataclasses.MISSING:
            values[field.name] = {} if "dict" in str(field.type) else ""
    return Plan(**values)
