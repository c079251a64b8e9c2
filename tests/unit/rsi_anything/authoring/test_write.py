"""Comparing and writing: all or nothing, and nothing that a person made is lost."""

import os
from pathlib import Path

import pytest

from harness.errors import InputError, RefusedError, RsiError
from rsi_anything.authoring import write as module
from rsi_anything.authoring.measured import carry, without
from rsi_anything.authoring.plan import MANIFEST, Plan, PlannedFile
from rsi_anything.authoring.write import write

TASK = b'[task]\nname = "a/b"\n\n[metadata.rsi]\nversion = 1\n\n[metadata.rsi.budget]\nhours = 1.0\n'
MEASURED = b"\n[metadata.rsi.reference]\nbaseline = 2.5\nnoise = 0.1\n"


def plan(**files: str | bytes) -> Plan:
    made = {
        path.replace("__", "/"): PlannedFile(text.encode("utf-8") if isinstance(text, str) else text)
        for path, text in files.items()
    }
    return Plan(made).with_manifest()


def verbs(plan: Plan, dest: Path) -> dict[str, str]:
    return {path: verb for verb, path in plan.compare(dest) if path != MANIFEST}


def lying_there(dest: Path) -> dict[str, str]:
    return {p.relative_to(dest).as_posix(): p.read_text("utf-8") for p in dest.rglob("*") if p.is_file()}


def test_a_new_folder_gets_everything_at_once(tmp_path: Path) -> None:
    one = Plan({"a": PlannedFile(b"1"), "b/c.sh": PlannedFile(b"2", 0o755)}).with_manifest()
    dest = tmp_path / "deep" / "task"
    assert verbs(one, dest) == {"a": "create", "b/c.sh": "create"}
    write(one, dest)
    assert verbs(one, dest) == {"a": "identical", "b/c.sh": "identical"}
    assert (dest / "b" / "c.sh").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in dest.parent.iterdir()] == ["task"]


