"""`rsi new` without a person: good, missing, unknown and wrong answers, and what lies in the way of the task."""

import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from rsi_anything.cli import main
from rsi_anything.interview import ground

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = ROOT / "templates" / "sample"


@dataclass(frozen=True)
class Hint:
    value: object
    evidence: tuple = ()
    confidence: float = 0.9
    reason: str = "found"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own home, present folder, and copy of the sample outside any repository."""
    monkeypatch.setenv("RSI_HOME", str(tmp_path / "home"))
    shutil.copytree(SAMPLE, tmp_path / "sample", ignore=shutil.ignore_patterns("__pycache__"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def answers(place: Path) -> Path:
    return place.parent / "sample" / "answers.toml"


def new(*argv: object) -> int:
    return main(["new", *map(str, argv)])


def change(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, now in pairs:
        assert old in text
        text = text.replace(old, now)
    path.write_text(text, encoding="utf-8")


def test_answers_make_a_task_and_name_the_next_commands(place, capsys) -> None:
    assert new(place.parent / "sample" / "project", "--answers", answers(place), "--out", "my task") == 0
    out, _ = capsys.readouterr()
    assert "next: rsi check 'my task'" in out
    assert "next: rsi run 'my task' --agent search" in out
    kept = tomllib.loads((place / "my task" / "answers.toml").read_text(encoding="utf-8"))
    assert kept["source"]["name"] == "friedman-perceptron"
    assert str(place.parent) not in (place / "my task" / "answers.toml").read_text(encoding="utf-8")
    assert not (place.parent / "home" / "sessions").exists()


def test_a_task_makes_itself_again(place) -> None:
    project = place.parent / "sample" / "project"
    assert new(project, "--answers", answers(place), "--out", "one") == 0
    assert new(project, "--answers", place / "one" / "answers.toml", "--out", "two") == 0
    files = {
        path.relative_to(place / "one"): path.read_bytes() for path in (place / "one").rglob("*") if path.is_file()
    }
    assert files == {
        path.relative_to(place / "two"): path.read_bytes() for path in (place / "two").rglob("*") if path.is_file()
    }


def test_project_may_be_named_by_the_answers_and_the_task_by_the_command_line(place, capsys) -> None:
    assert new("--answers", answers(place), "--name", "other-name", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["name"] == "other-name"
    assert shown["written"] is True
    assert {file["verb"] for file in shown["files"]} == {"create"}
    assert shown["next"][0] == "rsi check other-name"
    assert (place / "other-name" / "task.toml").is_file()


def test_dry_run_shows_and_writes_nothing(place, capsys) -> None:
    assert new("--answers", answers(place), "--dry-run") == 0
    assert "task.toml" in capsys.readouterr().out
    assert list(place.iterdir()) == []


def test_missing_answers_are_listed_all_at_once_with_hints(place, capsys, monkeypatch) -> None:
    monkeypatch.setattr(ground, "researched", lambda project: {"baseline.command": Hint("python3 train.py")})
    path = place / "a.toml"
    path.write_text('version = 1\n[evaluation]\nkind = "predictions"\n', encoding="utf-8")
    assert new(place.parent / "sample" / "project", "--answers", path) == 2
    out, err = capsys.readouterr()
    for name in (
        "source.name", "source.title", "source.category", "question.question", "baseline.description",
        "baseline.command", "evaluation.mode", "evaluation.data.file", "evaluation.measure", "evaluation.adapter",
        "evaluation.metric.name", "evaluation.metric.direction", "evaluation.metric.lowest", "boundary.editable",
        "boundary.deliver", "compute.budget.hours", "compute.budget.submissions",
    ):  # fmt: skip
        assert f"{name}: missing." in out
    assert 'the project suggests "python3 train.py"' in out
    assert "One of: minimize, maximize." in out
    assert "answers are missing" in err
    assert len(err.splitlines()) <= 6
    assert list(place.iterdir()) == [path]


def test_wrong_unknown_and_missing_come_together_with_lines(place, capsys, monkeypatch) -> None:
    monkeypatch.setattr(ground, "researched", lambda project: {})
    path = answers(place)
    change(
        path,
        ('category = "tabular-regression"\n', ""),
        ("hours = 0.5", 'hours = "0.5"'),
        ("max_files = 4", "max_file = 4"),
        ('direction = "minimize"', 'direction = "down"'),
        ("seed = 7", "seed = 7\nwindow = 10"),
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    assert new("--answers", path) == 2
    out, err = capsys.readouterr()
    for words, key in (
        ("compute.budget.hours wants a number, got the text '0.5'", 'hours = "0.5"'),
        ("boundary.max_file is unknown; did you mean boundary.max_files?", "max_file = 4"),
        ("evaluation.metric.direction 'down' is none of minimize, maximize", 'direction = "down"'),
        ("evaluation.data.window counts only if evaluation.data.split is lines or tail", "window = 10"),
    ):
        assert f"{path}:{lines.index(key) + 1}: {words}" in out
    assert "source.category: missing." in out
    assert "1 answer is missing and 4 answers are wrong" in err


def test_missing_answers_as_json(place, capsys, monkeypatch) -> None:
    monkeypatch.setattr(ground, "researched", lambda project: {})
    change(answers(place), ('category = "tabular-regression"\n', ""), ("cpus = 1", "cpus = true"))
    assert new("--answers", answers(place), "--json") == 2
    shown = json.loads(capsys.readouterr().out)
    assert shown["error"]["exit_code"] == 2
    assert [item["field"] for item in shown["missing"]] == ["source.category"]
    assert shown["wrong"][0]["field"] == "compute.cpus"
    assert shown["wrong"][0]["line"] > 1


def test_highest_below_lowest_is_wrong(place, capsys) -> None:
    change(answers(place), ("highest = 1000000.0", "highest = -1"))
    assert new("--answers", answers(place)) == 2
    assert "must be above the lowest" in capsys.readouterr().out


def test_licence_is_read_off_the_project(place, monkeypatch) -> None:
    monkeypatch.setattr(ground, "researched", lambda project: {"source.license": Hint("Apache-2.0")})
    change(answers(place), ('license = "Apache-2.0"\n', ""))
    assert new("--answers", answers(place), "--out", "t") == 0
    assert 'license = "Apache-2.0"' in (place / "t" / "answers.toml").read_text(encoding="utf-8")


def test_a_persons_changes_are_refused_shown_and_overwritten_only_by_force(place, capsys) -> None:
    assert new("--answers", answers(place), "--out", "t") == 0
    (place / "t" / "README.md").write_text("mine\n", encoding="utf-8")
    capsys.readouterr()
    assert new("--answers", answers(place), "--out", "t") == 4
    out, err = capsys.readouterr()
    assert "-mine" in out
    assert "README.md" in err
    assert "--force" in err
    assert (place / "t" / "README.md").read_text(encoding="utf-8") == "mine\n"
    assert new("--answers", answers(place), "--out", "t", "--force") == 0
    assert (place / "t" / "README.md").read_text(encoding="utf-8") != "mine\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "which project?"),
        (["--continue"], "no conversation to continue"),
        (["--resume", "nothing"], "no conversation 'nothing'"),
        (["--resume", "../x"], "no conversation"),
        (["p", "--continue"], "do not go together"),
        (["--continue", "--resume", "x"], "do not go together"),
        (["p", "--answers", "none.toml"], "no such answers file"),
        (["no-such-folder", "--plain"], "does not exist"),
        (["--nmae", "x"], "did you mean '--name'"),
    ],
)
def test_wrong_invocations(argv, words, place, capsys) -> None:
    assert new(*argv) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert "next:" in err
    assert len(err.splitlines()) <= 6
    assert out == ""
    assert list(place.iterdir()) == []
    assert not (place.parent / "home" / "sessions").exists()


def test_without_a_terminal_it_says_so_and_starts_nothing(place) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rsi_anything", "new", str(place.parent / "sample" / "project")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2
    assert "--answers FILE" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place.parent / "home" / "sessions").exists()


def test_the_tasks_own_answers_are_not_in_their_own_way(place, capsys) -> None:
    project = place.parent / "sample" / "project"
    assert new(project, "--answers", answers(place), "--out", "task") == 0
    own = place / "task" / "answers.toml"
    change(own, ("hours = 0.5", "\n\nhours   = 0.75"))
    assert new(project, "--answers", own, "--out", "task", "--dry-run") == 0
    assert "conflict" not in capsys.readouterr().out
    assert new(project, "--answers", "task/answers.toml", "--out", "task") == 0
    assert "\nhours = 0.75\n" in own.read_text(encoding="utf-8")
    assert "hours = 0.75" in (place / "task" / "task.toml").read_text(encoding="utf-8")
    change(place / "task" / "README.md", ("#", "# Mine"))
    change(own, ("hours = 0.75", "hours = 0.25"))
    assert new(project, "--answers", own, "--out", "task") == 4
    assert "answers.toml" not in capsys.readouterr().err.splitlines()[0]


def test_undelivered_floor_unknown_label_and_broken_pattern_are_wrong_answers(place, capsys) -> None:
    path = answers(place)
    change(
        path,
        ('deliver = ["recipe.toml", ', "deliver = ["),
        ('label = "y"', 'label = "z"'),
    )
    assert new("--answers", path) == 2
    out, _ = capsys.readouterr()
    assert "boundary.deliver leaves out recipe.toml, which baseline.floor edits" in out
    assert "compute.knobs turns recipe.toml, which is not delivered" in out
    assert "evaluation.data.label 'z' is none of" in out
    change(path, ("(\\S+)", "(\\S+"))
    assert new("--answers", path) == 2
    out, _ = capsys.readouterr()
    assert "is no regular expression" in out
    assert "evaluation.data.label" in out


def test_an_unnamed_project_is_to_be_named(place, capsys) -> None:
    project = place.parent / "sample" / "project"
    assert new(project, "--answers", answers(place), "--out", "task") == 0
    capsys.readouterr()
    assert new("--answers", "task/answers.toml", "--out", "again") == 2
    err = capsys.readouterr().err
    assert "the project was not named" in err
    assert "next:  name it: rsi new PROJECT --answers FILE" in err


def test_a_wrong_path_is_said_before_the_lack_of_a_terminal(place, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert new("/nope") == 2
    assert "/nope does not exist" in capsys.readouterr().err


def test_answers_that_lie_in_the_task_are_offered_and_leaving_is_no_error(place, capsys, monkeypatch) -> None:
    project = place.parent / "sample" / "project"
    assert new(project, "--answers", answers(place), "--out", "task") == 0
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO(":quit\n"))
    assert new(project, "--out", "task", "--plain") == 130
    err = capsys.readouterr().err
    assert f"rsi new {project} --answers task/answers.toml --out task" in err
    assert "the conversation is kept" in err
    assert "to come back: rsi new --resume project" in err
    assert "error:" not in err
