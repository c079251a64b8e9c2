"""The host keeps room of its own: free space is looked at, and a judge's box is measured."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.run import disk
from harness.run.disk import DiskFull, HostDisk, JudgeDisk, OverUse
from harness.sandbox.base import BoxSpec, Role
from harness.sandbox.fake import FakeBox, FakeSandbox


def seen(free_mb: int, files: int, free_files: int) -> SimpleNamespace:
    """Return what statvfs would."""
    return SimpleNamespace(f_bavail=free_mb, f_frsize=1 << 20, f_files=files, f_favail=free_files)


@pytest.mark.parametrize(
    ("found", "full"),
    [
        (seen(100_000, 10**6, 10**5), False),
        (seen(disk.FLOOR_MB - 1, 10**6, 10**5), True),
        (seen(100_000, 10**6, 10), True),
        (seen(100_000, 0, 0), False),  # a file system that does not count its files
    ],
)
def test_a_run_ends_before_the_host_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: SimpleNamespace, full: bool
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    guard = HostDisk(tmp_path)
    if full:
        with pytest.raises(DiskFull, match="full"):
            guard.check()
    else:
        guard.check()


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBox:
    """Return a judge's box that is measured at every look."""
    monkeypatch.setenv("RSI_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(disk, "MEASURE_SEC", 0.0)
    monkeypatch.setattr(disk, "SHARE", 0)
    sandbox = FakeSandbox({})
    made = sandbox.create(BoxSpec("run", "judge-1", Role.JUDGE, sandbox.bare_image()))
    assert isinstance(made, FakeBox)
    return made


def test_a_judges_box_may_hold_what_its_task_allows_and_no_more(box: FakeBox) -> None:
    looks = []
    watch = JudgeDisk(box, 1).guard(lambda: looks.append(1))
    watch()
    Path(box.path("/large")).write_bytes(bytes(2 << 20))
    with pytest.raises(OverUse):
        watch()
    JudgeDisk(box, None).guard(lambda: None)()
    assert len(looks) == 2
