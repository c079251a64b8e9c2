"""The author's own solution, and the floor, judged on this host through the very path of a candidate."""

import contextlib
import hashlib
import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import paths
from harness.errors import RsiError
from harness.run.capture import Captured, ImageFiles, capture, inspect_image, lay_out
from harness.run.folder import write_json
from harness.run.judging import Candidate, Court, Watch, judge, wait
from harness.run.seeds import control_seed
from harness.run.store.snapshot import SnapshotStore
from harness.run.verdict import Finding, Verdict
from harness.sandbox.base import Box, BoxSpec, Mount, Network, Role
from harness.task.contract import Boundary

SCRIPTS = {"baseline": "solve.sh", "floor": "floor.sh"}
"""Which script of solution/ makes the candidate of a role."""


@dataclass(frozen=True)
class Bench:
    """What is needed to judge the author's candidates."""

    court: Court
    store: SnapshotStore
    boundary: Boundary
    solution: Path
    """Folder with solve.sh and, maybe, floor.sh; its scripts are executable."""
    folder: Path
    """Where logs and trees go."""
    seed: int
    network: Network
    """Whether the workspace has a network; the author's scripts run under the same rule."""
    solve_sec: float
    """Time limit of the author's script."""
    watch: Watch
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """A role's judgings: the finding, the seconds of one judging, and what the untouched image holds."""

    finding: Finding
    seconds: float
    image: ImageFiles


def untouched(bench: Bench) -> ImageFiles:
    """Return the boundary's files of the untouched image."""
    with _workspace(bench, "inspect") as box:
        return inspect_image(box, bench.boundary)


def has_role(solution: Path, role: str) -> bool:
    """Say whether the author gave a candidate for a role."""
    return (solution / SCRIPTS[role]).is_file()


def measure(bench: Bench, role: str, *, times: int = 1) -> Measured:
    """Judge the candidate of a role `times` times on fresh seeds; role `start` is the untouched workspace."""
    script = SCRIPTS.get(role)
    with _workspace(bench, f"control-{role}") as box:
        image = inspect_image(box, bench.boundary)
        fault = _solve(bench, box, script) if script else None
        if fault is not None:
            return Measured(fault, 0.0, image)
        box.freeze()
        taken = capture(bench.store, box, bench.boundary, image.watch(bench.boundary))
    return _judge_taken(bench, role, taken, image, times)


def _judge_taken(bench: Bench, role: str, taken: Captured, image: ImageFiles, times: int) -> Measured:
    if taken.snapshot is None:
        assert taken.fault is not None  # capture returns one or the other
        return Measured(taken.fault, 0.0, image)
    values: list[float] = []
    seconds: list[float] = []
    tree = bench.folder / "trees" / f"control-{role}"
    try:
        placement = lay_out(bench.store, taken.snapshot, image, tree)
        for index in range(times):
            label = f"control-{role}-{index + 1}"
            logs = bench.folder / "judgings" / label
            shutil.rmtree(logs, ignore_errors=True)
            begun = time.monotonic()
            seed = control_seed(bench.seed, role, index)
            finding = judge(bench.court, Candidate(placement), label=label, logs=logs, seed=seed, watch=bench.watch)
            seconds.append(time.monotonic() - begun)
            if finding.verdict is not Verdict.SCORED or finding.metric is None:
                return Measured(finding, seconds[-1], image)
            values.append(finding.metric)
            bench.tell(f"{role} {index + 1} of {times}: {finding.metric:.6g} in {seconds[-1]:.1f} s")
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    mean = Finding(
        Verdict.SCORED, statistics.fmean(values), finding.message, finding.evidence, finding.details, tuple(values)
    )
    return Measured(mean, statistics.median(seconds), image)


@contextlib.contextmanager
def _workspace(bench: Bench, name: str) -> Iterator[Box]:
    court = bench.court
    left = court.sandbox.attach(court.run, name)
    if left is not None:  # an engine died while it measured
        left.remove()
    mounts = (Mount(bench.solution, "/solution"),) if bench.solution.is_dir() else ()
    spec = BoxSpec(
        run=court.run,
        name=name,
        role=Role.WORK,
        image=court.image,
        network=bench.network,
        limits=court.limits,
        mounts=mounts,
    )
    box = court.sandbox.create(spec)
    try:
        yield box
    finally:
        box.remove()


def _solve(bench: Bench, box: Box, script: str) -> Finding | None:
    logs = bench.folder / "judgings" / f"control-{script}.log"
    logs.parent.mkdir(parents=True, exist_ok=True)
    process = box.start(
        "solve",
        [box.path(f"/solution/{script}")],
        output=logs,
        env={"RSI_SOLUTION": box.path("/solution"), "RSI_WORKDIR": box.path(bench.court.image.workdir)},
        max_output=4 << 20,
    )
    end = wait(process, bench.solve_sec, bench.watch)
    if end.timed_out or end.code != 0:
        why = f"exceeded {bench.solve_sec:g} s" if end.timed_out else f"ended with status {end.code}"
        tail = logs.read_text("utf-8", "replace")[-1000:] if logs.exists() else ""
        return Finding(Verdict.INVALID, message=f"solution/{script} {why}", evidence=tail)
    return None


# --- measurements of the same task, image and host are kept and used again -------------------------------------------


def control_key(task_digest: str, image: str, level: str, host: dict[str, Any]) -> str:
    """Return the name under which a measurement is kept: same task, image, isolation and kind of host."""
    text = json.dumps([task_digest, image, level, host], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _kept(key: str, role: str) -> Path:
    return paths.home() / "controls" / f"{key}-{role}.json"


def keep(key: str, role: str, by: str, measured: Measured) -> None:
    """Keep a scored measurement for later runs; `by` says in words where it was made.

    One that stands on more judgings is not replaced by one that stands on fewer.
    """
    known = recall(key, role)
    if known is not None and len(known["values"]) > len(measured.finding.values):
        return
    path = _kept(key, role)
    path.parent.mkdir(parents=True, exist_ok=True)
    finding = measured.finding
    write_json(path, {"by": by, "metric": finding.metric, "values": list(finding.values), "seconds": measured.seconds})


def recall(key: str, role: str) -> dict[str, Any] | None:
    """Return a kept measurement: by, metric, values, seconds; one that cannot be read is measured anew."""
    try:
        found = json.loads(_kept(key, role).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and found.keys() >= {"by", "metric", "values", "seconds"}
    return found if whole else None


def failed_control(role: str, finding: Finding) -> RsiError:
    """Return the error that ends a run whose author's candidate cannot be scored."""
    return RsiError(
        f"the author's {role} candidate was not scored: {finding.verdict}: {finding.message}",
        where=f"solution/{SCRIPTS[role]}",
        next_step="rsi check TASK shows which rung fails",
    )
