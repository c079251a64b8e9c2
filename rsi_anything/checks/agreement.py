"""Whether the texts beside a contract say what it says: hours, submissions, cooldown, direction."""

import re
from collections.abc import Iterator

from harness.task.contract import Contract, Direction
from rsi_anything.checks.finding import Finding
from rsi_anything.checks.rules import raised

_NUMBER = r"(\d+(?:[.,]\d+)?)"
_HOURS = re.compile(
    _NUMBER + r"\s*(?:working |research |agent )?(?:hours|hour|h)\b(?! (?:of )?(?:training|GPU))", re.IGNORECASE
)
_SUBMISSIONS = re.compile(_NUMBER + r"\s+(?:scored |judged )?submissions\b", re.IGNORECASE)
_OPPOSITE = {
    Direction.MINIMIZE: re.compile(r"\bhigher (?:\w+ )?is better\b|\bmaximi[sz]e the metric\b", re.IGNORECASE),
    Direction.MAXIMIZE: re.compile(r"\blower (?:\w+ )?is better\b|\bminimi[sz]e the metric\b", re.IGNORECASE),
}
_TIME_BUDGET = re.compile(r"budget|limit|deadline|at most|up to|you have|research time", re.IGNORECASE)


def disagreements(contract: Contract, texts: dict[str, str]) -> Iterator[Finding]:
    """Yield each line of a text, by file name, that contradicts the contract."""
    budget = contract.budget
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            if _TIME_BUDGET.search(line):
                yield from _number(_HOURS, line, budget.hours, "hours", file, number)
                yield from _number(_SUBMISSIONS, line, budget.submissions, "submissions", file, number)
            wrong = _OPPOSITE[contract.metric.direction].search(line)
            # `score` rises for both directions, so a line about it says nothing of the metric.
            if wrong and contract.metric.name in line and "score" not in line.lower():
                reason = f"says {wrong.group()!r}, yet metric.direction is {contract.metric.direction}"
                yield raised("contract/text-disagrees", reason, file=file, line=number, fix=_FIX)


_FIX = "render the text from the contract again, or correct it"


def _number(pattern: re.Pattern[str], line: str, right: float, what: str, file: str, number: int) -> Iterator[Finding]:
    said = [float(found.replace(",", ".")) for found in pattern.findall(line)]
    if said and all(abs(value - right) > 1e-6 * max(1.0, right) for value in said):
        reason = f"says {said[0]:g} {what}, yet the contract's budget.{what} is {right:g}"
        yield raised("contract/text-disagrees", reason, file=file, line=number, fix=_FIX)
