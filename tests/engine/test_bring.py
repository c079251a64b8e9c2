"""A script agent's own files: named in its command, shown in the box at /agent, never anything else of the host."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.agents import get_agent
from harness.errors import InputError
from harness.run.bring import brought
from harness.run.create import Wishes, create_run
from harness.run.launch import work_on
from harness.sandbox import get_sandbox
from harness.task.load import load_task


def test_words_that_name_own_files_are_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("agent.py").write_text("")
    Path("../other.sh").write_text("")
    others = ("agent.py", "./missing", "--x=./agent.py", "/bin/sh")
    command, files = brought(("python3", "./agent.py", "../other.sh", *others))
    assert command == ("python3", "/agent/agent.py", "/agent/other.sh", *others)
    assert [path.name for path in files] == ["agent.py", "other.sh"]


def test_two_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("run.sh").write_text("")
    Path("../run.sh").write_text("")
    with pytest.raises(InputError, match=r"run\.sh"):
        brought(("sh", "./run.sh", "../run.sh"))


@pytest.mark.parametrize("level", ["namespaces", "process"])
def test_an_agent_of_ones_own(
    level: str, tiny_task: Callable[..., Path], namespaces: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.sh").write_text("#!/bin/sh\necho 'value = 12' > value.txt\nrsi-submit -m mine\n")
    Path("agent.sh").chmod(0o755)
    sandbox = get_sandbox("local", level=level)
    command = ("./agent.sh",)
    folder = create_run(
        load_task(tiny_task()), get_agent("script", command), command, sandbox, Wishes(weak=True), lambda line: None
    )
    state = work_on(folder, lambda line: None)
    assert [one.metric for one in state.submissions] == [12.0]
    assert [one.message for one in state.submissions] == ["mine"]
