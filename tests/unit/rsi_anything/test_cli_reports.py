"""`rsi runs`, `rsi show`, `rsi report`: over runs as an engine leaves them."""

import json

import pytest

from harness.errors import ExitCode
from rsi_anything import cli


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
    assert [row["run"] for row in json.loads(out)["runs"]] == ["calm-otter"]
    assert "line 2 of the journal is damaged" in err
    assert cli.main(["show", "quiet-heron"]) == ExitCode.FAILED


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
