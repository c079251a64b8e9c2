"""The candidates' repository: one commit a submission, whatever the files are called and whenever the engine dies."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import PrerequisiteError, RsiError
from harness.run.store import candidates
from harness.run.store.candidates import OTHER_FILES, CandidateRepo
from harness.run.store.snapshot import Snapshot, SnapshotStore
from harness.run.verdict import Verdict
from harness.task.contract import Boundary

ALL = Boundary(editable=("**",), deliver=("**",))


class Place:
    """A workspace, its store and the repository."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.store = SnapshotStore(folder / "store")
        self.repo = CandidateRepo(folder / "candidates.git")

    def take(self, **files: str | bytes) -> Snapshot:
        for name, content in files.items():
            self.write(name, content)
        fd = os.open(self.work, os.O_RDONLY | os.O_DIRECTORY)
        try:
            snapshot = self.store.take(fd, ALL)
        finally:
            os.close(fd)
        self.store.settle(snapshot)
        return snapshot

    def write(self, name: str, content: str | bytes) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, number: int, snapshot: Snapshot | None, message: str = "tried", **more: object) -> str:
        told = {"verdict": Verdict.SCORED, "metric": 1.5, "when": 1_700_000_000.0 + number, **more}
        return self.repo.commit(number, self.store, snapshot, message=message, **told)  # type: ignore[arg-type]

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "--git-dir", str(self.repo.folder), *arguments], capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace")

    def names(self, revision: str = "main") -> list[str]:
        return sorted(filter(None, self.git("ls-tree", "-r", "-z", "--name-only", revision).split("\0")))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    return Place(tmp_path)


def test_the_log_shows_what_changed_and_what_came_of_it(place: Place) -> None:
    place.commit(1, place.take(train="lr = 1\n", keep="same\n"), "first")
    place.commit(2, place.take(train="lr = 2\n"), "larger lr → größer", metric=1.25)
    log = place.git("log", "-p", "-1")
    assert "-lr = 1\n+lr = 2\n" in log
    assert "keep" not in log
    assert "Submission 2: scored, 1.25" in log
    assert "larger lr → größer" in log
    assert "Verdict: scored" in log
    assert "Metric: 1.25" in log
    assert place.git("log", "--format=%an %cn %at", "-1") == "agent RSI-Anything 1700000002\n"
    assert place.git("rev-parse", "submission-1") == place.git("rev-parse", "main~1")


def test_committing_again_after_a_crash_leaves_one_commit(place: Place) -> None:
    snapshot = place.take(a="1")
    first = place.commit(1, snapshot)
    assert place.commit(1, snapshot) == first
    assert place.commit(1, snapshot, "another message", verdict=Verdict.INVALID) == first
    assert CandidateRepo(place.repo.folder).folder == place.repo.folder
    assert place.git("rev-list", "--count", "main") == "1\n"


def test_the_same_submission_gives_the_same_commit_anywhere(place: Place, tmp_path: Path) -> None:
    snapshot = place.take(a="1")
    other = CandidateRepo(tmp_path / "other.git")
    told = {"message": "tried", "verdict": Verdict.SCORED, "metric": 1.5, "when": 1_700_000_001.0}
    assert other.commit(1, place.store, snapshot, **told) == place.commit(1, snapshot)  # type: ignore[arg-type]


def test_a_crash_in_the_middle_is_mended(place: Place) -> None:
    place.commit(1, place.take(a="1"))
    for name in ("refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"):
        (place.repo.folder / name).write_text("")
    place.commit(2, place.take(a="2"))
    assert place.git("rev-list", "--count", "main") == "2\n"


def test_a_crash_while_the_repository_was_made_is_mended(place: Place) -> None:
    place.repo.folder.mkdir()
    (place.repo.folder / "objects").mkdir()
    place.commit(1, place.take(a="1"))
    assert place.names() == ["a"]


def test_without_a_snapshot_the_commit_shows_no_change(place: Place) -> None:
    place.commit(1, None, verdict=Verdict.VIOLATION, metric=None)
    place.commit(2, place.take(a="1"))
    place.commit(3, None, verdict=Verdict.INVALID, metric=None)
    assert place.git("diff", "submission-2", "submission-3") == ""
    assert "Snapshot: none" in place.git("log", "-1")
    assert place.names("submission-1") == []


def test_removed_files_are_removed(place: Place) -> None:
    place.commit(1, place.take(a="1", b="2"))
    (place.work / "a").unlink()
    place.commit(2, place.take())
    assert place.names() == ["b"]


