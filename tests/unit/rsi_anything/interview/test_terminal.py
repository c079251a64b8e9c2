"""The terminal itself: editors that edit, do nothing or fail, and input that is no terminal."""

import io
import stat
import sys
from pathlib import Path

import pytest

from harness.errors import InputError, PrerequisiteError
from rsi_anything.interview.terminal import Terminal


def editor(folder: Path, body: str) -> str:
    path = folder / "an editor"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"'{path}'"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    made = Terminal()
    made.interactive = True
    return made


@pytest.mark.parametrize(
    ("body", "after"),
    [('printf "é\\n" >> "$1"', "text é\n"), ("true", None), ('echo x >> "$1"; exit 3', None)],
)
def test_editors(body: str, after: str | None, terminal, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RSI_EDITOR", editor(tmp_path, body))
    assert terminal.edit("text ", ".txt") == after


def test_editor_that_is_missing_or_writes_no_text(terminal, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RSI_EDITOR", "no-such-editor-here")
    with pytest.raises(PrerequisiteError, match="cannot be started"):
        terminal.edit("", ".txt")
    monkeypatch.setenv("RSI_EDITOR", editor(tmp_path, 'printf "\\377" > "$1"'))
    with pytest.raises(InputError, match="UTF-8"):
        terminal.edit("", ".txt")


def test_pipe_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("一\nb\r\nc\n.\n"))
    terminal = Terminal()
    assert terminal.ask("> ") == "一"
    assert terminal.ask_lines("| ") == "b\nc"
    with pytest.raises(EOFError):
        terminal.ask("> ")
    assert capsys.readouterr().out == ""
    with pytest.raises(InputError, match="needs a terminal"):
        terminal.edit("", ".txt")
