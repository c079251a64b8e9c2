"""Repositories that try to run something, to reach outside, or to fill the disk."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from rsi_anything.project.checkout import open_project
from rsi_anything.project.tree import Limits


def reasons(project: Any) -> dict[str, str]:
    return {item.path: item.reason for item in project.left_out}


@pytest.mark.parametrize("dirty", [False, True])
def test_configuration_hooks_and_filters_never_run(repository: Any, cache: Path, tmp_path: Path, dirty: bool) -> None:
    mark = tmp_path / "ran"
    repository.commit({"a.py": "1\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n"})
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    trap.chmod(0o755)
    for hook in ("post-checkout", "post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"):
        place = repository.path / ".git" / "hooks" / hook
        place.parent.mkdir(exist_ok=True)
        place.write_text(trap.read_text())
        place.chmod(0o755)
    settings = {
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(trap.parent),
        "core.sshCommand": str(trap),
        "core.pager": str(trap),
        "core.editor": str(trap),
        "filter.evil.clean": str(trap),
        "filter.evil.smudge": str(trap),
        "filter.evil.process": str(trap),
        "diff.evil.command": str(trap),
        "diff.external": str(trap),
        "uploadpack.packObjectsHook": str(trap),
        "remote.origin.url": f"ext::{trap}",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "protocol.ext.allow": "always",
    }
    lines = "".join(f"[{_section(key)}]\n\t{key.rpartition('.')[2]} = {value}\n" for key, value in settings.items())
    with (repository.path / ".git" / "config").open("a") as file:
        file.write(lines)
    repository.write({"a.py": "2\n"})
    project = open_project(str(repository.path), None, cache=cache, dirty=dirty)
    assert project.dirty == ("a.py",)
    assert project.read("a.py", 10) == (b"2\n" if dirty else b"1\n")
    assert project.repository == "local"
    assert not mark.exists()


def _section(key: str) -> str:
    first, *middle, _ = key.split(".")
    return first if not middle else f'{first} "{".".join(middle)}"'


def test_missing_objects_are_listed_and_not_fetched(repository: Any, cache: Path) -> None:
    repository.commit({"a.py": "1\n", "b.py": "2\n"})
    blob = repository.git("rev-parse", "HEAD:a.py")
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    project = open_project(str(repository.path), None, cache=cache)
    assert [file.path for file in project.files] == ["b.py"]
    assert "partial clone" in reasons(project)["a.py"]


def test_replacements_and_grafts_do_not_count(repository: Any, cache: Path) -> None:
    first = repository.commit({"a.py": "honest\n"})
    second = repository.commit({"a.py": "other\n"})
    repository.git("replace", second, first)
    assert open_project(str(repository.path), second, cache=cache).read("a.py", 20) == b"other\n"


def test_links_that_leave_are_listed_and_not_copied(repository: Any, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    targets = {
        "absolute": "/etc/passwd",
        "up": "../../secret",
        "loop": "loop",
        "here": ".",
        "sneaky": "here/here/../../../secret",
        "dangling": "nowhere",
        "good": "a.py",
    }
    for name, target in targets.items():
        (repository.path / name).symlink_to(target)
    repository.commit({"a.py": "1\n"})
    for dirty in (False, True):
        project = open_project(str(repository.path), None, cache=cache, dirty=dirty)
        assert set(reasons(project)) == {"absolute", "up", "loop", "sneaky", "dangling"}
        assert [file.path for file in project.files] == ["a.py", "good"]
        for path in project.folder.rglob("*"):
            assert path.resolve().is_relative_to(project.folder.resolve())


def test_names_that_cannot_be_shown_are_listed(repository: Any, cache: Path) -> None:
    blob = repository.blob(b"1\n").encode()
    odd = [
        b"bad\xff.py",
        b"new\nline.py",
        b"tab\there",
        b"esc\x1b[31m",
        b"n\xc3\xa4me.py",
        b"x" * 300,
        b"quote'\"$(id).py",
    ]
    listing = b"".join(b"100644 blob " + blob + b"\t" + name + b"\0" for name in odd)
    repository.commit_tree(listing)
    project = open_project(str(repository.path), None, cache=cache)
    assert [file.path for file in project.files] == ["n\u00e4me.py", "quote'\"$(id).py"] or [
        file.path for file in project.files
    ] == ["quote'\"$(id).py", "n\u00e4me.py"]
    assert set(reasons(project)) == {"bad\\xff.py", "new\\nline.py", "tab\\there", "esc\\x1b[31m", "x" * 300}
    for path in reasons(project):
        assert path.isprintable()


def test_trees_that_git_would_not_make(repository: Any, cache: Path, tmp_path: Path) -> None:
    blob = bytes.fromhex(repository.blob(b"evil\n"))
    link = bytes.fromhex(repository.blob(b"a"))
    rows = [
        b"100644 ../escape\0" + blob,
        b"100644 .GIT\0" + blob,
        b"100644 /abs\0" + blob,
        b"100644 a\0" + blob,
        b"120000 b\0" + link,
        b"100644 b\0" + blob,
    ]
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=b"".join(rows))
    commit = repository.git("commit-tree", "-m", "x", tree)
    repository.git("update-ref", "refs/heads/main", commit)
    project = open_project(str(repository.path), None, cache=cache)
    assert [file.path for file in project.files] == ["a", "b"]
    assert {"../escape", ".GIT", "/abs"} <= set(reasons(project))
    assert not (tmp_path / "cache" / "checkouts" / "escape").exists()


def test_a_tree_of_endless_copies_ends_at_the_limit(repository: Any, cache: Path) -> None:
    row = b"100644 blob " + repository.blob(b"x").encode() + b"\tf\0"
    tree = repository.git("mktree", "-z", stdin=row)
    for _ in range(12):
        listing = b"".join(b"040000 tree " + tree.encode() + b"\td%d\0" % number for number in range(10))
        tree = repository.git("mktree", "-z", stdin=listing)
    commit = repository.git("commit-tree", "-m", "bomb", tree)
    repository.git("update-ref", "refs/heads/main", commit)
    with pytest.raises(InputError, match="more than 500 files"):
        open_project(str(repository.path), None, cache=cache, limits=Limits(files=500))


def test_submodules_and_pointers_are_listed(repository: Any, cache: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"
    repository.write({"big.bin": pointer, "a.py": "1\n", ".gitattributes": "*.bin filter=lfs\n"})
    repository.git("add", "--all")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    repository.git("commit", "--quiet", "-m", "x")
    repository.write({"big.bin": "the real content"})
    project = open_project(str(repository.path), None, cache=cache)
    assert "submodule" in reasons(project)["module"]
    assert "LFS" in reasons(project)["big.bin"]
    assert "big.bin" not in project.dirty


def test_special_files_of_a_plain_folder_are_listed(tmp_path: Path, cache: Path) -> None:
    import os

    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.py").write_text("1\n")
    os.mkfifo(folder / "pipe")
    (folder / "out").symlink_to("/etc")
    project = open_project(str(folder), None, cache=cache)
    assert [file.path for file in project.files] == ["a.py"]
    assert set(reasons(project)) == {"pipe", "out"}


def test_another_repository_cannot_stand_in_for_a_commit(repository: Any, cache: Path, tmp_path: Path) -> None:
    commit = repository.commit({"a.py": "honest\n"})
    first = open_project(str(repository.path), commit, cache=cache)
    second = tmp_path / "copy"
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(second))
    assert open_project(str(second), commit, cache=cache).folder != first.folder


def test_a_git_file_that_points_nowhere(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / ".git").write_bytes(b"gitdir: \xff\xfe/nowhere\n")
    (folder / "a.py").write_text("1\n")
    project = open_project(str(folder), None, cache=cache)
    assert [file.path for file in project.files] == ["a.py"]
