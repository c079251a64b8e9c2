"""A rung that fails leaves what judge and candidate printed, for the author to read."""

from pathlib import Path

from harness import paths
from rsi_anything.cli import main
from rsi_anything.resources import templates_dir


def test_an_author_finds_the_traceback_of_a_judge_that_fails(tmp_path: Path, capsys) -> None:
    sample, task = templates_dir() / "sample", tmp_path / "task"
    argv = ["new", str(sample / "project"), "--answers", str(sample / "answers.toml"), "--out", str(task)]
    assert main(argv) == 0
    (task / "tests/evaluate.py").write_text("raise ValueError('the judge of this task is broken')\n", "utf-8")
    capsys.readouterr()
    assert main(["check", str(task), "--only", "baseline", "--level", "process", "--repeats", "1"]) == 1
    out = capsys.readouterr().out
    [kept] = paths.logs().glob("check-*")
    assert str(kept) in out
    logs = "".join(path.read_text("utf-8") for path in kept.rglob("output.log"))
    assert "ValueError: the judge of this task is broken" in logs
