"""What is wrong with a task folder: found all at once, shown in few lines, each with its place and its cure."""

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.errors import InputError

SHOWN = 4
"""Problems shown on screen; with a line that counts the rest and the next step this stays within six lines."""


def printable(text: str, limit: int = 120) -> str:
    """Return the text on one line, with control characters spelled out and its middle cut where it is too long."""
    shown = "".join(_visible(char) for char in text)
    if len(shown) <= limit:
        return shown
    half = (limit - 3) // 2
    return f"{shown[:half]}...{shown[-half:]}"


def _visible(char: str) -> str:
    # Letters of any language pass; controls, invisible marks and half surrogates could fake or break a terminal line.
    if char == " " or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}:
        return char
    return char.encode("unicode_escape").decode("ascii")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like a mistyped one, or None where none is near."""
    found = difflib.get_close_matches(word.lower(), sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


class Kind(StrEnum):
    """What sort of problem it is."""

    SYNTAX = "syntax"
    UNKNOWN_KEY = "unknown-key"
    MISSING_KEY = "missing-key"
    WRONG_VALUE = "wrong-value"
    CONTRADICTION = "contradiction"
    FILE = "file"
    """A file that is missing, unreadable or too large."""
    LINK = "link"
    """A link that leaves the folder, or something that is no file at all."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `file` is relative to the task folder; `fix` says what to do, where that is known."""

    file: str
    reason: str
    line: int | None = None
    key: str = ""
    fix: str = ""
    kind: Kind = Kind.FILE

    @property
    def place(self) -> str:
        """File, line and key, as far as they are known."""
        line = "" if self.line is None else f":{self.line}"
        return printable(f"{self.file}{line}") + (f" {printable(self.key)}" if self.key else "")

    def text(self) -> str:
        """Return the problem on one line."""
        return f"{self.place}: {printable(self.reason, 240)}" + (f" ({printable(self.fix)})" if self.fix else "")


class TaskError(InputError):
    """A task folder or a contract cannot be used; `problems` holds everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem], *, where: str = "") -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        if len(self.problems) == 1:
            place = f"{where}/{first.place}" if where else first.place
            super().__init__(printable(first.reason, 240), where=place, next_step=first.fix or _NEXT)
            return
        shown = SHOWN if len(self.problems) <= SHOWN else SHOWN - 1
        lines = [f"{len(self.problems)} problems in {where or 'the contract'}"]
        lines += [f"  {problem.text()}" for problem in self.problems[:shown]]
        rest = len(self.problems) - shown
        # The folder is in the first line already, and a `where` line would be the seventh.
        next_step = f"{_NEXT}; {rest} more are not shown" if rest > 0 else _NEXT
        super().__init__("\n".join(lines), next_step=next_step)


_NEXT = "correct this and run `rsi check` on the folder"
