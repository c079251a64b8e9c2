"""The store: the same content gives the same digest, nothing torn is kept, what did not change is not read again."""

import errno
import hashlib
import json
import mmap
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run.store import copying
from harness.run.store.snapshot import Snapshot, SnapshotStore
from harness.run.store.walker import InvalidCandidate, StoreError
from harness.task.contract import Boundary

ALL = Boundary(editable=("**",), deliver=("**",))


class Place:
    """A workspace with a store beside it."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.folder = folder / "store"
        self.fd = os.open(self.work, os.O_RDONLY | os.O_DIRECTORY)
        self.store = SnapshotStore(self.folder)

    def write(self, path: str, content: str | bytes) -> None:
        target = self.work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def take(self, boundary: Boundary = ALL) -> Snapshot:
        snapshot = self.store.take(self.fd, boundary)
        self.store.settle(snapshot)
        return snapshot

    def ahead(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "ahead").iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    os.close(place.fd)


def rest() -> None:
    """Wait until a change must show in a file's times."""
    time.sleep(copying.TICK_NS / 1e9 + 0.005)


def test_a_snapshot_is_named_by_its_content(place: Place) -> None:
    place.write("b.py", "2")
    place.write("a/ü.py", "1")
    (place.work / "b.py").chmod(0o755)
    snapshot = place.take()
    assert [tuple(entry) for entry in snapshot.entries()] == [
        ("a/ü.py", hashlib.sha256(b"1").hexdigest(), 1, False),
        ("b.py", hashlib.sha256(b"2").hexdigest(), 1, True),
    ]
    assert (snapshot.files, snapshot.size) == (2, 2)
    assert snapshot.digest == hashlib.sha256(snapshot.manifest).hexdigest()
    assert json.loads(snapshot.manifest)["version"] == 1
    assert place.store.load(snapshot.digest) == snapshot
    assert place.store.digests() == [snapshot.digest]
    assert place.store.verify(snapshot.digest) == []


def test_another_store_gives_the_same_digest(place: Place, tmp_path: Path) -> None:
    place.write("a", "x")
    place.write("b/c", "y")
    again = SnapshotStore(tmp_path / "again").take(place.fd, ALL)
    assert again.digest == place.take().digest


def test_nothing_delivered_is_a_snapshot_too(place: Place) -> None:
    snapshot = place.take()
    assert (snapshot.files, snapshot.entries()) == (0, [])
    assert list(place.store.materialise(snapshot, place.folder / "tree").iterdir()) == []


@pytest.mark.parametrize("ahead", [True, False])
def test_changes_additions_and_removals_show(place: Place, ahead: bool) -> None:
    digests = []
    for change in (
        lambda: place.write("a", "1"),
        lambda: place.write("a", "2"),
        lambda: place.write("b", "3"),
        lambda: (place.work / "a").rename(place.work / "c"),
        (place.work / "b").unlink,
        lambda: (place.work / "c").chmod(0o755),
        lambda: place.write("c", "2"),
    ):
        change()
        if ahead:
            place.store.precopy(place.fd, ALL)
        digests.append(place.take().digest)
    assert len(set(digests)) == 6
    assert digests[-1] == digests[-2]


def test_what_was_copied_ahead_is_not_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("a", "1")
    place.write("b", "2")
    rest()
    assert place.store.precopy(place.fd, ALL) == 2
    assert place.store.precopy(place.fd, ALL) == 0
    read = []
    real = copying.open_beneath
    monkeypatch.setattr(copying, "open_beneath", lambda fd, path, flags: (read.append(path), real(fd, path, flags))[1])
    first = place.take()
    place.write("b", "3")
    second = place.take()
    assert read == ["b"]
    assert first.digest != second.digest


def test_a_change_in_the_same_tick_is_not_missed(place: Place) -> None:
    for number in range(30):
        place.write("a", f"{number:04d}")
        place.store.precopy(place.fd, ALL)
        place.write("a", f"{number:04d}"[::-1])
        (entry,) = place.store.take(place.fd, ALL).entries()
        assert entry.sha256 == hashlib.sha256(f"{number:04d}"[::-1].encode()).hexdigest()


