"""What a candidate may hold: hostile trees are refused by type, size, count, depth and name, and never followed."""

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.run.store import walker
from harness.run.store.globs import Globs
from harness.run.store.walker import BoundaryViolation, CandidateFault, InvalidCandidate, Scope, StoreError, walk


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def fill(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    return folder


def found(
    folder: Path,
    *deliver: str,
    frozen: tuple[str, ...] = (),
    max_bytes: int = 1 << 20,
    max_files: int = 100,
    workdir: str = "",
) -> list[str]:
    scope = Scope(Globs(deliver), Globs(frozen), max_bytes, max_files, workdir)
    with opened(folder) as fd:
        return sorted(walk(fd, scope, {}).paths)


def test_only_what_is_to_be_delivered_is_found(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "other.py", "src/a.py", "src/b.txt", "src/deep/c.py", ".hidden")
    assert found(tmp_path, "train.py", "src/**/*.py") == ["src/a.py", "src/deep/c.py", "train.py"]
    assert found(tmp_path, "*") == [".hidden", "other.py", "train.py"]
    assert len(found(tmp_path, "**")) == 6


def test_frozen_files_are_never_delivered(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "eval.py", "data/x", "data/y")
    assert found(tmp_path, "**", frozen=("eval.py", "data/**")) == ["train.py"]


def test_litter_is_never_delivered(tmp_path: Path) -> None:
    fill(tmp_path, "a.py", "__pycache__/a.cpython-311.pyc", "b.pyc", "src/.ipynb_checkpoints/x.py", ".pytest_cache/v")
    assert found(tmp_path, "**") == ["a.py"]


def test_what_is_not_delivered_may_be_anything(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "venv/lib/x")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "venv/lib64").symlink_to("lib")
    (tmp_path / "venv/python").symlink_to("/usr/bin/python3")
    os.mkfifo(tmp_path / "pipe")
    assert found(tmp_path, "train.py") == ["train.py"]
    assert found(tmp_path, "*.py", "src/**/*.py") == ["train.py"]


def test_a_deliverable_named_without_a_wildcard_must_be_there(tmp_path: Path) -> None:
    fill(tmp_path, "other.py")
    with pytest.raises(InvalidCandidate, match=r"missing deliverable: there is no file out/model\.pt"):
        found(tmp_path, "*.py", "out/model.pt")
    (tmp_path / "out/model.pt").mkdir(parents=True)
    with pytest.raises(InvalidCandidate, match="missing deliverable"):
        found(tmp_path, "out/model.pt")
    assert found(tmp_path, "nothing/*.pt") == []


def test_an_empty_name_list_is_no_error(tmp_path: Path) -> None:
    assert found(tmp_path, "*.pt") == []


OUTSIDE = ["/etc/passwd", "/", "../x", "../../etc/passwd", "src/../../x", "./../x", "/app/../etc", "/application/x"]
INSIDE = ["other.py", "src/../other.py", "./other.py", "nowhere", "/app/other.py", "/app", "/app/src/../x"]


@pytest.mark.parametrize("target", OUTSIDE)
def test_a_link_that_leaves_the_workdir_is_a_violation(tmp_path: Path, target: str) -> None:
    fill(tmp_path, "other.py")
    (tmp_path / "train.py").symlink_to(target)
    with pytest.raises(BoundaryViolation) as caught:
        found(tmp_path, "**", workdir="/app")
    assert target in caught.value.evidence
    assert target not in caught.value.message
    assert "train.py" in caught.value.message


@pytest.mark.parametrize("target", INSIDE)
def test_a_link_that_stays_inside_is_invalid(tmp_path: Path, target: str) -> None:
    fill(tmp_path, "other.py")
    (tmp_path / "train.py").symlink_to(target)
    with pytest.raises(InvalidCandidate, match=r"train.py is a link"):
        found(tmp_path, "**", workdir="/app")


def test_a_violation_outweighs_what_is_only_invalid(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    (tmp_path / "b").symlink_to("/etc/passwd")
    (tmp_path / "c").symlink_to("a")
    with pytest.raises(BoundaryViolation):
        found(tmp_path, "**", "missing.py")


def test_links_deeper_down_are_judged_by_where_they_lie(tmp_path: Path) -> None:
    fill(tmp_path, "a/b/c")
    (tmp_path / "a/b/up").symlink_to("../../a/b/c")
    with pytest.raises(InvalidCandidate):
        found(tmp_path, "**")
    (tmp_path / "a/b/up").unlink()
    (tmp_path / "a/b/up").symlink_to("../../../a")
    with pytest.raises(BoundaryViolation):
        found(tmp_path, "**")


@pytest.mark.parametrize("glob", ["out/model.pt", "out/**", "out/*.pt"])
def test_a_folder_on_the_way_that_is_a_link_is_not_followed(tmp_path: Path, glob: str) -> None:
    secret = fill(tmp_path / "secret", "model.pt")
    work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to(secret)
    with pytest.raises(BoundaryViolation):
        found(work, glob)


def test_a_link_to_proc_in_the_middle_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "hop").symlink_to("/proc/self")
    assert found(tmp_path, "*/environ") == []
    with pytest.raises(BoundaryViolation):
        found(tmp_path, "hop/environ")


def bind_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path.name)
    server.close()
    os.chdir(here)


@pytest.mark.parametrize(("make", "word"), [(os.mkfifo, "named pipe"), (bind_socket, "socket")])
def test_special_files_are_invalid_and_never_opened(tmp_path: Path, make: Callable[[Path], None], word: str) -> None:
    make(tmp_path / "model.pt")
    with pytest.raises(InvalidCandidate, match=f"model.pt is a {word}"):
        found(tmp_path, "*.pt")


