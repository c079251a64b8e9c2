"""Words: nothing forgotten in what people read, and an instruction that says all an agent needs."""

import re
from collections.abc import Iterator

from harness.task.contract import Contract, Direction
from harness.task.load import strip_canary
from harness.task.problems import printable
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.lints.material import Material
from rsi_anything.checks.rules import raised

READ = ("task.toml", "instruction.md", "README.md", "tests/test.sh", "solution/solve.sh")
_MARKER = re.compile(
    r"\b(?:TODO|FIXME|TBD|CHANGE[-_ ]?ME|REPLACE[-_ ]?ME)\b|(?<![\w-])XXX(?![\w-])|\blorem ipsum\b"
    r"|<(?:your|my|insert|add|fill|placeholder|describe|todo)\b[^<>\n]{0,60}>"
    r"|\[(?:insert|placeholder|fill in)\b[^\]\n]{0,60}\]",
    re.IGNORECASE,
)
_SHOUTED = re.compile(r"TODO|FIXME|TBD|XXX")
_TEMPLATE = re.compile(r"\{\{-?\s*[A-Za-z_][\w.]*\s*(?:\|[^{}]*)?-?\}\}|\{%-?\s*\w+[^%\n]*%\}|\{#-?\s[^#\n]*#\}")
_DIRECTION = {
    Direction.MINIMIZE: re.compile(r"(?i)\b(?:lower|minimi|small|reduc|decreas|short|fast)"),
    Direction.MAXIMIZE: re.compile(r"(?i)\b(?:high|maximi|larg|great|rais|increas|fast)"),
}


def forgotten(material: Material) -> Iterator[Finding]:
    """Yield markers that an author left for later, and template marks that nothing filled."""
    weight = Severity.ERROR if material.contract is not None else Severity.WARNING
    for file in READ:
        for number, line in enumerate((material.text(file) or "").splitlines(), start=1):
            found = next((each for each in _MARKER.finditer(line) if _meant(each.group())), None)
            if found:
                reason = f"{printable(found.group(), 60)!r} was left for later"
                yield raised("lint/forgotten-marker", reason, file=file, line=number, fix="do it, or take it out")
            unfilled = _TEMPLATE.search(line)
            if unfilled:
                reason = f"the template mark {printable(unfilled.group(), 60)} was never filled"
                fix = "render the file again, or write the value"
                yield raised("lint/unfilled-template", reason, file=file, line=number, fix=fix, severity=weight)


def _meant(marker: str) -> bool:
    """Say whether a word is a marker: TODO and its like are shouted, as words they belong to a language."""
    return _SHOUTED.fullmatch(marker) is not None or marker.upper() not in {"TODO", "FIXME", "TBD", "XXX"}


def instruction(material: Material) -> Iterator[Finding]:
    """Yield what the instruction of a task with a contract keeps from the agent."""
    contract = material.contract
    text = strip_canary(material.text("instruction.md") or "")
    if contract is None or not text.strip():
        return
    for rule, said, what, fix in _needs(contract, text):
        if not said:
            yield raised(rule, f"says nothing of {what}", file="instruction.md", fix=fix)


def _needs(contract: Contract, text: str) -> Iterator[tuple[str, bool, str, str]]:
    metric, boundary, budget = contract.metric, contract.boundary, contract.budget
    yield "lint/instruction-metric", metric.name in text, f"the metric {metric.name}", "name it as in the contract"
    way = "lower is better" if metric.direction is Direction.MINIMIZE else "higher is better"
    said = _DIRECTION[metric.direction].search(text) is not None
    yield "lint/instruction-direction", said, "the direction of the metric", f"say that {way}"
    for name, rule in (("editable", "editable"), ("frozen", "frozen"), ("deliver", "deliver")):
        missing = [glob for glob in getattr(boundary, name) if not _mentioned(glob, text)]
        what = f"{', '.join(printable(glob, 40) for glob in missing[:4])} ({name})"
        yield f"lint/instruction-{rule}", not missing, what, f"name what boundary.{name} names"
    submit = "rsi-submit" in text
    yield "lint/instruction-submit", submit, "how to submit", "say that `rsi-submit` hands in"
    hours = re.search(rf"(?<![\d.]){re.escape(f'{budget.hours:g}')}(?:\.0)?(?![\d]|\.\d)", text) is not None
    yield "lint/instruction-budget", hours, f"the {budget.hours:g} hours of the budget", "state them"
    count = re.search(rf"(?<![\d.]){budget.submissions}(?![\d.]\d)", text) is not None
    yield "lint/instruction-budget", count, f"the {budget.submissions} submissions of the budget", "state them"


def _mentioned(glob: str, text: str) -> bool:
    """Say whether a glob, or the folder or suffix it stands for, is in the text."""
    fixed = [part for part in re.split(r"\*+", glob) if part.strip("/.")]
    return glob in text or not fixed or all(part.strip("/") in text for part in fixed)
