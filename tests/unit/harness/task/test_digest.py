"""Digests: the same for what means the same, different for what does not; measuring changes nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.task.digest import digest_tree
from harness.task.load import load_task
from tests.unit.harness.task.task_folders import edit, good_task


@pytest.mark.parametrize(
    "change",
    [
        lambda f: (f / "README.md").write_text("other"),
        lambda f: (f / "proposal.md").write_text("other"),
        lambda f: (f / "rsi-answers.toml").write_text("version = 1"),
        lambda f: (f / "environment/app/__pycache__").mkdir(),
        lambda f: (f / "tests/evaluate.pyc").write_text("x"),
        lambda f: (f / "tests/.DS_Store").write_text("x"),
        lambda f: (f / "tests/.test.sh.swp").write_text("x"),
        lambda f: (f / "tests/empty").mkdir(),
        lambda f: os.utime(f / "tests/test.sh", (1, 1)),
        lambda f: edit(f, "task.toml", "# A tiny task: fit a number.\n", ""),
        lambda f: edit(f, "task.toml", "hours = 2.0", "hours   =   2"),
        lambda f: edit(f, "task.toml", "cpus = 1\nmemory_mb = 512", "memory_mb = 512\ncpus = 1"),
        lambda f: edit(f, "task.toml", "[agent]", "[metadata.rsi.reference]\nbaseline = 1.5\n[agent]"),
        lambda f: edit(f, "instruction.md", "GUID 0000", "GUID 0001"),
    ],
)
def test_what_means_the_same_has_the_same_digest(tmp_path: Path, change: Callable[[Path], object]) -> None:
    before = load_task(good_task(tmp_path))
    change(tmp_path)
    after = load_task(tmp_path)
    assert (after.digest, after.tests_digest) == (before.digest, before.tests_digest)
    assert after.environment_digest == before.environment_digest


@pytest.mark.parametrize(
    "change",
    [
        lambda f: edit(f, "task.toml", "hours = 2.0", "hours = 3.0"),
        lambda f: edit(f, "task.toml", '"easy"', '"hard"'),
        lambda f: edit(f, "instruction.md", "Lower", "Raise"),
        lambda f: (f / "environment/app/new").write_text(""),
        lambda f: (f / "tests/evaluate.py").chmod(0o755),
        lambda f: (f / "solution/files/train.py").rename(f / "solution/train.py"),
        lambda f: (f / "tests/link").symlink_to("evaluate.py"),
    ],
)
def test_what_means_another_thing_has_another_digest(tmp_path: Path, change: Callable[[Path], object]) -> None:
    before = load_task(good_task(tmp_path)).digest
    change(tmp_path)
    assert load_task(tmp_path).digest != before


def test_the_parts_have_their_own_digests(tmp_path: Path) -> None:
    before = load_task(good_task(tmp_path))
    edit(tmp_path, "tests/evaluate.py", "3.0", "3.5")
    after = load_task(tmp_path)
    assert after.tests_digest != before.tests_digest
    assert after.environment_digest == before.environment_digest


def test_the_border_between_name_and_content_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/x").write_text("yz")
    (tmp_path / "b/xy").write_text("z")
    assert digest_tree(tmp_path / "a") != digest_tree(tmp_path / "b")


def test_names_in_any_bytes_and_no_folder_at_all(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff\xfe", "wb"):  # noqa: PTH123  # the name is no text
        pass
    assert digest_tree(tmp_path) != digest_tree(tmp_path / "nothing")


def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="named pipe"):
        digest_tree(tmp_path)
