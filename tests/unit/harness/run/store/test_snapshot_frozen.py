"""Frozen files: a change of content is found, a change of times alone is none, and nothing is followed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run.store import frozen
from harness.run.store.frozen import FrozenWatch, scan_image

GLOBS = ("eval.py", "data/**", "pkg/*.py")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for path in ("eval.py", "data/a.bin", "data/deep/b.bin", "pkg/x.py", "train.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / "data/link").symlink_to("a.bin")
    return tmp_path


@pytest.fixture
def fd(work: Path) -> Iterator[int]:
    fd = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def watch(fd: int) -> FrozenWatch:
    return FrozenWatch(GLOBS, scan_image(fd, GLOBS))


def test_the_image_is_scanned_by_globs(fd: int) -> None:
    image = scan_image(fd, GLOBS)
    assert sorted(image) == ["data/a.bin", "data/deep/b.bin", "data/link", "eval.py", "pkg/x.py"]
    assert image["data/link"] == "-> a.bin"
    assert scan_image(fd, []) == {}


def test_an_untouched_tree_has_no_changes(watch: FrozenWatch, fd: int, work: Path) -> None:
    assert watch.changes(fd) == []
    (work / "train.py").write_text("mine to change")
    (work / "other").mkdir()
    assert watch.changes(fd) == []


def test_new_times_alone_are_no_change(watch: FrozenWatch, fd: int, work: Path) -> None:
    os.utime(work / "eval.py", (1, 1))
    (work / "data/a.bin").write_text("data/a.bin")
    assert watch.changes(fd) == []


def test_every_kind_of_change_is_named(watch: FrozenWatch, fd: int, work: Path) -> None:
    (work / "eval.py").write_text("eval.pY")
    (work / "data/a.bin").unlink()
    (work / "data/new").write_text("x")
    (work / "data/link").unlink()
    (work / "data/link").symlink_to("/etc/passwd")
    (work / "pkg/x.py").unlink()
    os.mkfifo(work / "pkg/x.py")
    assert watch.changes(fd) == [
        "data/a.bin: removed",
        "data/link: replaced by a link",
        "data/new: added",
        "eval.py: changed",
        "pkg/x.py: replaced by a named pipe",
    ]


def test_a_folder_replaced_by_a_link_is_not_followed(watch: FrozenWatch, fd: int, work: Path) -> None:
    (work / "data").rename(work / "elsewhere")
    (work / "data").symlink_to("elsewhere")
    assert watch.changes(fd) == [
        "data: added",
        "data/a.bin: removed",
        "data/deep/b.bin: removed",
        "data/link: removed",
    ]


def test_a_change_taken_back_is_none(watch: FrozenWatch, fd: int, work: Path) -> None:
    (work / "eval.py").write_text("EVAL.py")
    assert watch.changes(fd) == ["eval.py: changed"]
    (work / "eval.py").write_text("eval.py")
    assert watch.changes(fd) == []


def test_litter_never_counts(watch: FrozenWatch, fd: int, work: Path) -> None:
    (work / "data/__pycache__").mkdir()
    (work / "data/__pycache__/x.cpython-311.pyc").write_text("x")
    (work / "data/y.pyc").write_text("x")
    assert watch.changes(fd) == []


def test_an_unchanged_file_is_read_once(
    fd: int, watch: FrozenWatch, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frozen, "is_past", lambda *_: True)
    assert watch.changes(fd) == []
    read = []
    real = frozen.open_beneath
    monkeypatch.setattr(frozen, "open_beneath", lambda fd, path, flags: (read.append(path), real(fd, path, flags))[1])
    assert watch.changes(fd) == []
    assert set(read) <= {"data"}, "only the link's folder is opened again"
    (work / "data/a.bin").write_text("DATA/a.bin")
    assert watch.changes(fd) == ["data/a.bin: changed"]


def test_a_giant_file_in_a_frozen_place_is_not_read(
    watch: FrozenWatch, fd: int, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (work / "eval.py").open("wb") as file:
        file.truncate(20 << 30)
    with (work / "data/new").open("wb") as file:
        file.truncate(20 << 30)
    asked = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: (asked.append(os.fstat(fd).st_size), real(fd, size))[1])
    assert watch.changes(fd) == ["data/new: added", "eval.py: changed"]
    assert all(size < 100 for size in asked)


def test_names_are_shown_safely_and_their_number_is_bounded(watch: FrozenWatch, fd: int, work: Path) -> None:
    os.close(os.open(os.fsencode(work) + b"/data/\xff\x1b", os.O_CREAT | os.O_WRONLY))
    assert watch.changes(fd) == ["data/\\xff\\x1b: added"]
    for number in range(frozen.MAX_REPORTED + 5):
        (work / f"data/n{number:03d}").write_text("x")
    changes = watch.changes(fd)
    assert len(changes) == frozen.MAX_REPORTED + 1
    assert changes[-1] == "and 6 more"
