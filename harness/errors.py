"""Every error a person can meet, and the one table of exit codes.

    RsiError                 failed, exit 1
    ├── InputError           wrong usage, file, contract or answer, exit 2
    ├── PrerequisiteError    something the machine lacks, exit 3
    ├── RefusedError         refused for safety, exit 4
    └── Interrupted          stopped by the person, exit 130

An error answers three questions: what happened, where, and what to do next.
Anything else that reaches the top is a bug of ours and keeps its traceback, in a log file.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means; the documentation prints this table."""

    DONE = 0
    FAILED = 1
    WRONG_INPUT = 2
    MISSING_PREREQUISITE = 3
    REFUSED = 4
    INTERRUPTED = 130


class RsiError(Exception):
    """Something failed; the message is for a person, the next step is a thing to do."""

    exit_code = ExitCode.FAILED

    def __init__(self, what: str, *, where: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next_step = next_step

    def lines(self) -> list[str]:
        """Return the message as at most three lines: what, where, next."""
        shown = [f"error: {self.what}"]
        if self.where:
            shown.append(f"where: {self.where}")
        if self.next_step:
            shown.append(f"next:  {self.next_step}")
        return shown


class InputError(RsiError):
    """The command line, a file, a contract or an answer is wrong."""

    exit_code = ExitCode.WRONG_INPUT


class PrerequisiteError(RsiError):
    """The machine lacks something that the command needs."""

    exit_code = ExitCode.MISSING_PREREQUISITE


class RefusedError(RsiError):
    """The request was understood and refused for safety."""

    exit_code = ExitCode.REFUSED


class Interrupted(RsiError):
    """The person stopped the command; what was accepted is on disk."""

    exit_code = ExitCode.INTERRUPTED