@pytest.mark.parametrize("many", [False, True])
def test_a_store_through_a_memory_map_is_not_missed(place: Place, many: bool) -> None:
    if _is_tmpfs(place.work):
        pytest.skip("needs a file system that notes writes through a memory map")
    place.write("a", b"x" * 8192)
    for number in range(copying.MANY + 1 if many else 0):
        place.write(f"other{number}", "x")
    with (place.work / "a").open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        for number in range(5):
            view[0] = number
            rest()
            place.store.precopy(place.fd, ALL)
            rest()
            view[0] = 100 + number
            entry = place.store.take(place.fd, ALL).entries()[0]
            assert entry.sha256 == hashlib.sha256(bytes(view)).hexdigest()


def _is_tmpfs(path: Path) -> bool:
    mounts = sorted((line.split() for line in Path("/proc/mounts").read_text().splitlines()), key=lambda m: len(m[1]))
    return next(m[2] for m in reversed(mounts) if str(path).startswith(m[1])) == "tmpfs"


def test_what_changes_while_it_is_copied_is_not_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("log", "x" * 100)
    real = os.read

    def growing(fd: int, size: int) -> bytes:
        content = real(fd, size)
        with (place.work / "log").open("ab") as file:
            file.write(b"y")
        return content

    monkeypatch.setattr(copying.os, "read", growing)
    assert place.store.precopy(place.fd, ALL) == 0
    assert place.ahead() == []
    with pytest.raises(InvalidCandidate, match="kept changing"):
        place.store.take(place.fd, ALL)


def test_a_living_tree_never_breaks_copying_ahead(place: Place) -> None:
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            place.write(f"d{number % 3}/f{number % 7}", str(number) * 200)
            shutil.rmtree(place.work / f"d{(number + 1) % 3}", ignore_errors=True)
            (place.work / "l").unlink(missing_ok=True)
            (place.work / "l").symlink_to("/etc" if number % 2 else "d1")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(60):
            place.store.precopy(place.fd, ALL)
    finally:
        stop.set()
        thread.join()
    (place.work / "l").unlink()
    snapshot = place.take()
    tree = place.store.materialise(snapshot, place.folder / "tree")
    for entry in snapshot.entries():
        assert (tree / entry.path).read_bytes() == (place.work / entry.path).read_bytes()
    assert place.store.verify(snapshot.digest) == []


def test_a_file_swapped_for_a_link_between_look_and_read_is_not_followed(place: Place, tmp_path: Path) -> None:
    place.write("a/b", "1")
    real = place.store._walk

    def swapping(fd: int, boundary: Boundary, inside: str) -> object:
        found = real(fd, boundary, inside)
        shutil.rmtree(place.work / "a")
        (place.work / "a").symlink_to(tmp_path)
        return found

    place.store._walk = swapping  # type: ignore[method-assign, assignment]
    (tmp_path / "b").write_text("labels")
    assert place.store.precopy(place.fd, ALL) == 0
    assert not place.folder.exists()


def test_copies_that_nothing_needs_any_more_are_deleted(place: Place) -> None:
    for number in range(5):
        place.write("model.pt", os.urandom(1000) + bytes([number]))
        place.store.precopy(place.fd, ALL)
        assert len(place.ahead()) == 1
    snapshot = place.take()
    assert place.ahead() == []
    assert place.store.verify(snapshot.digest) == []


def test_a_snapshot_not_settled_yet_keeps_its_copies(place: Place) -> None:
    place.write("a", "1")
    snapshot = place.store.take(place.fd, ALL)
    place.write("a", "2")
    place.store.precopy(place.fd, ALL)
    place.store.settle(snapshot)
    assert place.store.verify(snapshot.digest) == []


def test_what_a_killed_engine_copied_ahead_is_deleted_and_snapshots_stay(place: Place) -> None:
    place.write("a", "1")
    snapshot = place.take()
    place.write("a", "2")
    place.store.precopy(place.fd, ALL)
    (place.folder / "ahead" / ".part").write_text("half")
    (place.folder / "ahead" / ".part").chmod(0o444)
    after = SnapshotStore(place.folder)
    again = after.take(place.fd, ALL)
    after.settle(again)
    assert after.verify(snapshot.digest) == after.verify(again.digest) == []
    assert place.ahead() == []


