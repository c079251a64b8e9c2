"""The contract rung: what the loader finds becomes findings, and a contract must make sense to who has to keep it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.task.digest import digest_tree
from rsi_anything.checks import contract_rung
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.ladder import Context
from tests.unit.harness.task.task_folders import edit, good_task, plain_files, write

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
TOML = "task.toml"
Damage = Callable[[Path], object]


def findings_of(folder: Path) -> list[Finding]:
    """Return the findings of the contract rung."""
    return contract_rung.climb(folder, Context()).findings


def whole(folder: Path) -> Path:
    """Write a good task with a floor and measured numbers: nothing about it is worth a note."""
    good_task(folder)
    write(folder, {"solution/floor.sh": "#!/bin/sh\n"})
    measured = f'tests_digest = "{digest_tree(folder / "tests")}"\nbaseline = 1.5\nnoise = 0.01\nfloor = 50.0\n'
    table = f"[metadata.rsi.reference]\n{measured}repeats = 3\njudge_sec = 2.0\n\n[agent]\n"
    edit(folder, TOML, "[agent]\n", table)
    return folder


def swap(old: str, new: str, name: str = TOML) -> Damage:
    """Return a damage that replaces a text."""
    return lambda folder: edit(folder, name, old, new)


def test_a_whole_task_is_silent_and_measured(tmp_path: Path) -> None:
    outcome = contract_rung.climb(whole(tmp_path), Context())
    assert [f.lines() for f in outcome.findings] == []
    assert set(outcome.measurements) == {"digest", "tests_digest", "environment_digest"}


def without_floor(folder: Path) -> None:
    """Take the floor away, and the number with it."""
    edit(folder, TOML, "floor = 50.0\n", "")
    (folder / "solution/floor.sh").unlink()


DAMAGES: list[tuple[Damage, str, Severity, str]] = [
    (swap("version = 1\n", "version = [\n"), "contract/syntax", E, "not valid TOML"),
    (swap("cpus = 1", "cpu = 1"), "contract/unknown-key", E, "environment.cpu"),
    (swap("submissions = 20\n", ""), "contract/missing-key", E, "submissions"),
    (swap("hours = 2.0", 'hours = "2"'), "contract/wrong-value", E, "must be a number"),
    (swap("cooldown_sec = 5", "cooldown_sec = 9999"), "contract/contradiction", E, "two submissions"),
    (lambda f: (f / "tests/test.sh").unlink(), "contract/file", E, "is missing"),
    (lambda f: (f / "tests/x").symlink_to("/etc"), "contract/link", E, "leaves the task folder"),
    (swap("[environment]\n", '[environment]\nskills_dir = "/s"\n'), "contract/unsupported", E, "skills"),
    (swap("repeats = 3\n", ""), "contract/typed-reference", W, "typed in"),
    (lambda f: edit(f, TOML, digest_tree(f / "tests"), "0" * 64), "contract/stale-reference", W, "has changed"),
    (swap("floor = 50.0", "floor = 1.0"), "contract/weak-baseline", W, "no better than the floor"),
    (swap("floor = 50.0", "floor = 1.52"), "contract/weak-baseline", W, "three times the noise"),
    (swap("submissions = 20", "submissions = 5"), "contract/few-loops", W, "5 submissions"),
    (swap("judge_sec = 2.0", "judge_sec = 70.0"), "contract/judge-time", W, "took 70 s"),
    (swap("judge_sec = 2.0", "judge_sec = 400.0"), "contract/judge-time", E, "took 400 s"),
    (swap("judge_sec = 2.0", "judge_sec = 400.0"), "contract/few-loops", W, "hold 9"),
    (swap("timeout_sec = 9000", "timeout_sec = 900"), "contract/agent-time", W, "less than the 2 hours"),
    (swap('unit = "units"', 'unit = ""'), "contract/unit", W, "no unit"),
    (swap('"minimize"', '"maximize"'), "contract/direction", W, "called error"),
    (swap("highest = 100.0", "highest = 1e30"), "contract/domain", W, "broken number"),
    (swap("baseline = 1.5", "baseline = 0.0"), "contract/domain", W, "nothing can beat it"),
    (swap('"metric", "score", "best", "baseline", "message"', '"best"'), "contract/feedback", W, "learns neither"),
    (without_floor, "contract/feedback", W, "no floor"),
    (
        lambda f: write(f, {"solution/floor/other.py": "x = 0\n"}),
        "contract/floor-not-delivered",
        E,
        "'other.py' is not delivered",
    ),
    (swap('"unscored"', "0.5"), "contract/on-invalid", W, "more than one that knows nothing"),
    (swap("recipe?", "recipe"), "contract/question", W, "one sentence"),
    (swap("recipe?", "recipe? Or is it not?"), "contract/question", W, "one sentence"),
    (swap('commit = "0123', 'commit = "'), "contract/source", W, "full commit hash"),
    (swap('"MIT"', '"unknown"'), "contract/source", W, "licence"),
    (swap('deliver = ["train.py", "conf/**"]', 'deliver = ["train.py"]'), "contract/knob-not-delivered", E, "fit.json"),
    (swap('deliver = ["train.py", "conf/**"]', 'deliver = ["train.py"]'), "contract/edits-not-judged", W, "conf/**"),
    (swap('frozen = ["data/**"]', 'frozen = ["[a-z].csv"]'), "contract/odd-glob", W, "stand for themselves"),
    (swap('base = "clean"', 'base = "work"'), "contract/judge-base", W, "left behind"),
    (swap('base = "clean"', 'base = "clean"\ngpus = 1'), "contract/gpus", E, "needs 1 GPUs"),
    (swap('network_mode = "no-network"\n', ""), "contract/judge-network", W, "reach the network"),
    (lambda f: (f / "solution/solve.sh").unlink(), "contract/no-solution", E, "missing"),
    (lambda f: (f / "solution/floor.sh").unlink(), "contract/no-floor", N, "no score"),
    (swap("2 hours", "24 hours", "instruction.md"), "contract/text-disagrees", E, "says 24 hours"),
    (
        lambda f: write(f, {"README.md": "At most 7 submissions.\n"}),
        "contract/text-disagrees",
        E,
        "budget.submissions is 20",
    ),
    (swap("error (units), lower", "error (units), higher", "README.md"), "contract/text-disagrees", E, "higher"),
]


@pytest.mark.parametrize(("damage", "rule", "severity", "words"), DAMAGES)
def test_each_damage_is_found(tmp_path: Path, damage: Damage, rule: str, severity: Severity, words: str) -> None:
    damage(whole(tmp_path))
    findings = findings_of(tmp_path)
    found = [f for f in findings if f.rule == rule and words in f.reason]
    assert found, [f.lines() for f in findings]
    assert found[0].severity is severity
    assert found[0].file
    assert found[0].fix


def test_a_floor_that_is_yet_to_be_measured_is_no_finding(tmp_path: Path) -> None:
    edit(whole(tmp_path), TOML, "floor = 50.0\n", "")
    assert findings_of(tmp_path) == []


def test_a_ratio_needs_no_unit(tmp_path: Path) -> None:
    whole(tmp_path)
    edit(tmp_path, TOML, 'unit = "units"', 'unit = ""')
    edit(tmp_path, TOML, "highest = 100.0", "highest = 1.0")
    assert "contract/unit" not in {f.rule for f in findings_of(tmp_path)}


def test_without_knobs_and_numbers_there_are_notes(tmp_path: Path) -> None:
    good_task(tmp_path)
    text = (tmp_path / TOML).read_text(encoding="utf-8")
    start, end = text.index("[[metadata.rsi.search"), text.index("[agent]")
    (tmp_path / TOML).write_text(text[:start] + text[end:], encoding="utf-8")
    found = {f.rule: f.severity for f in findings_of(tmp_path)}
    assert found == {"contract/no-reference": N, "contract/no-knobs": N, "contract/no-floor": N}


def test_every_problem_is_a_finding_with_its_line(tmp_path: Path) -> None:
    whole(tmp_path)
    edit(tmp_path, TOML, "cpus = 1", "cpu = 1\ngpu = 2\nram = 3")
    edit(tmp_path, TOML, "hours = 2.0", "hour = 2.0")
    lines = [(f.rule.split("/")[1], f.line) for f in findings_of(tmp_path)]
    text = (tmp_path / TOML).read_text(encoding="utf-8").splitlines()
    assert [text[line - 1].split(" =")[0] for _, line in lines if line] == [
        "[metadata.rsi.budget]", "hour", "cpu", "gpu", "ram",
    ]  # fmt: skip


def test_a_harbor_task_is_told_what_it_lacks_and_passes(tmp_path: Path) -> None:
    write(tmp_path, plain_files() | {"environment/docker-compose.yaml": ""})
    found = {f.rule: f.severity for f in findings_of(tmp_path)}
    assert found == {"contract/none": N, "contract/unsupported": W}


def test_questions_of_other_languages_are_sentences(tmp_path: Path) -> None:
    whole(tmp_path)
    edit(
        tmp_path,
        TOML,
        "Can a better recipe lower the error of the fit below that of the author's recipe?",
        "更好吗\uff1f",
    )
    assert findings_of(tmp_path) == []
