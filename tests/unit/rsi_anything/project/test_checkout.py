import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError, PrerequisiteError
from rsi_anything.project import checkout
from rsi_anything.project.checkout import Project, open_project, require
from rsi_anything.project.tree import Limits


def names(project: Project) -> list[str]:
    return [file.path for file in project.files]


def test_pins_the_present_commit(repository: Any, cache: Path) -> None:
    commit = repository.commit({"train.py": "print(1)\n", "data/names.txt": "a\nb\n"})
    project = open_project(str(repository.path), None, cache=cache)
    assert project.commit == commit
    assert names(project) == ["data/names.txt", "train.py"]
    assert project.repository == "local"
    assert project.name == "repo"
    assert project.read("train.py", 5) == b"print"
    assert project.size("data/names.txt") == 4
    assert not (project.folder / ".git").exists()
    assert not project.uses_worktree


@pytest.mark.parametrize("how", ["full", "short", "branch", "tag", "relative"])
def test_commits_can_be_named(repository: Any, cache: Path, how: str) -> None:
    first = repository.commit({"a.py": "1\n"})
    repository.git("branch", "old")
    repository.git("tag", "-a", "v1", "-m", "one")
    repository.commit({"a.py": "2\n"})
    named = {"full": first, "short": first[:9], "branch": "old", "tag": "v1", "relative": "HEAD~1"}[how]
    project = open_project(str(repository.path), named, cache=cache)
    assert project.commit == first
    assert project.read("a.py", 10) == b"1\n"


def test_packed_refs_and_objects(repository: Any, cache: Path) -> None:
    commit = repository.commit({"a.py": "1\n"})
    repository.git("gc", "--quiet")
    assert open_project(str(repository.path), "main", cache=cache).commit == commit


