"""Measure the promises of speed as ratios within one run: `make bench`.

Absolute times depend on the machine; each figure stands beside a yardstick that was measured in the same minute.
The bars are those of the documentation (explanation/design.md). Exit status 1 when one is not met.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from harness import paths
from harness.agents import get_agent
from harness.run.capture import capture
from harness.run.create import Wishes, create_run
from harness.run.engine import Engine
from harness.run.state import Event, State
from harness.run.store.snapshot import SnapshotStore
from harness.sandbox import get_sandbox
from harness.sandbox.base import Box, BoxSpec, Limits, Role, Sandbox
from harness.task.contract import Boundary
from harness.task.load import load_task
from rsi_anything.project.checkout import open_project
from rsi_anything.project.research import research

ROUNDS = 7


@dataclass
class Line:
    """One figure, its yardstick and its bar."""

    what: str
    seconds: float
    yardstick: str
    yard_seconds: float
    bar: str
    met: bool

    def text(self) -> str:
        """Return the line for the table."""
        ratio = self.seconds / self.yard_seconds
        mark = "ok  " if self.met else "MISS"
        measured = f"{self.what:<38} {self.seconds * 1000:9.1f} ms = {ratio:7.3f} x {self.yardstick}"
        return f"{mark} {measured:<92} bar: {self.bar}"


def median_of(work: Callable[[], float], rounds: int = ROUNDS) -> float:
    """Return the median of several timings, after one that does not count."""
    work()
    return statistics.median(work() for _ in range(rounds))


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def run(*command: str) -> None:
    """Run a command and throw its output away."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def help_time() -> Line:
    """`rsi --help` against a bare interpreter, in turn."""
    rsi = str(Path(sys.executable).with_name("rsi"))
    ours = median_of(lambda: timed(lambda: run(rsi, "--help")), 15)
    bare = median_of(lambda: timed(lambda: run(sys.executable, "-c", "pass")), 15)
    return Line("rsi --help", ours, "python -c pass", bare, "at most 5 x", ours <= 5 * bare)


def fill(folder: Path, *, files: int, size: int) -> None:
    """Write a workspace of many files of one size."""
    block = os.urandom(min(size, 1 << 20))
    for index in range(files):
        path = folder / f"d{index % 100:02d}" / f"f{index}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for _ in range(max(1, size // len(block))):
                file.write(block)


WORKSPACES = (
    ("10 MB in 10 files", 10, 1 << 20, 0.1),
    ("1 GB in 8 files", 8, 1 << 27, 0.1),
    ("50,000 files", 50_000, 2048, 0.25),
)
"""Name, files, bytes a file, and for how many seconds work may be frozen."""


