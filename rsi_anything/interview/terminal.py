"""A plain terminal: one prompt, one answer, no cursor moves; what is pasted arrives as one text."""

import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.errors import InputError, PrerequisiteError
from harness.report.text import printable

LONGEST_LINE = 4095
"""Bytes of a line that a terminal passes on when nothing edits it; it drops the rest without a word."""
PASTE_GAP_SEC = 0.03
"""Lines that arrive within this time of each other were pasted, not typed."""


class Terminal:
    """Talks on stderr and listens on stdin; stdout stays free for data."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._editing = self.interactive and sys.stdout.isatty() and _line_editing()
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")

    def say(self, text: str = "") -> None:
        """Write lines for the person; control characters of others do no harm."""
        sys.stderr.write(printable(text, keep="\n\t") + "\n")
        sys.stderr.flush()

    def ask(self, prompt: str) -> str:
        """Return what is typed; several lines where they were pasted together. Raises EOFError at the end of input."""
        lines = [self._line(prompt)]
        while self.interactive and select.select([sys.stdin], [], [], PASTE_GAP_SEC)[0]:
            try:
                lines.append(self._line(""))
            except EOFError:
                break
        return "\n".join(lines)

    def ask_lines(self, prompt: str) -> str:
        """Return the lines up to one that holds a single dot; the end of input before it raises EOFError."""
        lines: list[str] = []
        while True:
            # A pasted text may hold the dot itself, with more behind it that nobody should lose.
            for line in self.ask(prompt).split("\n"):
                if line.strip() == ".":
                    return "\n".join(lines)
                lines.append(line)

    def edit(self, text: str, suffix: str) -> str | None:
        """Return the text as the person's editor left it; None where it was left unchanged or the editor failed."""
        if not self.interactive:
            raise InputError("an editor needs a terminal", next_step="type the text, or give it with :file PATH")
        command = [*shlex.split(_editor())]
        handle, name = tempfile.mkstemp(prefix="rsi-answer-", suffix=suffix)
        path = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            done = subprocess.run([*command, name], check=False)
            after = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError("the editor left a text that is not UTF-8", next_step="save it as UTF-8") from error
        except OSError as error:
            raise PrerequisiteError(
                f"the editor {command[0]!r} cannot be started: {error.strerror}", next_step="set EDITOR to one that can"
            ) from error
        finally:
            path.unlink(missing_ok=True)
        return None if done.returncode or after == text else after

    def _line(self, prompt: str) -> str:
        if self._editing:
            return input(printable(prompt))
        sys.stderr.write(printable(prompt))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        if not self.interactive:
            self.say(line.rstrip("\r\n"))  # nobody's keys made it appear
        elif len(line.encode("utf-8", "surrogateescape")) >= LONGEST_LINE:
            raise InputError("the terminal cut this line short", next_step="give it with :edit or :file PATH")
        return line.removesuffix("\n").removesuffix("\r")


def _line_editing() -> bool:
    """Load line editing where Python has it and the terminal can do it."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        import readline  # noqa: F401 - loading it changes how input() reads, which is wanted here alone
    except ImportError:
        return False
    return True


def _editor() -> str:
    for name in ("RSI_EDITOR", "VISUAL", "EDITOR"):
        if os.environ.get(name, "").strip():
            return os.environ[name]
    for program in ("nano", "vi"):
        if shutil.which(program):
            return program
    raise PrerequisiteError("no editor is known", next_step="set EDITOR, or give the text with :file PATH")