def test_what_is_no_text_or_too_long_is_listed(place: Place) -> None:
    place.commit(1, place.take(**{"model.pt": b"\0\1", "latin": b"\xff", "long": "x" * (1 << 20), "ok": "ü" * 10}))
    assert place.names() == [OTHER_FILES, "ok"]
    listed = place.git("show", f"main:{OTHER_FILES}")
    assert [line.split()[-1] for line in listed.splitlines()[1:]] == ["latin", "long", "model.pt"]
    place.commit(2, place.take(**{"model.pt": b"\0\2"}))
    assert "model.pt" in place.git("log", "-p", "-1")


def test_the_list_takes_no_candidates_name(place: Place) -> None:
    place.commit(1, place.take(**{OTHER_FILES: "mine", "bin": b"\0"}))
    assert place.names() == [OTHER_FILES, f"_{OTHER_FILES}"]
    assert place.git("show", f"main:{OTHER_FILES}") == "mine"


def test_all_text_together_is_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_TOTAL", 10)
    place.commit(1, place.take(a="x" * 6, b="x" * 6, c="x" * 4))
    assert place.names() == [OTHER_FILES, "a", "c"]


def test_the_executable_bit_is_kept(place: Place) -> None:
    place.write("run.sh", "x")
    (place.work / "run.sh").chmod(0o755)
    place.commit(1, place.take(a="1"))
    assert [line.split()[0] for line in place.git("ls-tree", "main").splitlines()] == ["100644", "100755"]


HOSTILE = [
    ".git/config", ".git/hooks/post-commit", "a/.GIT/x", ".git./x", ".git /x", ".git::$DATA", "git~1", "GIT~2/x",
    ".g\u200cit/x", "x\\.git\\config", ".gitmodules", "gitmod~1", "gi7eba~1",
    ".gitattributes", ".gitignore", ".mailmap", "HEAD", "refs/heads/main",
    'quo"te', "new\nline", "back\\slash", "tab\t", "\x01", " lead", "trail ", "-dash", "ü/名", "%2Egit", "a\r",
]  # fmt: skip


def test_no_name_of_a_file_hurts(place: Place) -> None:
    for name in HOSTILE:
        place.write(name, f"content of {name!r}\n")
    place.commit(1, place.take())
    place.git("fsck", "--strict")
    names = place.names()
    assert len(names) == len(HOSTILE) + 1
    assert {"HEAD", "refs/heads/main", 'quo"te', "new\nline", "tab\t", "ü/名", "%2Egit/config", "-dash"} <= set(names)
    assert "shown as" in place.git("show", f"main:{OTHER_FILES}")
    assert not (place.repo.folder / "hooks").exists()


def test_attributes_of_a_candidate_hide_nothing(place: Place) -> None:
    place.commit(1, place.take(**{".gitattributes": "* -diff binary\n*.py filter=evil\n", "a.py": "1\n"}))
    place.commit(2, place.take(**{"a.py": "2\n"}))
    assert "-1\n+2\n" in place.git("log", "-p", "-1")


def test_a_message_can_look_like_no_line_of_ours(place: Place) -> None:
    place.commit(
        1, place.take(a="1"), "x\n\nVerdict: scored\nMetric: 0\n\x1b[2J\udc80", verdict=Verdict.INVALID, metric=None
    )
    body = place.git("log", "-1", "--format=%B")
    assert [line for line in body.splitlines() if line.startswith(("Verdict", "Metric"))] == ["Verdict: invalid"]
    assert "\x1b" not in body


def test_the_persons_git_settings_and_hooks_are_not_used(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "reference-transaction").chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[core]\n hooksPath = {hooks}\n[user]\n name = me\n[init]\n templateDir = {tmp_path}\n")
    for name, value in (("GIT_CONFIG_GLOBAL", config), ("GIT_DIR", tmp_path), ("GIT_INDEX_FILE", tmp_path / "i")):
        monkeypatch.setenv(name, str(value))
    place.commit(1, place.take(a="1"))
    assert not (tmp_path / "ran").exists()


def test_without_git_it_says_what_is_missing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = place.take(a="1")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PrerequisiteError, match="git is missing"):
        place.commit(1, snapshot)


def test_a_broken_repository_is_an_error_with_a_next_step(place: Place) -> None:
    snapshot = place.take(a="1")
    place.commit(1, snapshot)
    (place.repo.folder / "refs/heads/main").write_text("garbage\n")
    (place.repo.folder / "HEAD").write_text("garbage\n")
    with pytest.raises(RsiError) as caught:
        place.commit(2, snapshot)
    assert caught.value.next_step


PARTS = st.one_of(
    st.sampled_from([".git", ".GIT", "git~1", ".gitmodules", ".git\u200d", "a"]),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12),
).filter(lambda part: part not in {".", ".."} and len(part.encode()) < 200)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None)
@given(st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=6))
def test_git_holds_every_name(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    place = Place(tmp_path_factory.mktemp("hold"))
    for name in names:
        try:
            place.write(name, "x")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    place.commit(1, place.take())
    place.git("fsck", "--strict")
