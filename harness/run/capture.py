"""From a frozen workspace to a candidate: boundary checked, files kept by content, laid out for a judge."""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import RsiError
from harness.run.store.frozen import FrozenWatch, scan_image
from harness.run.store.snapshot import Snapshot, SnapshotStore
from harness.run.store.walker import CandidateFault
from harness.run.verdict import Finding, Verdict
from harness.sandbox.base import Box, Placement
from harness.task.contract import Boundary

MAX_NAMED = 5
"""Most paths that a message names."""


@dataclass(frozen=True)
class ImageFiles:
    """The files of the untouched workdir that matter to the boundary."""

    frozen: Mapping[str, str] = field(default_factory=dict)
    """Path to content, as `scan_image` words it, of each frozen file."""
    deliver: tuple[str, ...] = ()
    """Paths that match the deliver globs."""

    def watch(self, boundary: Boundary) -> FrozenWatch:
        """Return what finds changes of the frozen files."""
        return FrozenWatch(boundary.frozen, self.frozen)


@dataclass(frozen=True)
class Captured:
    """What was taken: a snapshot, or the finding that says why there is none."""

    snapshot: Snapshot | None
    fault: Finding | None
    frozen_sec: float
    """How long it took; work was frozen meanwhile."""


def inspect_image(box: Box, boundary: Boundary) -> ImageFiles:
    """Return the boundary's files as a box shows them before anybody worked in it."""
    fd = box.workdir_fd()
    try:
        frozen = scan_image(fd, boundary.frozen)
        # What is frozen is never delivered, so the judge's own copy of it must stay where both match.
        deliver = sorted(scan_image(fd, boundary.deliver).keys() - frozen.keys())
        return ImageFiles(frozen, tuple(deliver))
    finally:
        os.close(fd)


def open_workdir(box: Box) -> int | None:
    """Return a descriptor of the workdir, or None where whoever works there has removed or replaced it."""
    try:
        return box.workdir_fd()
    except RsiError:
        if not box.alive():
            raise
        return None


def capture(store: SnapshotStore, box: Box, boundary: Boundary, watch: FrozenWatch | None) -> Captured:
    """Take a snapshot of a frozen box; `watch` is None for a plain Harbor task, which has no boundary to cross."""
    begun = time.monotonic()
    fd = open_workdir(box)
    if fd is None:
        gone = "the workdir is no folder any more; make it again, with the files that are to be handed in"
        return Captured(None, Finding(Verdict.INVALID, message=gone), time.monotonic() - begun)
    snapshot, fault = None, None
    try:
        changed = watch.changes(fd) if watch is not None else []
        if changed:
            fault = _frozen(changed)
        else:
            snapshot = store.take(fd, boundary, inside=box.path(box.spec.image.workdir))
    except CandidateFault as error:
        fault = Finding(error.verdict, message=error.message, evidence=error.evidence)
    finally:
        os.close(fd)
    seconds = time.monotonic() - begun
    if snapshot is not None:
        store.settle(snapshot)
    return Captured(snapshot, fault, seconds)


def _frozen(changed: list[str]) -> Finding:
    named = ", ".join(changed[:MAX_NAMED]) + (
        f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
    )
    return Finding(
        Verdict.VIOLATION,
        message=f"frozen files were changed: {named}; put them back as they were",
        evidence="\n".join(changed),
    )


def lay_out(store: SnapshotStore, snapshot: Snapshot, image: ImageFiles, tree: Path) -> Placement:
    """Build a snapshot's tree and say which files of the image it does not have."""
    if tree.exists():
        shutil.rmtree(tree)
    tree.parent.mkdir(parents=True, exist_ok=True)
    store.materialise(snapshot, tree)
    kept = {entry.path for entry in snapshot.entries()}
    return Placement(tree, tuple(path for path in image.deliver if path not in kept))
