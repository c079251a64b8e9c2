"""Keeps tests apart from the person's machine: own home, no network, no keys, and in CI no silent skips."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ALLOWED_TO_SKIP = {"projects", "torch", "machine"}
"""Markers of tests that say what they need; any other test that is skipped in CI should have run there."""

_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RSI_RUN", "RSI_TASK", "RSI_LEVEL", "RSI_SEED", "RSI_MAILBOX")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of public projects unless a folder for them is named."""
    if os.environ.get("RSI_TEST_PROJECTS"):
        return
    skip = pytest.mark.skip(reason="RSI_TEST_PROJECTS is not set")
    for item in items:
        if item.get_closest_marker("projects"):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turn a skip into a failure in CI, unless the test is marked as one that may be skipped."""
    report = yield
    expected = hasattr(report, "wasxfail") or any(item.get_closest_marker(name) for name in ALLOWED_TO_SKIP)
    if report.skipped and not expected and os.environ.get("CI") == "true":
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