def test_the_commit_counts_and_the_dirty_tree_is_named(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n", "b.py": "1\n", ".gitignore": "*.log\n"})
    repository.write({"a.py": "2\n", "new.py": "3\n", "x.log": "ignored\n"})
    (repository.path / "b.py").unlink()
    project = open_project(str(repository.path), None, cache=cache)
    assert project.dirty == ("a.py", "b.py", "new.py")
    assert project.read("a.py", 10) == b"1\n"
    assert names(project) == [".gitignore", "a.py", "b.py"]


def test_dirty_takes_the_working_tree(repository: Any, cache: Path) -> None:
    commit = repository.commit({"a.py": "1\n", "b.py": "1\n", ".gitignore": "*.log\n"})
    repository.write({"a.py": "2\n", "new.py": "3\n", "x.log": "ignored\n"})
    (repository.path / "b.py").unlink()
    project = open_project(str(repository.path), None, cache=cache, dirty=True)
    assert project.commit == commit
    assert project.uses_worktree
    assert names(project) == [".gitignore", "a.py", "new.py"]
    assert project.read("a.py", 10) == b"2\n"
    repository.write({"a.py": "4\n"})
    assert open_project(str(repository.path), None, cache=cache, dirty=True).read("a.py", 10) == b"4\n"


def test_staged_changes_are_dirty_and_nothing_is_written_to_the_repository(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    repository.write({"a.py": "2\n"})
    repository.git("add", "a.py")
    before = {path: path.stat().st_mtime_ns for path in (repository.path / ".git").rglob("*")}
    assert open_project(str(repository.path), None, cache=cache).dirty == ("a.py",)
    assert {path: path.stat().st_mtime_ns for path in (repository.path / ".git").rglob("*")} == before


def test_a_change_within_one_tick_of_the_clock_is_seen(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    index = repository.path / ".git" / "index"
    times = (repository.path / "a.py").stat().st_atime_ns, (repository.path / "a.py").stat().st_mtime_ns
    for content in ("2\n", "3\n"):
        (repository.path / "a.py").write_text(content)
        os.utime(repository.path / "a.py", ns=times)
        os.utime(index, ns=times)
        assert open_project(str(repository.path), None, cache=cache).dirty == ("a.py",)


def test_a_bare_repository_and_a_git_folder_without_a_tree(repository: Any, cache: Path, tmp_path: Path) -> None:
    commit = repository.commit({"a.py": "1\n"})
    bare = tmp_path / "bare.git"
    (repository.path / ".git").rename(bare)
    (bare / "config").unlink()
    project = open_project(str(bare), None, cache=cache)
    assert (project.commit, names(project), project.dirty, project.name) == (commit, ["a.py"], (), "bare")
    with pytest.raises(InputError):
        open_project(str(bare), None, cache=cache, dirty=True)


def test_an_added_worktree(repository: Any, cache: Path, tmp_path: Path) -> None:
    repository.commit({"a.py": "1\n"})
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "a.py").write_text("2\n")
    project = open_project(str(tmp_path / "side"), None, cache=cache)
    assert project.dirty == ("a.py",)
    assert names(project) == ["a.py"]


def test_a_file_address(repository: Any, cache: Path) -> None:
    commit = repository.commit({"a.py": "1\n"})
    assert open_project(f"file://{repository.path}", None, cache=cache).commit == commit


def test_the_origin_is_the_repository_without_credentials(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    repository.git("remote", "add", "origin", "https://me:token@example.com/owner/name.git")
    project = open_project(str(repository.path), None, cache=cache)
    assert project.repository == "https://example.com/owner/name.git"
    assert project.name == "name"


def test_a_subfolder_is_the_project_and_the_root_licence_is_known(repository: Any, cache: Path) -> None:
    commit = repository.commit({"LICENSE": "MIT\n", "apps/one/train.py": "1\n", "apps/two/x.py": "2\n"})
    for where, subdir in (
        (repository.path, "apps/one"),
        (repository.path / "apps" / "one", "."),
        (repository.path / "apps", "one"),
    ):
        project = open_project(str(where), None, cache=cache, subdir=subdir)
        assert (project.commit, names(project), project.subdir, project.name) == (
            commit,
            ["train.py"],
            "apps/one",
            "one",
        )
        assert project.read("/LICENSE", 10) == b"MIT\n"


def test_a_plain_folder_has_no_commit(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.py").write_text("1\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_text("x")
    (folder / "LICENSE").write_text("MIT\n")
    project = open_project(str(folder), None, cache=cache)
    assert (project.commit, project.repository, names(project)) == ("none", "local", ["LICENSE", "sub/a.py"])
    assert [item.path for item in project.left_out] == ["__pycache__"]
    again = open_project(str(folder), "none", cache=cache)
    assert (again.digest, again.folder) == (project.digest, project.folder)
    (folder / "sub" / "a.py").write_text("2\n")
    assert open_project(str(folder), None, cache=cache).digest != project.digest
    assert names(open_project(str(folder), None, cache=cache, subdir="sub")) == ["a.py"]


def test_an_untracked_folder_of_a_repository_is_a_plain_folder(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    repository.write({"loose/b.py": "2\n"})
    project = open_project(str(repository.path / "loose"), None, cache=cache)
    assert (project.commit, names(project)) == ("none", ["b.py"])


def test_copies_are_reused_and_mended(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n", "b.py": "22\n"})
    project = open_project(str(repository.path), None, cache=cache)
    made = project.folder.stat().st_ino
    assert open_project(str(repository.path), None, cache=cache).folder.stat().st_ino == made
    (project.folder / "b.py").write_text("damaged")
    mended = open_project(str(repository.path), None, cache=cache)
    assert mended.read("b.py", 10) == b"22\n"
    assert [path.name for path in (cache / "checkouts").iterdir()] == [mended.folder.parent.name]


def test_the_executable_bit_stays_and_file_links_become_files(repository: Any, cache: Path) -> None:
    (repository.path / "real").mkdir()
    (repository.path / "real" / "x.py").write_text("1\n")
    (repository.path / "link.py").symlink_to("real/x.py")
    (repository.path / "folder").symlink_to("real")
    (repository.path / "run.sh").write_text("true\n")
    (repository.path / "run.sh").chmod(0o755)
    repository.commit({})
    project = open_project(str(repository.path), None, cache=cache)
    assert names(project) == ["link.py", "real/x.py", "run.sh"]
    assert not (project.folder / "link.py").is_symlink()
    assert (project.folder / "folder" / "x.py").read_text() == "1\n"
    assert (project.folder / "run.sh").stat().st_mode & 0o111


Wrong = Callable[[Any, Path], tuple[str, dict[str, Any], str]]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"commit": "mian"}, "main"),
        ({"commit": "f" * 40}, "main"),
        ({"commit": "--help"}, "main"),
        ({"subdir": "ap"}, "app"),
        ({"subdir": "../outside"}, "relative"),
        ({"subdir": "/etc"}, "relative"),
        ({"commit": "HEAD~1", "dirty": True}, "no commit"),
    ],
)
def test_wrong_wishes_name_what_is_near(repository: Any, cache: Path, arguments: dict[str, Any], hint: str) -> None:
    repository.commit({"app/a.py": "1\n"})
    wish = {"commit": None} | arguments
    with pytest.raises(InputError) as caught:
        open_project(str(repository.path), cache=cache, **wish)
    assert hint in " ".join(caught.value.lines())
    assert caught.value.next_step


def test_wrong_paths_name_what_is_near(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    with pytest.raises(InputError, match="does not exist") as caught:
        open_project(str(repository.path.parent / "rep"), None, cache=cache)
    assert "repo" in caught.value.next_step
    with pytest.raises(InputError, match="is a file") as caught:
        open_project(str(repository.path / "a.py"), None, cache=cache)
    assert str(repository.path) in caught.value.next_step


def test_an_empty_repository_and_an_empty_folder(repository: Any, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no commit") as caught:
        open_project(str(repository.path), None, cache=cache)
    assert "commit" in caught.value.next_step
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files"):
        open_project(str(tmp_path / "empty"), None, cache=cache)
    with pytest.raises(InputError, match="no git repository"):
        open_project(str(tmp_path / "empty"), "main", cache=cache)


@pytest.mark.parametrize("limits", [Limits(files=2), Limits(mb=0)])
def test_a_project_that_is_too_large_leaves_nothing_behind(repository: Any, cache: Path, limits: Limits) -> None:
    repository.commit({f"{number}.py": "1\n" for number in range(3)})
    for dirty in (False, True):
        with pytest.raises(InputError, match="more than") as caught:
            open_project(str(repository.path), None, cache=cache, limits=limits, dirty=dirty)
        assert "source.subdir" in caught.value.next_step
    assert list((cache / "checkouts").iterdir()) == []


def test_evidence_is_checked(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n2\n3"})
    project = open_project(str(repository.path), None, cache=cache)
    assert str(project.evidence("a.py", 2, 3, "two lines")) == "a.py:2-3 two lines"
    with pytest.raises(InputError):
        project.evidence("a.py", 3, 4, "too far")
    with pytest.raises(InputError, match=r"no file 'b\.py'"):
        project.evidence("b.py", 1, 1, "no such file")
    with pytest.raises(InputError):
        project.read("../../etc/passwd", 10)


def test_git_of_the_machine_can_still_read_the_repository(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    open_project(str(repository.path), None, cache=cache)
    subprocess.run(["git", "-C", str(repository.path), "fsck", "--strict"], check=True, capture_output=True)


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read every folder
    for step in (require, lambda where: open_project(where, None, cache=cache)):
        with pytest.raises(InputError, match="permission denied") as caught:
            step(str(tmp_path))
        assert caught.value.where == str(tmp_path)
        assert "RSI_HOME" not in caught.value.next_step


def test_a_folder_behind_one_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", denied)
    with pytest.raises(InputError, match="permission denied"):
        require(str(tmp_path / "x"))


def test_a_locale_without_utf_8_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout.sys, "getfilesystemencoding", lambda: "ascii")
    with pytest.raises(PrerequisiteError) as caught:
        open_project(str(tmp_path), None, cache=tmp_path / "cache")
    assert "LC_ALL=C.UTF-8" in caught.value.next_step
