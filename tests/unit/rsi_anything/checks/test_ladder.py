"""The ladder: in order, up to the first failure, and honest about what it did not do."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness.errors import InputError
from rsi_anything.checks import ladder
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.ladder import RUNGS, Context, Outcome, Rung, Status, check
from rsi_anything.checks.rules import RULES, page, raised
from tests.unit.harness.task.task_folders import edit, good_task

PACKAGE = "rsi_anything.checks"


def fake_rung(monkeypatch: pytest.MonkeyPatch, name: str, outcome: Outcome) -> Rung:
    """Return a rung that gives this outcome and leaves its name in the context."""
    module = ModuleType(f"{PACKAGE}.{name}_fake")

    def climb(folder: Path, context: Context) -> Outcome:
        context.found[name] = list(context.found)
        return outcome

    module.climb = climb  # type: ignore[attr-defined]
    module.__spec__ = ladder.importlib.util.spec_from_loader(module.__name__, loader=None)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Rung(name, f"title of {name}", f"{name}_fake")


def finding(severity: Severity) -> Finding:
    """Return a finding."""
    return raised("contract/unit", "a reason", file="task.toml", line=3, fix="a fix", severity=severity)


@pytest.fixture
def rungs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put a ladder of fakes in place: good, absent, bad, high."""
    made = (
        fake_rung(monkeypatch, "good", Outcome([finding(Severity.WARNING)], {"n": 1})),
        Rung("absent", "not there", "no_such_module"),
        fake_rung(monkeypatch, "bad", Outcome([finding(Severity.NOTE), finding(Severity.ERROR)])),
        fake_rung(monkeypatch, "high", Outcome()),
    )
    monkeypatch.setattr(ladder, "RUNGS", made)
    return [rung.name for rung in made]


def test_it_stops_at_the_first_error_and_says_what_was_left_out(tmp_path: Path, rungs: list[str]) -> None:
    told: list[str] = []
    context = Context(progress=told.append)
    report = check(tmp_path, context=context)
    assert [rung.status for rung in report.rungs] == [
        Status.PASSED,
        Status.NOT_AVAILABLE,
        Status.FAILED,
        Status.NOT_REACHED,
    ]
    assert (report.ok, report.complete) == (False, False)
    assert report.rungs[3].reason == "bad failed"
    assert told == ["good: title of good", "bad: title of bad"]
    assert context.found == {"good": [], "bad": ["good"]}
    assert [f.severity for f in report.rungs[2].findings] == [Severity.ERROR, Severity.NOTE]


def test_one_rung_can_be_asked_for(tmp_path: Path, rungs: list[str]) -> None:
    report = check(tmp_path, only="high")
    assert [rung.status for rung in report.rungs] == [Status.SKIPPED] * 3 + [Status.PASSED]
    assert (report.ok, report.complete) == (True, False)


def test_what_is_not_available_never_counts_as_passed(tmp_path: Path, rungs: list[str]) -> None:
    report = check(tmp_path, only="absent")
    assert report.rungs[1].reason == "not available in this version"
    assert not report.ok


def test_the_report_is_plain_json_with_stable_keys(tmp_path: Path, rungs: list[str]) -> None:
    data = json.loads(json.dumps(check(tmp_path).as_json()))
    assert set(data) == {"task", "ok", "complete", "counts", "rungs"}
    assert data["counts"] == {"error": 1, "warning": 1, "note": 1}
    assert set(data["rungs"][0]) == {"name", "status", "reason", "seconds", "findings", "measurements"}
    assert data["rungs"][0]["measurements"] == {"n": 1}
    assert data["rungs"][0]["findings"] == [
        {
            "rule": "contract/unit",
            "severity": "warning",
            "file": "task.toml",
            "line": 3,
            "reason": "a reason",
            "fix": "a fix",
        }
    ]
    assert data["rungs"][3]["seconds"] is None


@pytest.mark.parametrize(("name", "words"), [("lnt", "did you mean lint?"), ("zzz", "rungs: contract, lint, build")])
def test_an_unknown_rung_is_named(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        check(tmp_path, only=name)
    assert words in caught.value.next_step


def test_a_missing_folder_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        check(tmp_path / "nothing")


def test_the_rungs_are_those_of_the_design() -> None:
    assert [rung.name for rung in RUNGS] == ["contract", "lint", "build", "baseline", "floor", "attacks", "headroom"]


def test_a_broken_contract_keeps_the_other_rungs_from_running(tmp_path: Path) -> None:
    good_task(tmp_path)
    edit(tmp_path, "task.toml", "cpus = 1", "cpu = 1")
    report = check(tmp_path)
    assert report.rungs[0].status is Status.FAILED
    assert {rung.status for rung in report.rungs[1:]} == {Status.NOT_REACHED}
    assert [f.rule for f in report.findings] == ["contract/unknown-key"]


def test_a_finding_is_shown_with_place_reason_and_cure() -> None:
    assert finding(Severity.ERROR).lines() == ["error task.toml:3: a reason [contract/unit]", "    fix: a fix"]
    hostile = Finding("lint/name", Severity.NOTE, "bad\x1b[31m", "a\nb")
    assert hostile.lines() == ["note a\\nb: bad\\x1b[31m [lint/name]"]


def test_the_page_of_rules_is_up_to_date() -> None:
    written = Path("docs/reference/checks.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m rsi_anything.checks.rules > docs/reference/checks.md"


def test_every_rule_is_raised_somewhere_and_none_without_an_entry() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path("rsi_anything/checks").rglob("*.py"))
    body = source.replace(Path("rsi_anything/checks/rules.py").read_text(encoding="utf-8"), "")
    for rule in RULES:
        stem = rule.rsplit("-", 1)[0]
        assert f'"{rule}"' in body or f"{stem}-{{" in body, rule
    used = set(re.findall(r'"((?:contract|lint|build|baseline|floor|attacks|headroom)/[a-z-]+)"', body))
    assert used - RULES.keys() == set()


def test_the_ladder_loads_no_rung_before_it_is_climbed() -> None:
    code = "import sys, rsi_anything.checks.ladder; print([m for m in sys.modules if 'rsi_anything.checks.' in m])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "contract_rung" not in shown
    assert "lint" not in shown
