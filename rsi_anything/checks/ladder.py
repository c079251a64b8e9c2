"""The ladder of checks: cheap rungs first, and none above one that failed.

A rung is a module of this package with a function `climb(folder, context) -> Outcome`. It is found by its name when it
is climbed, so that a rung without its module is reported as not available in this version, never as passed.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.task.problems import nearest
from rsi_anything.checks.finding import Finding, Severity

Progress = Callable[[str], None]
"""Is told one line of what goes on."""


def _silent(_line: str) -> None:
    """Let progress pass unseen."""


class Status(StrEnum):
    """How a rung ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not asked for."""
    NOT_REACHED = "not-reached"
    """A rung below it failed."""
    NOT_AVAILABLE = "not-available"
    """This version cannot climb it."""


@dataclass(frozen=True)
class Rung:
    """One rung. `module` is a module of this package with a function `climb`."""

    name: str
    title: str
    module: str


RUNGS = (
    Rung("contract", "the contract and the files can be read and make sense", "contract_rung"),
    Rung("lint", "pins, secrets, leaks, forgotten words, an instruction that says all", "lint"),
    Rung("build", "the image builds and its validator changes nothing", "build"),
    Rung("baseline", "the author's solution scores, again and again", "baseline"),
    Rung("floor", "the start state and a candidate that knows nothing score as they should", "floor"),
    Rung("attacks", "the judge survives the attack suite", "attacks"),
    Rung("headroom", "a short search finds room, and budgets fit what was measured", "headroom"),
)
"""From the cheapest to the dearest; the order is part of the promise."""


@dataclass
class Outcome:
    """What climbing one rung gave."""

    findings: list[Finding] = field(default_factory=list)
    measurements: dict[str, Any] = field(default_factory=dict)
    """Plain JSON values."""


@dataclass
class Context:
    """What the rungs of one climb share."""

    progress: Progress = _silent
    options: dict[str, Any] = field(default_factory=dict)
    """What the person asked for, such as the sandbox or the number of repeats; each rung names its own."""
    found: dict[str, Any] = field(default_factory=dict)
    """What a rung leaves for those above it, such as the built image; empty where it was skipped."""


@dataclass(frozen=True)
class RungReport:
    """How one rung ended; `seconds` is None where it was not climbed."""

    name: str
    title: str
    status: Status
    reason: str = ""
    seconds: float | None = None
    findings: tuple[Finding, ...] = ()
    measurements: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the rung as plain JSON values; the keys are stable."""
        return {
            "name": self.name,
            "status": self.status.value,
            "reason": self.reason,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "findings": [finding.as_json() for finding in self.findings],
            "measurements": self.measurements,
        }


@dataclass(frozen=True)
class Report:
    """How the whole climb ended."""

    folder: Path
    rungs: tuple[RungReport, ...]

    @property
    def ok(self) -> bool:
        """Whether something was checked and none of it failed; what is not available does not count as checked."""
        statuses = [rung.status for rung in self.rungs]
        return Status.FAILED not in statuses and Status.PASSED in statuses

    @property
    def complete(self) -> bool:
        """Whether every rung there is was climbed and passed."""
        return all(rung.status is Status.PASSED for rung in self.rungs)

    @property
    def findings(self) -> list[Finding]:
        """All findings, from the lowest rung up."""
        return [finding for rung in self.rungs for finding in rung.findings]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values; the keys are stable."""
        counts = {each.value: sum(1 for f in self.findings if f.severity is each) for each in Severity}
        return {
            "task": str(self.folder),
            "ok": self.ok,
            "complete": self.complete,
            "counts": counts,
            "rungs": [rung.as_json() for rung in self.rungs],
        }


def check(folder: Path, only: str | None = None, context: Context | None = None) -> Report:
    """Climb the ladder, or the one rung that is asked for, and report; what is broken in the task is never raised.

    InputError is raised where there is no such folder or rung, PrerequisiteError where the machine lacks something.
    """
    names = [rung.name for rung in RUNGS]
    if only is not None and only not in names:
        near = nearest(only, names)
        hint = f"did you mean {near}?" if near else f"rungs: {', '.join(names)}"
        raise InputError(f"there is no rung {only!r}", where="--only", next_step=hint)
    if not folder.is_dir():
        raise InputError(f"there is no task folder {folder}", next_step="name a folder with a task.toml")
    context = context or Context()
    reports: list[RungReport] = []
    failed = ""
    for rung in RUNGS:
        if only is not None and rung.name != only:
            reports.append(RungReport(rung.name, rung.title, Status.SKIPPED, f"only {only} was asked for"))
        elif failed:
            reports.append(RungReport(rung.name, rung.title, Status.NOT_REACHED, f"{failed} failed"))
        else:
            reports.append(_climb(rung, folder, context))
            failed = rung.name if reports[-1].status is Status.FAILED else ""
    return Report(folder, tuple(reports))


def _climb(rung: Rung, folder: Path, context: Context) -> RungReport:
    name = f"{__package__}.{rung.module}"
    if importlib.util.find_spec(name) is None:
        return RungReport(rung.name, rung.title, Status.NOT_AVAILABLE, "not available in this version")
    context.progress(f"{rung.name}: {rung.title}")
    started = time.monotonic()
    # Imported when it is climbed: the upper rungs bring a whole harness with them.
    outcome: Outcome = importlib.import_module(name).climb(folder, context)
    seconds = time.monotonic() - started
    status = Status.FAILED if any(f.severity is Severity.ERROR for f in outcome.findings) else Status.PASSED
    findings = tuple(sorted(outcome.findings, key=_weight))
    return RungReport(rung.name, rung.title, status, "", seconds, findings, outcome.measurements)


def _weight(finding: Finding) -> tuple[int, str, int, str]:
    return (list(Severity).index(finding.severity), finding.file, finding.line or 0, finding.rule)
