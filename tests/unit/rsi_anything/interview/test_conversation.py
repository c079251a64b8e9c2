"""A whole interview in a real terminal: typed, interrupted, killed, resumed, and written."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = ROOT / "templates" / "sample"
TITLE = "更好的配方 🧪 שלום"
ANSWERS = {
    "name": "tiny-task",
    "title": TITLE,
    "category": "tabular",
    "question": "Can the same budget reach a lower error? 誤差",
    "recipe": "Eight units, plain descent.",
    "command": 'python3 train.py --seed "$RSI_SEED"',
    "outputs": "model.json",
    "mode": "retrain",
    "kind": "predictions",
    "data file": "friedman.csv",
    "split": "rows",
    "held out": "0.25",
    "label column": "y",
    "measure": "rmse",
    "metric": "rmse",
    "direction": "minimize",
    "lowest": "0",
    "highest": "1e6",
    "editable": "recipe.toml, train.py, model.py",
    "deliver": "recipe.toml, train.py, model.py",
    "left out": "make_data.py",
    "hours": "0.5",
    "submissions": "5",
}
START = """\
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C arrives
from rsi_anything.cli import main
sys.exit(main())
"""
PROMPT = re.compile(r"(?:^|\n)([^\n]*)> $")


class Talk:
    """One `rsi new` in a terminal of its own."""

    def __init__(self, here: Path, *argv: str, term: str = "dumb") -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "new", *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": term, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(slave)
        self.output = ""
        self.seen = 0
        self._bytes = b""

    def prompt(self) -> str:
        """Wait for the next prompt and return it; an empty text when the command has ended."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if not self._read(0.02):
                return ""
            new = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", self.output[self.seen :])
            found = PROMPT.search(new)
            if found and not select.select([self.master], [], [], 0.01)[0]:
                self.seen = len(self.output)
                return found[1].removesuffix("> ")
        raise AssertionError(f"no prompt: {self.output[-800:]}")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        while self._read(0.2):
            pass
        return self.process.wait(10)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self.master)

    def _read(self, wait: float) -> bool:
        if select.select([self.master], [], [], wait)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                return False
            self._bytes += data
            self.output = self._bytes.decode("utf-8", "ignore").replace("\r\n", "\n")
            return bool(data)
        return True


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RSI_HOME", str(tmp_path / "home"))
    shutil.copytree(SAMPLE, tmp_path / "sample", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@contextlib.contextmanager
def talk(here: Path, *argv: str, term: str = "dumb") -> Iterator[Talk]:
    made = Talk(here, *argv, term=term)
    try:
        yield made
    finally:
        made.close()


def answer_until(made: Talk, adapter: Path, stop: str, most: int = 90) -> str:
    """Answer as the person would until a prompt holds these words; return that prompt."""
    for _ in range(most):
        prompt = made.prompt()
        assert prompt, made.output[-2000:]
        if stop in prompt:
            return prompt
        label = prompt.partition(" [")[0]
        if label == "adapter":
            made.type(f":file {adapter}\n")
        else:
            # An empty line takes a draft; where there is none, the person answers.
            made.type(ANSWERS.get(label, "") + "\n")
    raise AssertionError(f"never asked {stop!r}: {made.output[-2000:]}")


def test_typed_interrupted_killed_resumed_and_written(here: Path) -> None:
    project, adapter = str(here.parent / "sample" / "project"), here.parent / "sample" / "rsi_adapter.py"
    with talk(here, project, "--out", "task") as made:
        answer_until(made, adapter, "question")
        made.type("\x03")
        assert made.end() == 130
        assert "to come back: rsi new --resume project" in made.output
        assert "Traceback" not in made.output
    with talk(here, "--continue") as made:
        made.prompt()
        made.type(":goto title\n")
        assert made.prompt().startswith("title")
        made.type(TITLE + "\n")
        with pytest.raises(AssertionError, match="never asked"):
            answer_until(made, adapter, "Write", most=8)
        made.prompt()
        os.kill(made.process.pid, signal.SIGKILL)
        assert made.process.wait(10) == -9
    with talk(here, "--resume", "project") as made:
        answer_until(made, adapter, "Write")
        assert TITLE in made.output
        made.type("d\n")
        assert made.prompt().startswith("Write")
        made.type("y\n")
        assert made.end() == 0, made.output[-2000:]
        assert "next: rsi check task" in made.output
        assert "\x1b" not in made.output
    kept = tomllib.loads((here / "task" / "answers.toml").read_text(encoding="utf-8"))
    assert kept["source"]["title"] == TITLE
    assert kept["question"]["question"] == ANSWERS["question"]
    assert kept["evaluation"]["measure"] == "rmse"
    assert list((here.parent / "home" / "sessions").iterdir()) == []


def test_end_of_input_and_quit_name_the_command_and_keep_the_answer(here: Path) -> None:
    project = str(here.parent / "sample" / "project")
    with talk(here, project, "--name", "abc") as made:
        made.prompt()
        made.type("\x04")
        assert made.end() == 130
        assert "rsi new --resume abc" in made.output
    with talk(here, "--resume", "abc", term="xterm") as made:
        made.prompt()
        made.type(":goto title\n")
        made.prompt()
        made.type(f"x{TITLE}\x01\x04\n")  # line editing: to the start of the line, delete one character
        made.prompt()
        made.type(":quit\n")
        assert made.end() == 130
    with talk(here, "--resume", "abc") as made:
        made.prompt()
        made.type(":review\n")
        made.prompt()
        assert TITLE in made.output


def test_a_pasted_block_is_one_answer(here: Path) -> None:
    project = str(here.parent / "sample" / "project")
    with talk(here, project) as made:
        made.prompt()
        made.type(":goto background\n")
        made.prompt()
        made.type("one\ntwo\nthree\n")
        made.prompt()
        made.type(":quit\n")
        made.end()
    text = (here.parent / "home" / "sessions" / "project" / "session.json").read_text(encoding="utf-8")
    assert '"one\\ntwo\\nthree"' in text
