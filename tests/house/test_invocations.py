"""Wrong invocations and broken inputs: the right exit code, few lines, no traceback, a next step, nothing written."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import paths
from harness.errors import ExitCode, InputError
from rsi_anything import cli, resources


@dataclass(frozen=True)
class Wrong:
    """One thing a person may do wrong, below a folder of their own."""

    name: str
    argv: tuple[str, ...]
    code: ExitCode
    says: str
    """Part of what is said."""
    prepare: Callable[[Path], None] | None = None
    listed: bool = False
    """Whether everything that is wrong is listed on stdout, because it may be long."""


def _file(name: str, content: str | bytes) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return prepare


def _answers(change: Callable[[str], str]) -> Callable[[Path], None]:
    """Return a preparation: the sample project with changed answers."""

    def prepare(folder: Path) -> None:
        shutil.copytree(resources.templates_dir() / "sample", folder / "sample")
        answers = folder / "sample/answers.toml"
        answers.write_text(change(answers.read_text("utf-8")), "utf-8")

    return prepare


NEW = ("new", "sample/project", "--answers", "sample/answers.toml", "--out", "task")
WRONG_INPUT, FAILED, REFUSED = ExitCode.WRONG_INPUT, ExitCode.FAILED, ExitCode.REFUSED

CASES = [
    Wrong("unknown command", ("rnu", "task"), WRONG_INPUT, "did you mean 'run'"),
    Wrong("unknown option", ("runs", "--jsno"), WRONG_INPUT, "did you mean '--json'"),
    Wrong("option without its value", ("run", "task", "--submissions"), WRONG_INPUT, "expected one argument"),
    Wrong("option with a wrong type", ("run", "task", "--submissions", "many"), WRONG_INPUT, "must be a whole number"),
    Wrong("argument too many", ("show", "one", "two"), WRONG_INPUT, "'two' is one argument too many"),
    Wrong("argument missing", ("show",), WRONG_INPUT, "RUN"),
    Wrong("agent's command where none belongs", ("show", "one", "--", "x"), WRONG_INPUT, "'--'"),
    Wrong("run that is not there", ("show", "no-such-run"), WRONG_INPUT, "no-such-run"),
    Wrong("report of no run", ("report", "no-such-run"), WRONG_INPUT, "no-such-run"),
    Wrong("resume of no run", ("resume", "no-such-run"), WRONG_INPUT, "no-such-run"),
    Wrong("stop of no run", ("stop", "no-such-run"), WRONG_INPUT, "no-such-run"),
    Wrong("clean of no run", ("clean", "no-such-run"), WRONG_INPUT, "no-such-run"),
    Wrong("name that leaves the folder", ("show", "../../etc"), WRONG_INPUT, "etc"),
    Wrong("judge without saying what", ("judge", "no-such-run"), WRONG_INPUT, "--submission"),
    Wrong("judge of a folder and a submission", ("judge", ".", "--task", ".", "--all"), WRONG_INPUT, "folder"),
    Wrong("task that is not there", ("run", "missing"), WRONG_INPUT, "missing"),
    Wrong("task that is a file", ("run", "task"), WRONG_INPUT, "task", _file("task", "x")),
    Wrong("folder without task.toml", ("run", "task"), WRONG_INPUT, "task.toml", _file("task/a", "x")),
    Wrong("task.toml that is no TOML", ("run", "task"), WRONG_INPUT, "task.toml", _file("task/task.toml", "= [")),
    Wrong(
        "task.toml that is no text", ("run", "task"), WRONG_INPUT, "task.toml", _file("task/task.toml", b"\xff\xfe\0")
    ),
    *(
        Wrong(f"{option} {value} of {argv[0]}", (*argv, option, value), WRONG_INPUT, "must be a")
        for argv, option, value in (
            (("run", "task"), "--hours", "nan"),
            (("run", "task"), "--hours", "inf"),
            (("run", "task"), "--hours", "0"),
            (("run", "task"), "--hours", "1e300"),
            (("run", "task"), "--submissions", "-3"),
            (("run", "task"), "--submissions", "1.5"),
            (("run", "task"), "--seed", "-1"),
            (("run", "task"), "--seed", str(2**63)),
            (("check", "task"), "--repeats", "0"),
            (("check", "task"), "--tries", "9" * 5000),
            (("stop", "calm"), "--wait", "nan"),
            (("judge", "calm"), "--submission", "0"),
            (("judge", "."), "--seed", "-1"),
        )
    ),
    Wrong("judge of a folder for no task", ("judge", ".", "--all"), WRONG_INPUT, "--task"),
    Wrong(
        "judge of one and of all", ("judge", "calm", "--all", "--submission", "1"), WRONG_INPUT, "do not go together"
    ),
    Wrong("judge of a folder that is not there", ("judge", "/nope", "--task", "task"), WRONG_INPUT, "/nope"),
    Wrong("level that does not exist", ("run", ".", "--level", "vm"), WRONG_INPUT, "namespaces, process"),
    Wrong("format that does not exist", ("report", "x", "--format", "pdf"), WRONG_INPUT, "html, markdown, svg"),
    Wrong("agent that does not exist", ("run", ".", "--agent", "serch"), WRONG_INPUT, "oracle, nop, search, script"),
    Wrong("agent that is for tests", ("run", ".", "--agent", "fake"), WRONG_INPUT, "there is no agent 'fake'"),
    Wrong("check of a missing task", ("check", "missing"), WRONG_INPUT, "missing"),
    Wrong("check of an unknown rung", ("check", "task", "--only", "buld"), WRONG_INPUT, "buld"),
    Wrong(
        "project that is not there",
        ("new", "missing", "--answers", "a.toml"),
        WRONG_INPUT,
        "missing",
        _file("a.toml", ""),
    ),
    Wrong("answers that are not there", ("new", ".", "--answers", "a.toml"), WRONG_INPUT, "a.toml"),
    Wrong("answers that are no TOML", NEW, WRONG_INPUT, "answers.toml", _answers(lambda text: text + "\n[[[")),
    Wrong(
        "answers that are empty", NEW, WRONG_INPUT, "source.name", _answers(lambda text: "version = 1\n"), listed=True
    ),
    Wrong(
        "answers with an unknown key",
        NEW,
        WRONG_INPUT,
        "holdout",
        _answers(lambda text: text.replace("holdout =", "holdotu =")),
        listed=True,
    ),
    Wrong(
        "answers with a value of the wrong type",
        NEW,
        WRONG_INPUT,
        "submissions",
        _answers(lambda text: text.replace("submissions = 12", 'submissions = "twelve"')),
        listed=True,
    ),
    Wrong(
        "answers with a domain upside down",
        NEW,
        WRONG_INPUT,
        "lowest",
        _answers(lambda text: text.replace("lowest = 0.0", "lowest = 9e9")),
        listed=True,
    ),
]


def _everything(folder: Path) -> dict[str, int]:
    """Return every file but those of the cache, which may be made again at any time."""
    files = [path for path in sorted(folder.rglob("*")) if not path.is_dir()]
    return {str(path): path.lstat().st_mtime_ns for path in files if not path.is_relative_to(paths.cache())}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_is_answered_and_leaves_nothing(
    case: Wrong, own_home: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    if case.prepare:
        case.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = {**_everything(tmp_path), **_everything(own_home)}
    code = cli.main(list(case.argv))
    out, err = capsys.readouterr()
    assert code == case.code, err
    assert case.says in (out if case.listed else err)
    lines = err.splitlines()
    assert len(lines) <= 6, err
    assert "Traceback" not in err
    assert any(line.startswith("next:") and len(line) > 8 for line in lines), err
    assert (out != "") == case.listed
    assert {**_everything(tmp_path), **_everything(own_home)} == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_mistake_in_json_is_an_object(case: Wrong, tmp_path: Path, monkeypatch, capsys) -> None:
    if case.prepare:
        case.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    place = case.argv.index("--") if "--" in case.argv else len(case.argv)
    assert cli.main([*case.argv[:place], "--json", *case.argv[place:]]) == case.code
    error = json.loads(capsys.readouterr().out)["error"]
    assert set(error) == {"what", "where", "next", "exit_code"}
    assert error["exit_code"] == case.code
    assert error["next"]


@pytest.mark.parametrize(
    ("wishes", "says"),
    [
        (("--name", "calm-otter"), "there is a run calm-otter already"),
        (("--name", "../calm"), "cannot be used"),
        (("--agent", "script"), "needs a command"),
    ],
)
def test_a_wrong_wish_is_answered_before_anything_is_built(
    wishes: tuple[str, ...], says: str, make_run, sample_task: Path, monkeypatch, capsys
) -> None:
    make_run("calm-otter")
    monkeypatch.setattr("harness.run.create.build_image", lambda *_: pytest.fail("an image was built"))
    assert cli.main(["run", str(sample_task), "--level", "process", *wishes]) == WRONG_INPUT
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert says in err
    assert "next:" in err


def test_the_isolation_is_said_in_one_line(sample_task: Path, monkeypatch, capsys) -> None:
    def stop(*_: object) -> None:
        raise InputError("enough")

    monkeypatch.setattr("harness.run.create.build_image", stop)
    assert cli.main(["run", str(sample_task), "--agent", "nop", "--level", "process"]) == WRONG_INPUT
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sandbox")]
    assert len(said) == 1
    assert "a plain process" in said[0]
    assert "rsi show" in said[0]


@pytest.fixture
def sample_task(tmp_path: Path, capsys) -> Path:
    """Return the task of the sample project."""
    sample = resources.templates_dir() / "sample"
    argv = ["new", str(sample / "project"), "--answers", str(sample / "answers.toml"), "--out", str(tmp_path / "task")]
    assert cli.main(argv) == 0
    capsys.readouterr()
    return tmp_path / "task"


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 25
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("argv", [["show", "calm-otter"], ["runs"], ["report", "calm-otter"], ["stop", "calm-otter"]])
def test_a_data_folder_that_cannot_be_used_is_answered(argv: list[str], monkeypatch, capsys) -> None:
    monkeypatch.setenv("RSI_HOME", f"{os.devnull}/rsi")
    code = cli.main(argv)
    err = capsys.readouterr().err
    assert code in ({0} if argv == ["runs"] else {FAILED, WRONG_INPUT})
    assert "Traceback" not in err
    assert "bug of ours" not in err
    assert "next:" in err