def pause_times(sandbox: Sandbox) -> Iterator[Line]:
    """How long work is frozen for a snapshot, 1% of the files changed since the last one, against a plain copy."""
    boundary = Boundary(editable=("**",), deliver=("**",), max_mb=4096, max_files=100_000)
    for name, files, size, bar in WORKSPACES:
        with box_of(sandbox, storage_mb=8192) as box, tempfile.TemporaryDirectory(dir=paths.home()) as temporary:
            fd = box.workdir_fd()
            inside = Path(f"/proc/self/fd/{fd}")
            fill(inside, files=files, size=size)
            store = SnapshotStore(Path(temporary) / "store")
            store.precopy(fd, boundary, inside=box.path(box.spec.image.workdir))
            pauses = []
            for turn in range(3):
                for index in range(max(1, files // 100)):
                    (inside / f"d{index % 100:02d}" / f"f{index}.bin").write_bytes(os.urandom(1024 + turn))
                store.precopy(fd, boundary, inside=box.path(box.spec.image.workdir))
                pauses.append(pause_of(box, store, boundary))
            copy = timed(lambda source=inside, target=Path(temporary) / "copy": shutil.copytree(source, target))
            os.close(fd)
        pause = statistics.median(pauses)
        yield Line(f"pause, {name}", pause, "a plain copy of the workspace", copy, f"{bar * 1000:.0f} ms", pause <= bar)


def pause_of(box: Box, store: SnapshotStore, boundary: Boundary) -> float:
    """Return for how long one snapshot stops the workspace: freezing, taking and thawing."""
    freeze = timed(box.freeze)
    taken = capture(store, box, boundary, None)
    thaw = timed(box.thaw)
    assert taken.snapshot is not None
    return freeze + taken.frozen_sec + thaw


@contextmanager
def box_of(sandbox: Sandbox, *, storage_mb: int | None = None) -> Iterator[Box]:
    """A box with an empty workdir."""
    name = f"bench-{os.getpid()}-{time.time_ns()}"
    image = sandbox.bare_image()  # type: ignore[attr-defined]  # every sandbox of ours has it; the protocol needs it not
    image = replace(image, workdir="/app")
    box = sandbox.create(BoxSpec(name, "work", Role.WORK, image, limits=Limits(storage_mb=storage_mb)))
    try:
        yield box
    finally:
        box.remove()
        sandbox.sweep(name)


TASK = {
    "task.toml": """\
schema_version = "1.4"
[agent]
timeout_sec = 600
[verifier]
timeout_sec = 60
[environment]
network_mode = "no-network"
[metadata.rsi]
category = "bench"
question = "How long does a submission take to reach its judge?"
source = {repository = "local", commit = "none", license = "Apache-2.0"}
metric = {name = "zero", direction = "minimize", lowest = 0, highest = 1}
evaluation = {mode = "direct"}
boundary = {editable = ["value.txt"], deliver = ["value.txt"]}
budget = {hours = 1, submissions = 100}
""",
    "instruction.md": "Hand in.\n",
    "environment/Dockerfile": "FROM scratch\nWORKDIR /app\nCOPY value.txt /app/\n",
    "environment/value.txt": "0\n",
    "tests/test.sh": """\
#!/bin/sh
date +%s%N > "$RSI_LOGS/first"
echo '{"zero": 0, "reward": 0}' > "$RSI_LOGS/reward.json"
""",
}
AGENT = "for i in 1 2 3 4 5 6 7 8 9; do echo $i > value.txt; date +%s%N >> /app/times; rsi-submit -m bench; done"


def submit_time(sandbox: Sandbox, folder: Path) -> Line:
    """From `rsi-submit` to the judge's first instruction, against the bare start of a box and one command in it."""
    for path, text in TASK.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (folder / "tests/test.sh").chmod(0o755)
    agent = get_agent("script", ("sh", "-c", AGENT))
    run = create_run(load_task(folder), agent, ("sh", "-c", AGENT), sandbox, Wishes(), lambda _line: None)
    times: list[int] = []

    def observe(event: Event, _state: State) -> None:
        if event["kind"] == "submission_opened":
            # The request's own file tells when it was handed in, whoever reads it and when.
            box = sandbox.attach(run.name, "work")
            assert box is not None
            fd = box.workdir_fd()
            times.append(int(Path(f"/proc/self/fd/{fd}/times").read_text().split()[-1]))
            os.close(fd)

    Engine(run, sandbox, agent, tell=lambda _line: None, observe=observe).run()
    firsts = [int(path.read_text()) for path in sorted((run.path / "judgings").glob("0*/1/verifier/first"))]
    took = [(first - begun) / 1e9 for first, begun in zip(firsts, times, strict=True)]
    ours, bare = statistics.median(took[2:]), median_of(lambda: bare_start(sandbox, folder))
    return Line(
        "submit to the judge's first instruction", ours, "a bare start of a box", bare, "1.5 x", ours <= 1.5 * bare
    )


def bare_start(sandbox: Sandbox, folder: Path) -> float:
    """Return how long a new box takes to its first instruction."""
    (folder / "bare").unlink(missing_ok=True)
    begun = time.time_ns()
    with box_of(sandbox) as box:
        process = box.start("first", ["date", "+%s%N"], output=folder / "bare", cwd="/")
        process.wait(10)
    return (int((folder / "bare").read_text()) - begun) / 1e9


def research_time(folder: Path) -> Line:
    """Research of a project of 10,000 files, against reading the first block of each of its files."""
    text = (
        "import argparse\n\nLEARNING_RATE = 0.01\n\n\ndef train(steps: int = 100) -> float:\n    return 0.5 / steps\n"
        * 8
    )
    for index in range(10_000):
        path = folder / f"p{index % 100}" / f"module_{index}.{('py', 'md', 'json', 'csv')[index % 4]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"lr": 0.1}' if path.suffix == ".json" else text)
    project = open_project(str(folder), None, cache=folder.parent / "cache")
    took = min(timed(lambda: research(project)) for _ in range(3))

    def read_all() -> None:
        for path in folder.rglob("*.*"):
            with path.open("rb") as file:
                file.read(4096)

    yard = min(timed(read_all) for _ in range(3))
    return Line("research of a project of 10,000 files", took, "reading a block of each file", yard, "3 s", took <= 3)


def main() -> int:
    """Measure everything and print a table."""
    with tempfile.TemporaryDirectory(prefix="rsi-bench-") as home:
        os.environ["RSI_HOME"] = home
        sandbox = get_sandbox("local")
        print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        lines = []
        measures = (
            lambda: iter([help_time()]),
            lambda: iter([submit_time(sandbox, Path(home) / "task")]),
            lambda: iter([research_time(Path(home) / "project")]),
            lambda: pause_times(sandbox),
        )
        for measure in measures:
            for line in measure():
                lines.append(line)
                print(line.text(), flush=True)
    return 0 if all(line.met for line in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