@pytest.mark.machine
def test_a_device_is_invalid(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "zero", 0o020666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("needs the right to make a device")
    with pytest.raises(InvalidCandidate, match="zero is a device"):
        found(tmp_path, "*")


def test_a_giant_sparse_file_is_refused_by_its_size(tmp_path: Path) -> None:
    with (tmp_path / "model.pt").open("wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(InvalidCandidate, match=r"at most 100 MiB; with model.pt"):
        found(tmp_path, "*.pt", max_bytes=100 << 20)


def test_bytes_and_files_are_counted(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"f{number}").write_bytes(b"x" * 100)
    assert len(found(tmp_path, "*", max_bytes=1000, max_files=10)) == 10
    with pytest.raises(InvalidCandidate, match="MiB"):
        found(tmp_path, "*", max_bytes=999)
    with pytest.raises(InvalidCandidate, match="at most 9 files"):
        found(tmp_path, "*", max_files=9)


def test_a_flood_of_names_ends_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "MAX_SEEN", 50)
    fill(tmp_path, "train.py", *(f"junk/{number}.txt" for number in range(60)))
    assert found(tmp_path, "train.py") == ["train.py"]
    with pytest.raises(InvalidCandidate, match="more than 50 files"):
        found(tmp_path, "**/*.py")


def test_depth_is_bounded(tmp_path: Path) -> None:
    folders = "/".join(["d"] * (walker.MAX_DEPTH - 1))
    fill(tmp_path, f"{folders}/ok")
    assert found(tmp_path, "**") == [f"{folders}/ok"]
    fill(tmp_path, f"{folders}/d/too-deep")
    with pytest.raises(InvalidCandidate, match="deeper than 32"):
        found(tmp_path, "**")


def test_a_very_deep_tree_is_no_trap(tmp_path: Path) -> None:
    here = Path.cwd()
    os.chdir(tmp_path)
    for _ in range(500):
        Path("d" * 50).mkdir()
        os.chdir("d" * 50)
    os.chdir(here)
    with pytest.raises(InvalidCandidate, match="deeper"):
        found(tmp_path, "**")


def test_paths_are_bounded(tmp_path: Path) -> None:
    part = "x" * 250
    here = Path.cwd()
    os.chdir(tmp_path)
    for _ in range(4):
        Path(part).mkdir()
        os.chdir(part)
    Path("y" * 100).write_text("x")
    os.chdir(here)
    with pytest.raises(InvalidCandidate, match="too long") as caught:
        found(tmp_path, "**")
    assert len(caught.value.message) < 400


def test_names_that_are_no_utf8_are_invalid_and_shown_safely(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\x1b[31m"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    with pytest.raises(InvalidCandidate) as caught:
        found(tmp_path, "*")
    assert "\\xff\\x1b[31m" in caught.value.message
    caught.value.message.encode()


@pytest.mark.parametrize("name", ["a\nb", "ü.py", "名前", "-rf", " ", "a'b\"c", "\\", ".git", "con"])
def test_odd_names_are_fine(tmp_path: Path, name: str) -> None:
    fill(tmp_path, name)
    assert found(tmp_path, "*") == [name]


def test_a_hard_link_is_taken_only_where_its_maker_could_read_the_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("labels")
    work = tmp_path / "work"
    work.mkdir()
    (work / "model.pt").hardlink_to(secret)
    secret.chmod(0o644)
    assert found(work, "*") == ["model.pt"]
    secret.chmod(0o600)
    if os.geteuid() == 0:
        with pytest.raises(InvalidCandidate, match="hard link"):
            found(work, "*")
        os.chown(secret, 1234, 1234)
        os.chown(work, 1234, 1234)
    assert found(work, "*") == ["model.pt"]


def test_what_cannot_be_read_is_invalid_and_a_broken_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "sub/x")
    real = os.open
    number = errno.EACCES

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "sub":
            raise OSError(number, os.strerror(number))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(InvalidCandidate, match="sub cannot be read"):
        found(tmp_path, "**")
    number = errno.EIO
    with pytest.raises(StoreError) as caught:
        found(tmp_path, "**")
    assert caught.value.next_step


def test_another_file_system_below_the_workdir_is_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "mounted/x")
    inside = (tmp_path / "mounted").stat().st_ino
    real = os.fstat

    def moved(fd: int) -> os.stat_result:
        seen = real(fd)
        return os.stat_result([*seen[:2], 99, *seen[3:]]) if seen.st_ino == inside else seen

    monkeypatch.setattr(os, "fstat", moved)
    with pytest.raises(InvalidCandidate, match="another file system"):
        found(tmp_path, "**")


def test_names_that_vanish_during_the_walk_were_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "a/x", "b/y")
    real = os.open

    def vanishing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a":
            raise FileNotFoundError(2, "gone")
        return real(path, flags, mode, dir_fd=dir_fd)

    with opened(tmp_path) as fd:
        monkeypatch.setattr(os, "open", vanishing)
        scope = Scope(Globs(["**"]), Globs([]), 100, 100)
        assert walk(fd, scope, {}).paths == ["b/y"]


def test_every_fault_has_its_verdict() -> None:
    assert issubclass(BoundaryViolation, CandidateFault)
    assert (InvalidCandidate.verdict.value, BoundaryViolation.verdict.value) == ("invalid", "violation")
