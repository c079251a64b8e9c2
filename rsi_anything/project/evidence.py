"""Evidence: a place in the project at its commit, and the fact that it supports."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsi_anything.project.checkout import Project

_MOST = 8 * 1024 * 1024


@dataclass(frozen=True, order=True)
class Evidence:
    """Lines of a file, counted from 1 and both included; a whole file has 0 and 0."""

    path: str
    line_from: int
    line_to: int
    fact: str

    def __str__(self) -> str:
        """Return path, lines and fact as one line."""
        lines = "" if not self.line_from else f":{self.line_from}"
        if self.line_to > self.line_from:
            lines += f"-{self.line_to}"
        return f"{self.path}{lines} {self.fact}"

    def as_json(self) -> dict[str, str | int]:
        """Return plain data with stable keys."""
        return {"path": self.path, "line_from": self.line_from, "line_to": self.line_to, "fact": self.fact}


def verify(project: "Project", evidence: Evidence) -> bool:
    """Say whether the path exists at the project's commit and has these lines."""
    if not project.has(evidence.path):
        return False
    if evidence.line_from == 0 and evidence.line_to == 0:
        return True
    if not 1 <= evidence.line_from <= evidence.line_to:
        return False
    content = project.read(evidence.path, _MOST)
    lines = content.count(b"\n") + (1 if content and not content.endswith(b"\n") else 0)
    return evidence.line_to <= lines
