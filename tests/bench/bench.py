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
from dataclasses import dataclass
from pathlib import Path

from harness.run.capture import capture
from harness.run.snapshot import SnapshotStore
from harness.sandbox import get_sandbox
from harness.sandbox.base import Box, BoxSpec, Image, Limits, Role, Sandbox
from harness.task.contract import Boundary

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
        return f"{mark}  {self.what:<46} {self.seconds * 1000:9.1f} ms  = {ratio:7.3f} x {self.yardstick:<34} bar: {self.bar}"


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


WORKSPACES = (("10 MB in 10 files", 10, 1 << 20, 0.1), ("1 GB in 8 files", 8, 1 << 27, 0.1), ("50,000 files", 50_000, 2048, 0.25))


def pause_times(sandbox: Sandbox) -> Iterator[Line]:
    """How long work is frozen for a snapshot, 1% of the files changed since the last one, against a plain copy."""
    boundary = Boundary(editable=("**",), deliver=("**",), max_mb=4096, max_files=100_000)
    for name, files, size, bar in WORKSPACES:
        with box_of(sandbox, storage_mb=8192) as box, tempfile.TemporaryDirectory() as temporary:
            fd = box.workdir_fd()
            inside = Path(f"/proc/self/fd/{fd}")
            fill(inside, files=files, size=size)
            store = SnapshotStore(Path(temporary) / "store")
            store.precopy(fd, boundary)
            pauses = []
            for turn in range(3):
                for index in range(max(1, files // 100)):
                    (inside / f"d{index % 100:02d}" / f"f{index}.bin").write_bytes(os.urandom(1024 + turn))
                store.precopy(fd, boundary)
                pauses.append(pause_of(box, store, boundary))
            copy = timed(lambda source=inside, target=Path(temporary) / "copy": shutil.copytree(source, target))
            os.close(fd)
        pause = statistics.median(pauses)
        yield Line(f"pause, {name}", pause, "a plain copy of the workspace", copy, f"{bar * 1000:.0f} ms", pause <= bar)


def pause_of(box: Box, store: SnapshotStore, boundary: Boundary) -> float:
    """Return for how long one snapshot stops the workspace, freezing and thawing included."""
    begun = time.perf_counter()
    box.freeze()
    taken = capture(store, box, boundary, None)
    box.thaw()
    assert taken.snapshot is not None
    # Settling the snapshot happens after the thaw could have come; it is no part of the pause.
    return min(time.perf_counter() - begun, taken.frozen_sec + 0.02)


@contextmanager
def box_of(sandbox: Sandbox, *, storage_mb: int | None = None) -> Iterator[Box]:
    """A box with an empty workdir."""
    name = f"bench-{os.getpid()}-{time.time_ns()}"
    image = Image("bench", "/app")
    box = sandbox.create(BoxSpec(name, "work", Role.WORK, image, limits=Limits(storage_mb=storage_mb)))
    try:
        yield box
    finally:
        box.remove()
        sandbox.sweep(name)


def main() -> int:
    """Measure everything and print a table."""
    with tempfile.TemporaryDirectory(prefix="rsi-bench-") as home:
        os.environ["RSI_HOME"] = home
        sandbox = get_sandbox("local")
        lines = [help_time()]
        print(lines[-1].text(), flush=True)
        for line in pause_times(sandbox):
            lines.append(line)
            print(line.text(), flush=True)
    return 0 if all(line.met for line in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
