"""One machine, every sandbox: the same suite runs on boxes of namespaces, on plain processes and on fakes."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.sandbox.base import (
    NO_NETWORK,
    Box,
    BoxSpec,
    Exit,
    Image,
    Limits,
    Mount,
    Network,
    Placement,
    Process,
    Role,
    Sandbox,
)
from harness.sandbox.docker.engine import DockerSandbox
from harness.sandbox.namespaces import NamespaceSandbox
from harness.sandbox.process import ProcessSandbox


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give each test a data folder of its own that other users may pass, as a real one should be."""
    folder = Path(tempfile.mkdtemp(prefix="rsi-test-"))
    folder.chmod(0o755)
    monkeypatch.setenv("RSI_HOME", str(folder / "home"))
    yield folder
    shutil.rmtree(folder)


@dataclass
class Bench:
    """A sandbox, a folder to work in and short ways to say things."""

    sandbox: Sandbox
    folder: Path
    made: list[Box] = field(default_factory=list)

    def environment(self, dockerfile: str, files: dict[str, str] | None = None) -> Path:
        """Write an environment folder."""
        folder = self.folder / "task" / "environment"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Dockerfile").write_text(dockerfile)
        for name, text in (files or {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder

    def image(self, dockerfile: str = "FROM base\nWORKDIR /app\n", files: dict[str, str] | None = None) -> Image:
        """Build an image."""
        environment = self.environment(dockerfile, files)
        return self.sandbox.build(environment, workdir=None, timeout=120, progress=lambda _: None)

    def box(
        self,
        name: str = "work",
        *,
        image: Image | None = None,
        role: Role = Role.WORK,
        mounts: tuple[Mount, ...] = (),
        limits: Limits | None = None,
        network: Network = NO_NETWORK,
        env: dict[str, str] | None = None,
        placement: Placement | None = None,
        over: Box | None = None,
    ) -> Box:
        """Make a box of the run `run`."""
        spec = BoxSpec(
            "run", name, role, image or self.image(), network=network, limits=limits or Limits(memory_mb=1024),
            mounts=mounts, env=env or {}, placement=placement, over=over,
        )  # fmt: skip
        box = self.sandbox.create(spec)
        self.made.append(box)
        return box

    def output(self, name: str) -> Path:
        """Return where the output of a process goes."""
        return self.folder / f"{name}.out"

    def begin(self, box: Box, script: str, name: str = "process") -> Process:
        """Start a shell script."""
        return box.start(name, ["sh", "-c", script], output=self.output(name))

    def run(self, box: Box, script: str, name: str = "process", timeout: float = 30) -> tuple[Exit, str]:
        """Run a shell script to its end and return what it printed."""
        done = self.begin(box, script, name).wait(timeout)
        return done, self.output(name).read_text("utf-8", errors="replace")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs in namespaces: not every machine has them, and the skip says why."""
    for item in items:
        if "apart" in getattr(item, "fixturenames", ()) or "[namespaces" in item.name or "-namespaces" in item.name:
            item.add_marker(pytest.mark.machine)


def _bench(sandbox: Sandbox, home: Path) -> Iterator[Bench]:
    bench = Bench(sandbox, home)
    yield bench
    for box in bench.made:
        box.remove()


def _namespaces_or_skip() -> NamespaceSandbox:
    sandbox = NamespaceSandbox()
    lacks = sandbox.lacks()
    if lacks:
        pytest.skip(f"needs namespaces: {lacks[0].what}")
    return sandbox


_MAKERS: dict[str, Callable[[], Sandbox]] = {
    "namespaces": _namespaces_or_skip,
    "process": ProcessSandbox,
    "docker": DockerSandbox,
}


@pytest.fixture(params=["namespaces", "process"])
def bench(request: pytest.FixtureRequest, home: Path) -> Iterator[Bench]:
    """Give a bench of every local sandbox that runs real commands."""
    yield from _bench(_MAKERS[request.param](), home)


@pytest.fixture(params=["namespaces", "process", pytest.param("docker", marks=pytest.mark.docker)])
def everywhere(request: pytest.FixtureRequest, home: Path) -> Iterator[Bench]:
    """Give a bench of every sandbox that runs real commands."""
    yield from _bench(_MAKERS[request.param](), home)


@pytest.fixture
def apart(home: Path) -> Iterator[Bench]:
    """Give a bench of boxes that are really apart from the host."""
    yield from _bench(_namespaces_or_skip(), home)


@pytest.fixture
def plain(home: Path) -> Iterator[Bench]:
    """Give a bench of plain processes."""
    yield from _bench(ProcessSandbox(), home)
