"""`rsi runs`, `rsi show`, `rsi report`: over runs as an engine leaves them."""

import io
import json
from dataclasses import replace

import pytest

from harness.errors import ExitCode, InputError
from harness.run.folder import RunFolder
from harness.run.journal import Journal
from harness.run.plan import Plan
from harness.run.state import Kind
from rsi_anything import cli

CONTRACT = {
    "metric": {"name": "nll", "direction": "minimize"},
    "reference": {"baseline": 2.11, "noise": 0.0042, "floor": 3.3, "repeats": 5},
}


def test_runs_lists_the_newest_first(make_run, handed, capsys) -> None:
    make_run("calm-otter", handed=[handed(2.031, score=1.07)])
    make_run("quiet-heron", status=None)
    assert cli.main(["runs"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == ["name", "task", "agent", "status", "best", "score", "submissions", "age"]
    assert any(line.startswith("calm-otter") and "2.0310 nats/char" in line and "1 of 8" in line for line in lines)
    assert any(line.startswith("quiet-heron") and "interrupted" in line for line in lines)
    assert err == ""


def test_no_runs_is_no_error(capsys) -> None:
    assert cli.main(["runs"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "rsi run" in err
    assert cli.main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": []}


def test_a_damaged_run_does_not_hide_the_others(make_run, handed, capsys) -> None:
    make_run("calm-otter", handed=[handed(2.0)])
    broken = make_run("quiet-heron")
    lines = broken.journal.read_bytes().splitlines(keepends=True)
    broken.journal.write_bytes(lines[0] + lines[2])
    assert cli.main(["runs", "--json"]) == 0
    out, err = capsys.readouterr()
    rows = {row["run"]: row for row in json.loads(out)["runs"]}
    assert {name: row["status"] for name, row in rows.items()} == {"calm-otter": "completed", "quiet-heron": "damaged"}
    assert "line 2 of the journal is damaged" in rows["quiet-heron"]["reason"]
    assert err.startswith("note: run quiet-heron is damaged: line 2 of the journal is damaged")
    assert len(err.splitlines()) == 1
    assert cli.main(["show", "quiet-heron"]) == ExitCode.FAILED


def test_runs_that_may_not_be_read_are_one_line(make_run, monkeypatch, capsys) -> None:
    for name in ("calm-otter", "quiet-heron", "warm-finch"):
        make_run(name)
    read = RunFolder.read_plan

    def closed(folder: RunFolder) -> Plan:
        if folder.name == "calm-otter":
            return read(folder)
        raise InputError("no readable plan", next_step="rsi runs") from PermissionError(13, "Permission denied")

    monkeypatch.setattr(RunFolder, "read_plan", closed)
    assert cli.main(["runs"]) == 0
    out, err = capsys.readouterr()
    assert "calm-otter" in out
    expected = "note: 2 runs may not be read (permission denied; another user's?): quiet-heron, warm-finch\n"
    assert err == expected


def test_a_pure_number_is_shown_without_its_unit(make_run, handed, capsys) -> None:
    for name, unit in (("calm-otter", "1"), ("quiet-heron", "ratio")):
        contract = {**CONTRACT, "metric": {**CONTRACT["metric"], "unit": unit}}
        make_run(name, handed=[handed(2.031)], contract=contract)
        for argv in (["show", name], ["report", name, "--format", "markdown"]):
            assert cli.main(argv) == 0
            out = capsys.readouterr().out
            assert "2.0310" in out
            assert f"2.0310 {unit}" not in out
            assert f"2.1140 {unit}" not in out


def test_a_question_about_one_run_speaks_of_one(make_run, capsys, monkeypatch) -> None:
    make_run()
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert cli.main(["clean", "--delete"]) == ExitCode.REFUSED
    assert "the record of 1 run would be deleted" in capsys.readouterr().err


@pytest.mark.parametrize(("code", "words"), [(126, "could not be run"), (127, "could not be found")])
def test_an_agent_that_could_not_be_run_is_said_first_and_fails(make_run, monkeypatch, capsys, code, words) -> None:
    folder = make_run()
    folder.write_plan(replace(folder.read_plan(), agent="script"))
    folder.agent_log.write_text("warming up\nsh: 1: ./my-agent.sh: \x1b[1mnot found\n\n", "utf-8")
    events = folder.journal.read_text("utf-8")
    folder.journal.unlink()
    with Journal.create(folder.journal) as journal:
        for event in map(json.loads, events.splitlines()):
            facts = {key: value for key, value in event.items() if key not in {"n", "t", "prev", "kind"}}
            kind = Kind(event["kind"])
            journal.append(kind, **({**facts, "code": code} if kind is Kind.AGENT_ENDED else facts))
    monkeypatch.setattr("harness.run.launch.work_on", lambda folder, tell: None)
    assert cli.main(["resume", "calm-otter"]) == ExitCode.FAILED
    out = capsys.readouterr().out
    assert f"the agent's command {words} (status {code}): see agent.log: sh: 1: ./my-agent.sh:" in out
    assert "\x1b" not in out
    assert cli.main(["show", "calm-otter"]) == 0
    assert words in capsys.readouterr().out.splitlines()[2]
    assert cli.main(["show", "calm-otter", "--json"]) == 0
    assert words in json.loads(capsys.readouterr().out)["agent_fault"]


@pytest.mark.parametrize(
    ("place", "following"), [("harness.run.launch.work_on", "resume"), ("harness.report.html.page", "report")]
)
def test_leaving_at_once_names_the_command_that_comes_back(make_run, monkeypatch, capsys, place, following) -> None:
    make_run()
    monkeypatch.setattr("harness.run.launch.work_on", lambda folder, tell: None)

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, leave)
    assert cli.main(["resume", "calm-otter"]) == ExitCode.INTERRUPTED
    assert f"next:  rsi {following} calm-otter" in capsys.readouterr().err


def test_show_takes_a_unique_beginning(make_run, handed, capsys) -> None:
    make_run("calm-otter", handed=[handed(2.031)])
    assert cli.main(["show", "calm"]) == 0
    assert "20 times the noise" in capsys.readouterr().out


def test_show_json_is_one_document(make_run, handed, capsys) -> None:
    make_run(handed=[handed(2.031)])
    assert cli.main(["show", "calm-otter", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["best"]["metric"] == 2.031
    assert "seed" not in shown["plan"]


def test_report_writes_one_file_whole(make_run, handed, capsys, tmp_path) -> None:
    folder = make_run(handed=[handed(2.031)])
    assert cli.main(["report", "calm-otter"]) == 0
    assert capsys.readouterr().out == f"{folder.report}\n"
    assert folder.report.read_text("utf-8").startswith("<!doctype html>")
    out = tmp_path / "curve.svg"
    assert cli.main(["report", "calm-otter", "--format", "svg", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": "calm-otter", "format": "svg", "path": str(out)}
    assert out.read_text("utf-8").startswith("<svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.svg"]


def test_report_prints_markdown(make_run, handed, capsys) -> None:
    make_run(handed=[handed(2.031)])
    assert cli.main(["report", "calm-otter", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## tiny-lm: search\n")


@pytest.mark.parametrize("out", [".", "missing/report.html"])
def test_a_report_that_cannot_be_written_is_refused_before_it_is_drawn(
    make_run, out, capsys, tmp_path, monkeypatch
) -> None:
    make_run()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "calm-otter", "--out", out]) == ExitCode.WRONG_INPUT
    assert "next:" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (None, 0), (False, ExitCode.MISSING_PREREQUISITE)])
def test_doctor_says_what_is_lacking_and_how_to_get_it(ok, code, monkeypatch, capsys) -> None:
    from harness.sandbox.doctor import DoctorLine

    line = DoctorLine("git", ok, "looked for", "" if ok else "install git")
    monkeypatch.setattr("harness.sandbox.doctor.doctor", lambda: [line])
    assert cli.main(["doctor"]) == code
    out = capsys.readouterr().out
    assert "git: looked for" in out
    assert ("next: install git" in out) == (not ok)
    assert cli.main(["doctor", "--json"]) == code
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"ok": code == 0, "lines": [{"what": "git", "ok": ok, "detail": "looked for", "fix": line.fix}]}


def test_doctor_looks_at_this_machine(capsys) -> None:
    assert cli.main(["doctor", "--json"]) in {0, ExitCode.MISSING_PREREQUISITE}
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert {"python", "git", "disk space"} <= {line["what"] for line in lines}
    assert all(line["fix"] for line in lines if line["ok"] is False)
