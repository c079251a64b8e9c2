"""What goes on beside the agent's work: files are copied ahead of the next snapshot, and disk use is watched."""

import os
import threading
import time
from pathlib import Path

from harness.errors import RsiError
from harness.run.capture import open_workdir
from harness.run.store.frozen import FrozenWatch
from harness.run.store.snapshot import SnapshotStore
from harness.sandbox.base import Box
from harness.sandbox.namespacebox import disk_usage_mb
from harness.task.contract import Boundary

SHORTEST = 2.0
"""Least seconds between two passes."""

SHARE = 20
"""A pass that took x seconds is followed by SHARE * x seconds of rest, so that copying takes at most 5% of one core."""


class Upkeep:
    """A thread that makes passes; `exclusive` keeps it out while a snapshot is taken."""

    def __init__(
        self, store: SnapshotStore, box: Box, boundary: Boundary, frozen: FrozenWatch | None, inbox: Path
    ) -> None:
        self.exclusive = threading.Lock()
        self.failure: RsiError | OSError | None = None
        self.usage_mb = 0.0
        self._store = store
        self._box = box
        self._boundary = boundary
        self._frozen = frozen
        self._inbox = inbox
        """A folder of the host that the box may write to: what lies there counts as the box's."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the present pass."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def ahead(self) -> None:
        """Make one pass of copying now; the caller holds `exclusive`."""
        fd = open_workdir(self._box)
        if fd is None:
            return
        try:
            if self._frozen is not None:
                self._frozen.changes(fd)  # reads ahead; what it finds counts only in the freeze
            self._store.precopy(fd, self._boundary, inside=self._box.path(self._box.spec.image.workdir))
        finally:
            os.close(fd)

    def _loop(self) -> None:
        rest = SHORTEST
        while not self._stop.wait(rest):
            begun = time.monotonic()
            try:
                with self.exclusive:
                    self.ahead()
                    self.usage_mb = self._box.usage_mb() + disk_usage_mb(self._inbox)
            except (RsiError, OSError) as error:
                self.failure = error
                return
            rest = max(SHORTEST, SHARE * (time.monotonic() - begun))
