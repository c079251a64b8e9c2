"""Measured numbers are written into task.toml without touching anything else of it."""

from pathlib import Path

import pytest

from harness.errors import InputError, RsiError
from harness.task.contract import Reference
from harness.task.load import load_task
from harness.task.reference import with_reference, write_reference
from tests.unit.harness.task.task_folders import TASK_TOML, edit, good_task

MEASURED = Reference(baseline=1.5, noise=0.01, floor=50.0, repeats=3, judge_sec=2.5, tests_digest="a" * 64, host="été")
TABLE = '[metadata.rsi.reference]   # measured\nbaseline = 9.0   # old\nhost = "h"\n\n'


def test_a_new_table_leaves_every_other_line(tmp_path: Path) -> None:
    good_task(tmp_path)
    write_reference(tmp_path, MEASURED)
    after = (tmp_path / "task.toml").read_text(encoding="utf-8")
    table = after[after.index("[metadata.rsi.reference]") :].split("\n\n")[0] + "\n\n"
    assert after.replace(table, "") == TASK_TOML
    task = load_task(tmp_path)
    assert task.contract is not None
    assert task.contract.reference == MEASURED


def test_measuring_again_changes_only_the_numbers(tmp_path: Path) -> None:
    good_task(tmp_path)
    edit(tmp_path, "task.toml", "[metadata.rsi.evaluation]", f"{TABLE}[metadata.rsi.evaluation]")
    (tmp_path / "task.toml").chmod(0o640)
    write_reference(tmp_path, Reference(baseline=1.5, noise=0.25))
    after = (tmp_path / "task.toml").read_text(encoding="utf-8")
    new = TABLE.replace("9.0", "1.5").replace('host = "h"\n', "noise = 0.25\n")
    assert after.replace(new, "") == TASK_TOML
    assert (tmp_path / "task.toml").stat().st_mode & 0o777 == 0o640
    write_reference(tmp_path, Reference())
    task = load_task(tmp_path)
    assert task.contract is not None
    assert task.contract.reference == Reference()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_line_ends_stay(tmp_path: Path, ends: str) -> None:
    text = TASK_TOML.replace("\n", ends)
    good_task(tmp_path)
    (tmp_path / "task.toml").write_bytes(text.encode())
    write_reference(tmp_path, MEASURED)
    after = (tmp_path / "task.toml").read_bytes().decode()
    assert text.split("[agent]")[0].rstrip() in after
    assert load_task(tmp_path).contract is not None


def test_tables_in_any_order_and_dotted_keys() -> None:
    moved = TASK_TOML.replace("[metadata.rsi.judge]\nbase", "[metadata.rsi.judge]\n# here\nbase")
    block = moved[moved.index("[metadata.rsi.budget]") : moved.index("[metadata.rsi.judge]")]
    moved = moved.replace(block, "") + "\n" + block
    assert with_reference(moved, MEASURED).replace("\n", "").count("tests_digest") == 1


def test_only_a_contract_can_hold_them(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_reference(tmp_path, MEASURED)
    (tmp_path / "task.toml").write_text("[agent]\n")
    with pytest.raises(InputError, match="no contract"):
        write_reference(tmp_path, MEASURED)
    assert (tmp_path / "task.toml").read_text() == "[agent]\n"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good_task(tmp_path)

    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(RsiError, match="No space left"):
        write_reference(tmp_path, MEASURED)
    assert (tmp_path / "task.toml").read_text(encoding="utf-8") == TASK_TOML
    assert sorted(path.name for path in tmp_path.glob(".task*")) == []