def test_what_we_wrote_is_changed_and_what_a_person_wrote_is_not(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    write(plan(a="1", b="1", c__d="1", gone="1", kept="1"), dest)
    (dest / "b").write_text("mine", encoding="utf-8")
    (dest / "kept").write_text("mine", encoding="utf-8")
    (dest / "notes").write_text("mine", encoding="utf-8")
    later = plan(a="2", b="2", c__d="1", notes="2", new="2")
    assert verbs(later, dest) == {
        "a": "change",
        "b": "conflict",
        "c/d": "identical",
        "gone": "remove",
        "kept": "conflict",
        "notes": "conflict",
        "new": "create",
    }
    before = lying_there(dest)
    with pytest.raises(RefusedError, match="b, kept, notes") as caught:
        write(later, dest)
    assert "--force" in caught.value.next_step
    assert lying_there(dest) == before
    write(later, dest, force=True)
    after = lying_there(dest)
    del after[MANIFEST]
    assert after == {"a": "2", "b": "2", "c/d": "1", "notes": "2", "new": "2"}


def test_other_files_are_kept_as_they_are(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    write(plan(a="1", old__x="1"), dest)
    (dest / "mine").mkdir()
    (dest / "mine" / "run.sh").write_text("x", encoding="utf-8")
    (dest / "mine" / "run.sh").chmod(0o700)
    (dest / "link").symlink_to("mine/run.sh")
    dest.chmod(0o750)
    write(plan(a="2"), dest)
    assert (dest / "mine" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (dest / "link").readlink() == Path("mine/run.sh")
    assert dest.stat().st_mode & 0o777 == 0o750
    assert not (dest / "old").exists()


def test_writing_again_touches_nothing(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    write(plan(a="1"), dest)
    before = (dest.stat().st_ino, (dest / "a").stat().st_mtime_ns)
    write(plan(a="1"), dest)
    assert (dest.stat().st_ino, (dest / "a").stat().st_mtime_ns) == before


def test_an_execute_bit_that_was_lost_comes_back(tmp_path: Path) -> None:
    one = Plan({"a.sh": PlannedFile(b"1", 0o755)}).with_manifest()
    write(one, tmp_path / "task")
    (tmp_path / "task" / "a.sh").chmod(0o644)
    assert verbs(one, tmp_path / "task") == {"a.sh": "change"}
    write(one, tmp_path / "task")
    assert os.access(tmp_path / "task" / "a.sh", os.X_OK)


def test_links_are_conflicts_and_are_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("theirs", encoding="utf-8")
    dest = tmp_path / "task"
    dest.mkdir()
    (dest / "a").symlink_to(outside / "a")
    (dest / "b").symlink_to(outside)
    one = plan(a="1", b__a="1")
    assert verbs(one, dest) == {"a": "conflict", "b/a": "conflict"}
    with pytest.raises(RefusedError):
        write(one, dest)
    write(one, dest, force=True)
    assert (outside / "a").read_text("utf-8") == "theirs"
    assert lying_there(dest)["b/a"] == "1"


def test_folders_and_files_in_each_other_s_place(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    (dest / "a").mkdir(parents=True)
    (dest / "a" / "x").write_text("mine", encoding="utf-8")
    (dest / "b").write_text("mine", encoding="utf-8")
    one = plan(a="1", b__c="1")
    assert verbs(one, dest) == {"a": "conflict", "b/c": "conflict"}
    write(one, dest, force=True)
    assert (dest / "a").read_text("utf-8") == (dest / "b" / "c").read_text("utf-8") == "1"


def test_a_file_or_a_link_as_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name in ("file", "link"):
        with pytest.raises(InputError):
            write(plan(a="1"), tmp_path / name)
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize("step", ["_fill", "_swap"])
def test_a_failure_leaves_the_old_folder_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    dest = tmp_path / "task"
    write(plan(a="1", b="1"), dest)
    before = lying_there(dest)

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device", str(dest))

    monkeypatch.setattr(module, step, fail)
    with pytest.raises(RsiError, match="No space left"):
        write(plan(a="2", b="2"), dest)
    assert lying_there(dest) == before
    assert [path.name for path in tmp_path.iterdir()] == ["task"]


def test_a_writer_that_was_killed_between_two_renames_is_made_good(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    write(plan(a="1"), dest)
    dest.rename(tmp_path / ".task.rsi-old")
    (tmp_path / ".task.rsi-new").mkdir()
    (tmp_path / ".task.rsi-new" / "a").write_text("half", encoding="utf-8")
    write(plan(a="1"), dest)
    assert lying_there(dest)["a"] == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["task"]


def test_the_diff_shows_texts_and_names_the_rest(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    write(plan(a="one\ntwo", gone="x\n", big="x" * 100_000, bin=b"\0\1"), dest)
    (dest / "a").write_text("one\nmine\n", encoding="utf-8")
    later = plan(a="one\n2\n", big="y" * 100_000, bin=b"\0\2", environment__project__new="text\n", fresh="new\n")
    shown = later.diff(dest)
    assert "-mine\n+2\n" in shown
    assert "a (edited since it was written)" in shown
    assert "change big (97.7 KiB -> 97.7 KiB, not shown)" in shown
    assert "change bin (2 bytes -> 2 bytes, not shown)" in shown
    assert "new file environment/project/new (5 bytes)" in shown
    assert "--- /dev/null\n+++ new/fresh\n" in shown
    assert "+++ /dev/null" in shown
    assert plan(a="1").diff(tmp_path / "nowhere").startswith("--- /dev/null")


def test_the_tree_sums_up_many_files() -> None:
    one = Plan({**{f"data/{n}.txt": PlannedFile(b"x" * 100) for n in range(40)}, "a": PlannedFile(b"1")})
    assert one.tree() == "a  1 bytes\ndata/\n  (40 files, 3.9 KiB)\n"


def test_a_broken_record_counts_as_none(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    write(plan(a="1"), dest)
    for text in ("{", "[]", '{"files": 3}', '{"files": {"../x": "1", "/etc/passwd": "2"}}'):
        (dest / MANIFEST).write_text(text, encoding="utf-8")
        assert verbs(plan(a="2"), dest) == {"a": "conflict"}


def test_measured_numbers_are_no_edit_and_are_kept(tmp_path: Path) -> None:
    dest = tmp_path / "task"
    one = Plan({"task.toml": PlannedFile(TASK)}).with_manifest()
    write(one, dest)
    (dest / "task.toml").write_bytes(TASK + MEASURED)
    assert verbs(one, dest) == {"task.toml": "identical"}
    later = Plan({"task.toml": PlannedFile(TASK.replace(b"1.0", b"2.0"))}).with_manifest()
    assert verbs(later, dest) == {"task.toml": "change"}
    write(later, dest)
    assert (dest / "task.toml").read_bytes() == TASK.replace(b"1.0", b"2.0") + MEASURED
    (dest / "task.toml").write_bytes((dest / "task.toml").read_bytes().replace(b"a/b", b"a/c"))
    assert verbs(one, dest) == {"task.toml": "conflict"}


def test_the_measured_table_is_found_wherever_it_stands() -> None:
    middle = TASK.replace(b"\n[metadata.rsi.budget]", MEASURED + b"\n[metadata.rsi.budget]")
    assert without("task.toml", middle) == TASK
    assert without("task.toml", TASK + MEASURED) == TASK
    assert without("other.toml", middle) == middle
    assert carry("task.toml", middle, TASK) == middle
    assert carry("task.toml", TASK, TASK) == TASK


def test_the_harness_s_own_writer_is_understood(tmp_path: Path) -> None:
    """`rsi check` writes the table with a TOML library; what it leaves must still count as ours."""
    from harness.task.contract import Reference
    from harness.task.reference import with_reference

    text = Path(__file__).parents[3].joinpath("golden", "lines", "task", "task.toml").read_text("utf-8")
    measured = with_reference(text, Reference(baseline=2.5, noise=0.1, repeats=3, host="a [machine]"))
    assert without("task.toml", measured.encode()) == text.encode()