def test_settling_twice_changes_nothing(place: Place) -> None:
    place.write("a", "1")
    snapshot = place.take()
    place.store.settle(snapshot)
    SnapshotStore(place.folder).settle(snapshot)
    assert place.store.verify(snapshot.digest) == []


def test_equal_contents_are_stored_once(place: Place) -> None:
    for name in "abc":
        place.write(name, "same")
    place.take()
    assert sum(path.is_file() for path in (place.folder / "objects").rglob("*")) == 1


def test_the_caps_hold_before_anything_is_copied(place: Place) -> None:
    with (place.work / "big").open("wb") as file:
        file.truncate(20 << 30)
    assert place.store.precopy(place.fd, ALL) == 0
    with pytest.raises(InvalidCandidate, match="MiB"):
        place.store.take(place.fd, ALL)
    assert not place.folder.exists()


def test_after_a_refused_candidate_an_honest_one_is_taken(place: Place) -> None:
    place.write("a", "1")
    os.mkfifo(place.work / "pipe")
    with pytest.raises(InvalidCandidate):
        place.take()
    (place.work / "pipe").unlink()
    assert place.take().files == 1


@pytest.mark.parametrize("link", [True, False])
def test_a_tree_is_laid_out_for_a_judge(place: Place, link: bool) -> None:
    place.write("a/b/c.py", "1")
    place.write("run.sh", "2")
    (place.work / "run.sh").chmod(0o700)
    place.write("secret", "3")
    (place.work / "secret").chmod(0o600)
    snapshot = place.take()
    old = os.umask(0o077)
    try:
        tree = place.store.materialise(snapshot, place.folder / "deep" / "tree", link=link)
    finally:
        os.umask(old)
    assert {str(p.relative_to(tree)) for p in tree.rglob("*")} == {"a", "a/b", "a/b/c.py", "run.sh", "secret"}
    assert (tree / "a/b/c.py").read_text() == "1"
    modes = {name: (tree / name).stat().st_mode & 0o777 for name in (".", "a", "a/b", "a/b/c.py", "run.sh", "secret")}
    file, script = (0o444, 0o555) if link else (0o644, 0o755)
    assert modes == {".": 0o755, "a": 0o755, "a/b": 0o755, "a/b/c.py": file, "run.sh": script, "secret": file}
    assert ((tree / "run.sh").stat().st_nlink == 2) is link


def test_where_links_are_not_possible_files_are_copied(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("a", "1")
    snapshot = place.take()

    def refused(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    tree = place.store.materialise(snapshot, place.folder / "tree")
    assert (tree / "a").read_text() == "1"
    assert (tree / "a").stat().st_nlink == 1


def test_damage_in_the_store_is_found(place: Place) -> None:
    place.write("a", "1")
    place.write("b", "2")
    snapshot = place.take()
    first, second = (place.store.object(entry) for entry in snapshot.entries())
    first.chmod(0o644)
    first.write_text("x")
    second.unlink()
    problems = place.store.verify(snapshot.digest)
    assert len(problems) == 2
    assert "changed" in problems[0]
    with pytest.raises(StoreError):
        place.store.materialise(snapshot, place.folder / "tree")
    manifest = place.folder / "snapshots" / f"{snapshot.digest}.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"a"', b'"z"'))
    with pytest.raises(StoreError, match="list of files was changed"):
        place.store.load(snapshot.digest)


def test_a_snapshot_that_is_not_there_is_an_error_with_a_next_step(place: Place) -> None:
    with pytest.raises(StoreError) as caught:
        place.store.load("0" * 64)
    assert caught.value.next_step


def test_a_full_disk_is_the_hosts_fault(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("a", "1")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(copying.os, "write", full)
        with pytest.raises(StoreError, match="No space left"):
            place.store.precopy(place.fd, ALL)
        with pytest.raises(StoreError, match="No space left"):
            place.store.take(place.fd, ALL)
    assert place.take().files == 1


def test_a_manifest_is_sorted_by_path(place: Place) -> None:
    for name in ("b", "a/z", "a.txt"):
        place.write(name, name)
    assert [entry.path for entry in place.take().entries()] == ["a.txt", "a/z", "b"]
