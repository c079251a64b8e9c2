"""The command line parses, dispatches, and turns every way of failing into a few lines and an exit code."""

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import paths
from harness.errors import ExitCode, InputError, Interrupted, PrerequisiteError, RefusedError, RsiError
from rsi_anything import cli


@pytest.fixture
def failing(monkeypatch):
    """Return a setter: `rsi runs` then raises the given error."""

    def fail(error: BaseException) -> None:
        def run(args):
            raise error

        monkeypatch.setattr("rsi_anything.commands.runs.run", run)

    return fail


def test_no_arguments_print_the_help(capsys) -> None:
    assert cli.main([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: rsi")
    assert "examples:" in out
    assert err == ""


def test_every_command_is_there_and_explains_itself(capsys) -> None:
    parser = cli.build_parser()
    assert list(parser.commands) == list(cli.COMMANDS)
    for name in cli.COMMANDS:
        assert cli.main([name, "--help"]) == 0
        out = capsys.readouterr().out
        assert "--json" in out, name
        assert "--quiet" in out, name
        assert len(out.splitlines()) > 6, name


def test_the_overview_says_of_a_command_what_the_command_says(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.build_parser().format_help() == cli.build_parser([]).format_help()


def test_version(capsys) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"rsi-anything {cli.version()}\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["rnus"], "did you mean 'runs'"),
        (["shwo", "x"], "did you mean 'show'"),
        (["runs", "--jsn"], "did you mean '--json'"),
        (["--versoin"], "did you mean '--version'"),
        (["report", "x", "--format", "htlm"], "did you mean 'html'"),
        (["runs", "extra"], "'extra' is one argument too many"),
        (["show"], "the following arguments are required: RUN"),
        (["report", "x", "--out"], "expected one argument"),
        (["zzzzzz"], "'zzzzzz' does not exist"),
        (["report", "x", "--format", "pdf"], "choose one of html, markdown, svg"),
        (["run", "x", "--level", "vm"], "choose one of namespaces, process"),
    ],
)
def test_a_wrong_word_is_named_with_the_nearest_right_one(argv, said, capsys) -> None:
    assert cli.main(argv) == ExitCode.WRONG_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "next:  rsi" in err
    assert len(err.splitlines()) <= 6


@pytest.mark.parametrize("error_class", [RsiError, InputError, PrerequisiteError, RefusedError, Interrupted])
def test_each_error_has_its_exit_code_and_its_three_lines(error_class, failing, capsys) -> None:
    failing(error_class("it broke", where="a.toml:3", next_step="rsi doctor"))
    assert cli.main(["runs"]) == error_class.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: it broke\nwhere: a.toml:3\nnext:  rsi doctor\n"


def test_with_json_an_error_is_an_object_too(failing, capsys) -> None:
    failing(RefusedError("no", where="here", next_step="there"))
    assert cli.main(["runs", "--json"]) == ExitCode.REFUSED
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": {"what": "no", "where": "here", "next": "there", "exit_code": 4}}
    assert err.startswith("error: no")


def test_ctrl_c_names_the_command_that_comes_back(failing, capsys) -> None:
    failing(KeyboardInterrupt())
    assert cli.main(["runs", "--quiet"]) == ExitCode.INTERRUPTED
    assert "next:  rsi runs --quiet" in capsys.readouterr().err


def test_a_bug_of_ours_goes_to_a_log_file(failing, capsys) -> None:
    failing(ZeroDivisionError("oops"))
    assert cli.main(["runs"]) == ExitCode.FAILED
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    [log] = paths.logs().iterdir()
    assert str(log) in err
    text = log.read_text("utf-8")
    assert "ZeroDivisionError: oops" in text
    assert "command: rsi runs" in text


@pytest.mark.parametrize("error_class", [PermissionError, NotADirectoryError, OSError])
def test_what_a_person_can_mend_is_no_bug(error_class, failing, capsys) -> None:
    numbers = {PermissionError: errno.EACCES, NotADirectoryError: errno.ENOTDIR, OSError: errno.ENOSPC}
    failing(error_class(numbers[error_class], os.strerror(numbers[error_class]), "/some/place"))
    assert cli.main(["runs"]) == ExitCode.FAILED
    err = capsys.readouterr().err
    assert "where: /some/place" in err
    assert "RSI_HOME" in err
    assert not paths.logs().exists()


@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EFBIG"])
def test_what_the_machine_lacks_is_no_bug_without_the_name_of_a_file(name, failing, capsys) -> None:
    number = getattr(errno, name)
    failing(OSError(number, os.strerror(number)))
    assert cli.main(["runs"]) == ExitCode.FAILED
    err = capsys.readouterr().err
    assert os.strerror(number).lower() in err
    assert "next:" in err
    assert not paths.logs().exists()


def test_an_io_error_that_nobody_foresaw_keeps_its_traceback(failing, capsys) -> None:
    failing(OSError("no number"))
    assert cli.main(["runs"]) == ExitCode.FAILED
    assert "this is a bug of ours" in capsys.readouterr().err


def test_a_bug_without_a_place_for_its_log_is_still_told(failing, capsys, monkeypatch) -> None:
    failing(ZeroDivisionError("oops"))
    monkeypatch.setenv("RSI_HOME", "/dev/null/rsi")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/dev/null/tmp")
    assert cli.main(["runs"]) == ExitCode.FAILED
    assert "ZeroDivisionError: oops" in capsys.readouterr().err


def test_control_characters_in_an_error_do_not_reach_the_terminal(failing, capsys) -> None:
    failing(InputError("file \x1b[2J\x07.toml is no task"))
    cli.main(["runs"])
    assert "\x1b" not in capsys.readouterr().err


def test_quiet_stands_before_or_after_the_command(capsys, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr("rsi_anything.commands.runs.run", lambda args: seen.append(args.quiet) or 0)
    for argv in (["runs"], ["-q", "runs"], ["runs", "-q"]):
        assert cli.main(argv) == 0
    assert seen == [False, True, True]


def test_json_stands_before_or_after_the_command(capsys) -> None:
    for argv in (["--json", "runs"], ["runs", "--json"], ["-q", "--json", "runs"]):
        assert cli.main(argv) == 0
        assert json.loads(capsys.readouterr().out) == {"runs": []}


def test_what_follows_two_dashes_belongs_to_the_agent(monkeypatch) -> None:
    seen: list[SimpleNamespace] = []
    monkeypatch.setattr("rsi_anything.commands.run.run", lambda args: seen.append(args) or 0)
    assert cli.main(["run", "task", "--agent", "script", "--", "./try.sh", "--json", "-x"]) == 0
    assert seen[0].agent_command == ["./try.sh", "--json", "-x"]
    assert seen[0].json is False


def rsi(*argv: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rsi_anything", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **env},
    )


def test_a_reader_that_leaves_early_causes_no_complaint(make_run) -> None:
    make_run()
    with rsi("show", "calm-otter", "--json") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        said = process.stderr.read()
    assert (said, process.returncode) == (b"", ExitCode.FAILED)


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", ">/dev/full 2>&1", ">&- 2>&- <&-"])
@pytest.mark.parametrize(
    "command", ["show calm-otter", "runs --json", "show nothing --json", "--version", "run --help"]
)
def test_a_stdout_that_takes_nothing_is_said_in_a_line(make_run, redirection, command) -> None:
    make_run()
    line = f"{shlex.quote(sys.executable)} -m rsi_anything {command} {redirection}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.FAILED
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    if "2>" in redirection:
        assert lines == []
    else:
        assert lines[-1].startswith("error: stdout could not be written: ")
        assert len(lines) <= 4


def test_output_is_utf8_in_any_locale(make_run, handed) -> None:
    make_run(handed=[handed(2.0, message="学習率 ± ü")])
    process = rsi("show", "calm-otter", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert "学習率 ± ü".encode() in out


def test_python_dash_m_is_the_same_command() -> None:
    out, _ = rsi("--version").communicate()
    assert out.decode() == f"rsi-anything {cli.version()}\n"
    assert Path(cli.__file__).name == "cli.py"
