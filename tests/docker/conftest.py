"""Tests that need a real engine, all of them marked so."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.sandbox.base import NO_NETWORK, Box, BoxSpec, Exit, Image, Limits, Mount, Network, Role
from harness.sandbox.docker.engine import DockerSandbox


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.docker)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give each test a data folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="rsi-test-"))
    folder.chmod(0o755)
    monkeypatch.setenv("RSI_HOME", str(folder / "home"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def image(home: Path) -> Image:
    """Build an image with the workdir /app."""
    environment = home / "environment"
    environment.mkdir()
    (environment / "Dockerfile").write_text("FROM rsi-base:bookworm\nWORKDIR /app\n")
    return DockerSandbox().build(environment, workdir=None, timeout=300, progress=lambda _: None)


@pytest.fixture
def make(image: Image, home: Path) -> Iterator[Callable[..., Box]]:
    """Return a maker of boxes, which are removed at the end."""
    made: list[Box] = []

    def box(
        name: str = "work",
        *,
        run: str = "run",
        network: Network = NO_NETWORK,
        limits: Limits | None = None,
        role: Role = Role.WORK,
        mounts: tuple[Mount, ...] = (),
    ) -> Box:
        spec = BoxSpec(run, name, role, image, network=network, limits=limits or Limits(memory_mb=512), mounts=mounts)
        made.append(DockerSandbox().create(spec))
        return made[-1]

    yield box
    for one in made:
        one.remove()


@pytest.fixture
def do(home: Path) -> Callable[..., tuple[Exit, str]]:
    """Return what runs a shell script in a box to its end."""
    count = 0

    def run(box: Box, script: str, timeout: float = 120) -> tuple[Exit, str]:
        nonlocal count
        count += 1
        output = home / f"{count}.out"
        done = box.start(f"p{count}", ["sh", "-c", script], output=output).wait(timeout)
        return done, output.read_text("utf-8", errors="replace")

    return run
