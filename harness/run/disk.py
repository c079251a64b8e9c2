"""Keeps a run from filling the host's disk, which nothing but a look at it can do where there are no quotas."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import RsiError
from harness.sandbox.base import Box

FLOOR_MB = 512
"""Free space that a run leaves to the host, so that at least its end can be written down."""
FLOOR_FILES = 10_000
"""Free inodes likewise, where the file system counts them."""
LOOK_SEC = 0.5
"""How often free space is asked for: nobody writes the floor's worth in less."""
MEASURE_SEC = 1.0
"""Least seconds between two measurements of a judge's box."""
SHARE = 10
"""A measurement that took x seconds is followed by SHARE * x seconds of rest."""


class DiskFull(RsiError):
    """The host has no room left for this run."""


class OverUse(Exception):
    """A judge's box holds more than it may."""


class HostDisk:
    """Looks at the free space of the file system below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 0.0

    def check(self) -> None:
        """Raise DiskFull where there is too little left; cheap enough to be called all the time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + LOOK_SEC
        seen = os.statvfs(self._folder)
        free_mb = seen.f_bavail * seen.f_frsize >> 20
        if free_mb < FLOOR_MB or (seen.f_files and seen.f_favail < FLOOR_FILES):
            raise DiskFull(
                f"the host's disk is full: {free_mb} MiB and {seen.f_favail} files are left",
                where=str(self._folder),
                next_step="make room, then rsi resume RUN",
            )


class JudgeDisk:
    """Measures a judge's box now and then; what a candidate writes there is bounded like a workspace."""

    def __init__(self, box: Box, most_mb: int | None) -> None:
        self._box = box
        self._most_mb = most_mb
        self._next = time.monotonic() + MEASURE_SEC

    def guard(self, watch: Callable[[], None]) -> Callable[[], None]:
        """Return a watch that also raises OverUse."""

        def both() -> None:
            watch()
            self._check()

        return both

    def _check(self) -> None:
        begun = time.monotonic()
        if self._most_mb is None or begun < self._next:
            return
        used = self._box.usage_mb()
        self._next = time.monotonic() + max(MEASURE_SEC, SHARE * (time.monotonic() - begun))
        if used > self._most_mb:
            raise OverUse
