"""The second rung: what can be seen in the files of a task without building or running anything."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.errors import InputError
from harness.task.load import load_task
from rsi_anything.checks.finding import Finding
from rsi_anything.checks.ladder import Context, Outcome
from rsi_anything.checks.lints.judge import judge
from rsi_anything.checks.lints.leaks import leaks
from rsi_anything.checks.lints.material import Material
from rsi_anything.checks.lints.pins import pins
from rsi_anything.checks.lints.secrets import secrets
from rsi_anything.checks.lints.shape import line_ends, shape
from rsi_anything.checks.lints.words import forgotten, instruction
from rsi_anything.checks.rules import raised

LINTS: tuple[Callable[[Material], Iterator[Finding]], ...] = (
    shape,
    line_ends,
    pins,
    secrets,
    leaks,
    forgotten,
    instruction,
    judge,
)
MOST_ALIKE = 25
"""Findings of one rule that are listed; a folder of a thousand bad names is one fact."""


def climb(folder: Path, _context: Context) -> Outcome:
    """Return what the lints find; a task that cannot be read is linted as far as its files go."""
    findings: list[Finding] = []
    material = Material(folder)
    try:
        task = load_task(folder)
        material = Material(folder, task.config, task.contract)
    except InputError as error:
        reason = (
            f"the task cannot be read ({error.what.splitlines()[0]}), so rules that need its contract were left out"
        )
        findings.append(raised("lint/contract-unread", reason, file="task.toml", fix="see the contract rung"))
    for lint in LINTS:
        findings += lint(material)
    measured = {"files": len(material.files), "bytes": sum(entry.size for entry in material.files)}
    return Outcome(list(_short(findings)), measured)


def _short(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Pass the first findings of each rule, and one that counts the rest."""
    counts: dict[str, list[Finding]] = {}
    for finding in findings:
        alike = counts.setdefault(finding.rule, [])
        alike.append(finding)
        if len(alike) <= MOST_ALIKE:
            yield finding
    for rule, alike in counts.items():
        if len(alike) > MOST_ALIKE:
            yield raised(rule, f"{len(alike) - MOST_ALIKE} more of this kind", severity=alike[-1].severity)
