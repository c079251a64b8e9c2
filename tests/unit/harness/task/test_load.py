"""Task folders: good ones are read, broken ones say where, why and what to do, whatever is in them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ExitCode, InputError
from harness.task.contract import Direction
from harness.task.load import load_contract, load_task, strip_canary
from harness.task.problems import TaskError
from tests.unit.harness.task.task_folders import TASK_TOML, edit, good_files, good_task, plain_files, write


def test_a_good_task_is_read_whole(tmp_path: Path) -> None:
    task = load_task(good_task(tmp_path))
    assert task.name == "fit-a-number"
    assert task.contract is not None
    assert task.contract.metric.direction is Direction.MINIMIZE
    assert task.contract.search.knobs[1].integer
    assert task.config.environment.memory_mb == 512
    assert task.instruction.startswith("# Fit a number")
    assert task.tests == task.folder / "tests"


def test_a_harbor_task_without_a_contract_is_read(tmp_path: Path) -> None:
    task = load_task(write(tmp_path / "say-hello", plain_files()))
    assert (task.name, task.contract, task.config.schema_version) == ("say-hello", None, "1.0")


EDITS: list[tuple[str, str, str, int | None, str]] = [
    # old, new, key or file, line, words of the reason or the fix
    ("cpus = 1", "cpu = 1", "environment.cpu", 71, "did you mean cpus?"),
    ("network_mode =", "network_mod =", "environment.network_mod", 70, "did you mean network_mode?"),
    ("memory_mb = 512", "memory_gb = 1", "environment.memory_gb", 72, "did you mean memory_mb?"),
    ("[verifier]", "[verifer]", "verifer", 66, "did you mean verifier?"),
    ("[metadata.rsi.judge]", "[metadata.rsi.juge]", "metadata.rsi.juge", 48, "did you mean judge?"),
    ("[agent]\n", "[agent]\nhours = 3\n", "agent.hours", 64, "known keys"),
    ("[agent]\n", "[agent]\nbuild_timeout_sec = 3\n", "agent.build_timeout_sec", 64, "environment.build_timeout_sec"),
    ("hours = 2.0", 'hours = "2"', "metadata.rsi.budget.hours", 44, "must be a number, is '2'"),
    ("hours = 2.0", "hours = 0", "metadata.rsi.budget.hours", 44, "greater than 0"),
    ("hours = 2.0", "hours = inf", "metadata.rsi.budget.hours", 44, "finite number"),
    ("hours = 2.0", "hours = 1979-05-27", "metadata.rsi.budget.hours", 44, "must be a number"),
    ("submissions = 20", "submissions = 2.5", "metadata.rsi.budget.submissions", 45, "must be a"),
    ("submissions = 20", "submissions = true", "metadata.rsi.budget.submissions", 45, "is true"),
    ("submissions = 20\n", "", "metadata.rsi.budget.submissions", 43, "is missing"),
    ("cooldown_sec = 5", "cooldown_sec = 7200", "metadata.rsi.budget.cooldown_sec", 46, "or more"),
    ('"minimize"', '"minimise"', "metadata.rsi.metric.direction", 24, "did you mean minimize?"),
    ('name = "error"', 'name = "reward"', "metadata.rsi.metric", 22, "other than reward"),
    ("lowest = 0.0", "lowest = 200.0", "metadata.rsi.metric", 22, "must be below highest"),
    ("repeats = 2", "repeats = 0", "metadata.rsi.evaluation.repeats", 31, "greater than or equal to 1"),
    ('"unscored"', '"none"', "metadata.rsi.evaluation.on_invalid", 32, "must be 'unscored'"),
    ('"unscored"', "1.0", "metadata.rsi.evaluation.on_invalid", 32, "equal or beat the baseline"),
    ('"best", ', '"beast", ', "metadata.rsi.evaluation.feedback[2]", 33, "did you mean best?"),
    ('"best", ', '"metric", ', "metadata.rsi.evaluation.feedback", 33, "named twice"),
    ('"conf/**"]\nfrozen', '"../x"]\nfrozen', "metadata.rsi.boundary.editable", 37, "relative to the workdir"),
    ('"conf/**"]\nfrozen', '"data/points.csv"]\nfrozen', "metadata.rsi.boundary.editable[1]", 37, "freezes all of it"),
    ('deliver = ["train.py"', 'deliver = ["data/a"', "metadata.rsi.boundary.deliver[0]", 39, "freezes all of it"),
    ('deliver = ["train.py", "conf/**"]', 'deliver = ["out"]', "metadata.rsi.boundary.deliver", 39, "score the same"),
    ('"conf/**"]\nmax_mb', '"conf/?"]\nmax_mb', "metadata.rsi.boundary.deliver[1]", 39, "question mark"),
    ("max_files = 100", "max_files = 0", "metadata.rsi.boundary.max_files", 41, "greater than or equal to 1"),
    ('"conf/fit.json"', '"other.json"', "metadata.rsi.search.knobs[0].file", 52, "may not be edited"),
    ('"conf/fit.json"', '"data/fit.json"', "metadata.rsi.search.knobs[0].file", 52, "is frozen"),
    ('"conf/fit.json"', '"../fit.json"', "metadata.rsi.search.knobs[0].file", 52, "below the workdir"),
    ('"conf/fit.json"', '"conf/fit.txt"', "metadata.rsi.search.knobs[0].key", 53, "use pattern"),
    ('key = "train.rate"', 'key = "a..b"', "metadata.rsi.search.knobs[0].key", 53, "joined by dots"),
    ("range = [10, 1000]", "range = [10.2, 10.8]", "metadata.rsi.search.knobs[1].range", 60, "no whole number"),
    ("range = [10, 1000]", "choices = [1]", "metadata.rsi.search.knobs[1].choices", 60, "two different values"),
    ('scale = "log"', 'scale = "log"\nchoices = [1, 2]', "metadata.rsi.search.knobs[0]", 51, "exactly one of range"),
    ("(\\\\d+)", "(", "metadata.rsi.search.knobs[1]", 57, "no regular expression"),
    ("timeout_sec = 120", 'timeout_sec = "2m"', "verifier.timeout_sec", 67, "must be a number"),
    ("timeout_sec = 120", "timeout_sec = -1", "verifier.timeout_sec", 67, "greater than 0"),
    ("memory_mb = 512", 'memory = "2 gigs"', "environment.memory", 72, "such as 2G"),
    ("memory_mb = 512", 'memory = "2G"\nmemory_mb = 512', "environment", 69, "contradict"),
    ('"no-network"', '"none"', "environment.network_mode", 70, "'no-network'"),
    ("cpus = 1", 'cpus = 1\nallowed_hosts = ["a.org"]', "environment", 69, "needs network_mode"),
    ("cpus = 1", 'cpus = 1\nworkdir = "app"', "environment.workdir", 72, "absolute path"),
    ('"examples/fit-a-number"', '"fit a number"', "task.name", 5, "must be org/name"),
    ('schema_version = "1.4"', "schema_version = 1.4", "schema_version", 2, "must be a string"),
    ("[metadata.rsi", "[metadata.rsy", "metadata.rsy", 11, "did you mean metadata.rsi?"),
    ("[metadata.rsi", "[rsi", "rsi", 11, "did you mean metadata.rsi?"),
    ("version = 1\n", "version = 2\n", "metadata.rsi.version", 12, "must be 1"),
    ("version = 1\n", "version = [\n", "", 13, "not valid TOML"),
    ("cpus = 1", "cpus = 1\ncpus = 2", "", 72, "Cannot overwrite"),
    ("# A tiny task", "\ufeff# A tiny task", "", 1, "byte-order mark"),
]


@pytest.mark.parametrize(("old", "new", "key", "line", "words"), EDITS)
def test_a_wrong_key_has_file_key_line_and_cure(
    tmp_path: Path, old: str, new: str, key: str, line: int | None, words: str
) -> None:
    edit(good_task(tmp_path), "task.toml", old, new)
    with pytest.raises(TaskError) as caught:
        load_task(tmp_path)
    error = caught.value
    found = [problem for problem in error.problems if problem.key == key and problem.line == line]
    assert found, [problem.text() for problem in error.problems]
    assert words in found[0].text()
    assert error.exit_code is ExitCode.WRONG_INPUT
    shown = "\n".join(error.lines()).splitlines()
    assert len(shown) <= 6
    assert shown[-1].startswith("next:")


def _rename(folder: Path) -> None:
    (folder / "task.toml").rename(folder / "Task.tml")


def _latin(folder: Path) -> None:
    (folder / "instruction.md").write_bytes("first\nétat".encode("latin-1"))


def _link(inside: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / inside).symlink_to(target)

    return make


def _sparse(folder: Path) -> None:
    with (folder / "environment/data.bin").open("wb") as file:
        file.truncate(20 << 30)


def _two_way(folder: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (folder / "tests" / name).mkdir()
        (folder / "tests" / name / "x").symlink_to(f"../{other}")


FOLDERS: list[tuple[Callable[[Path], object], str, str]] = [
    (lambda f: (f / "task.toml").unlink(), "task.toml", "is missing"),
    (_rename, "task.toml", "did you mean Task.tml?"),
    (lambda f: (f / "instruction.md").unlink(), "instruction.md", "is missing"),
    (lambda f: (f / "instruction.md").write_text("<!-- canary -->\n\n"), "instruction.md", "is empty"),
    (lambda f: (f / "tests/test.sh").unlink(), "tests/test.sh", "is missing"),
    (_latin, "instruction.md:2", "not UTF-8"),
    (lambda f: (f / "task.toml").write_bytes(b"x = '\xff'"), "task.toml:1", "not UTF-8"),
    (_link("environment/host", "/etc/passwd"), "environment/host", "leaves environment/"),
    (_link("environment/host", "../tests/test.sh"), "environment/host", "leaves environment/"),
    (_link("tests/host", "../" * 30 + "etc"), "tests/host", "leaves the task folder"),
    (_link("solution/gone", "nowhere"), "solution/gone", "leads nowhere"),
    (_link("solution/self", "self"), "solution/self", "leads nowhere"),
    (_link("tests/up", "."), "tests/up", "a circle"),
    (_two_way, "tests/a/x", "a circle"),
    (lambda f: os.mkfifo(f / "tests/pipe"), "tests/pipe", "named pipe"),
    (_sparse, ".", "too large"),
    (lambda f: (f / "task.toml").write_text("a = " + "[" * 100_000), "task.toml", "nested too deeply"),
]


@pytest.mark.parametrize(("damage", "place", "words"), FOLDERS)
def test_a_broken_folder_is_named(tmp_path: Path, damage: Callable[[Path], object], place: str, words: str) -> None:
    damage(good_task(tmp_path))
    with pytest.raises(TaskError) as caught:
        load_task(tmp_path)
    texts = [problem.text() for problem in caught.value.problems]
    assert any(text.startswith(place) and words in text for text in texts), texts


def test_links_within_the_folder_are_fine(tmp_path: Path) -> None:
    good_task(tmp_path)
    _link("tests/again.py", "evaluate.py")(tmp_path)
    _link("solution/train.py", "files/train.py")(tmp_path)
    assert load_task(tmp_path).name == "fit-a-number"


@pytest.mark.parametrize("name", ["", "file", "no/such/folder", "x" * 5000])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        load_task(tmp_path / name)


def test_many_problems_are_listed_together_and_counted(tmp_path: Path) -> None:
    good_task(tmp_path)
    text = "".join(f"key_{number} = 1\n" for number in range(9))
    (tmp_path / "task.toml").write_text(text + TASK_TOML, encoding="utf-8")
    with pytest.raises(TaskError) as caught:
        load_task(tmp_path)
    assert len(caught.value.problems) == 9
    shown = "\n".join(caught.value.lines()).splitlines()
    assert shown[0].startswith("error: 9 problems in")
    assert len(shown) <= 6
    assert "6 more are not shown" in shown[-1]


def test_control_characters_never_reach_the_screen(tmp_path: Path) -> None:
    good_task(tmp_path)
    (tmp_path / "task.toml").write_text(f'"\\u001b[31mred\\n" = 1\n{TASK_TOML}', encoding="utf-8")
    with pytest.raises(TaskError) as caught:
        load_task(tmp_path)
    assert "\x1b" not in "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("# canary GUID 1\n\n\nGo.\n", "Go.\n"),
        ("<!-- CANARY x -->\n# harbor-canary\n\n# Title\n", "# Title\n"),
        ("# Title\n# canary\n", "# Title\n# canary\n"),
        ("The canary sings.\n", "The canary sings.\n"),
        ("\nGo.\n", "\nGo.\n"),
    ],
)
def test_canary_lines_are_not_shown_to_agents(text: str, read: str) -> None:
    assert strip_canary(text) == read


def test_load_contract_needs_one() -> None:
    assert load_contract(TASK_TOML).budget.submissions == 20
    with pytest.raises(TaskError, match="has no contract"):
        load_contract("[agent]\n")


LINES = TASK_TOML.splitlines()
VALUES = st.sampled_from(
    [
        "1",
        "-1",
        "1e999",
        "nan",
        "true",
        '"x"',
        "[]",
        "{}",
        "[[1], {a = 1}]",
        "1979-05-27T07:32:00Z",
        "07:32:00",
        "9" * 5000,
    ]
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return the good task.toml with lines dropped, swapped, given other values or cut in two."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        change = draw(st.sampled_from(["drop", "value", "key", "insert", "cut"]))
        if change == "drop":
            lines[at] = ""
        elif change == "value" and "=" in lines[at]:
            lines[at] = f"{lines[at].split('=')[0]}= {draw(VALUES)}"
        elif change == "key" and "=" in lines[at]:
            lines[at] = f"{draw(st.text('abc_.é', min_size=1, max_size=5))} = {lines[at].split('=', 1)[1]}"
        elif change == "insert":
            lines[at] += draw(st.text(max_size=8))
        else:
            lines[at] = lines[at][: len(lines[at]) // 2]
    return "\n".join(lines)


@given(st.one_of(damaged(), st.text(max_size=200)))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_but_an_input_error_comes_of_any_text(tmp_path: Path, text: str) -> None:
    if not (tmp_path / "tests").exists():
        write(tmp_path, good_files())
    (tmp_path / "task.toml").write_bytes(text.encode("utf-8", errors="surrogateescape"))
    shown: list[str] = []
    try:
        load_task(tmp_path)
    except InputError as error:
        shown = "\n".join(error.lines()).splitlines()
    assert len(shown) <= 6
