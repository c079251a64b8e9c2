"""What a check found: one rule broken at one place, why that matters here and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.task.problems import printable


class Severity(StrEnum):
    """How much a finding weighs; an error alone makes a rung fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One finding. `file` is relative to the task folder, empty where it is about the task as a whole."""

    rule: str
    severity: Severity
    reason: str
    file: str = ""
    line: int | None = None
    fix: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain JSON values; the keys are stable."""
        return {
            "rule": self.rule,
            "severity": self.severity.value,
            "file": self.file or None,
            "line": self.line,
            "reason": self.reason,
            "fix": self.fix,
        }

    def lines(self) -> list[str]:
        """Return the finding for the screen: the place and the reason, then the cure."""
        place = printable(self.file) + (f":{self.line}" if self.line is not None else "")
        first = f"{self.severity.value} {place}: " if place else f"{self.severity.value}: "
        shown = [f"{first}{printable(self.reason, 300)} [{self.rule}]"]
        return [*shown, f"    fix: {printable(self.fix, 300)}"] if self.fix else shown
