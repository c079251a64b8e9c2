"""The judge's script: how it starts, and whether it believes what a candidate prints."""

import re
from collections.abc import Iterator
from itertools import pairwise

from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.lints.material import Material
from rsi_anything.checks.lints.shell import Command, commands
from rsi_anything.checks.rules import raised

SCRIPT = "tests/test.sh"
_STRICT = re.compile(r"^\s*set\s+(?:-[a-z]*e|-o\s+errexit)|^#!.*\s-[a-z]*e", re.MULTILINE)
_PYTHON = re.compile(r"python[0-9.]*\Z")
_READERS = {"grep", "egrep", "awk", "sed", "tail", "head", "cut", "tr", "jq", "perl"}
_STATUS = re.compile(r"\$\?|PIPESTATUS")
_REWARD = re.compile(r"reward\.(?:txt|json)")
_PARSED = re.compile(
    r"(?:re\.(?:search|match|findall|fullmatch)|float|json\.loads)\([^)\n]*\b(?:stdout|stderr|output|log_text)\b"
)
_ISOLATING = re.compile(r"-[a-zA-Z]*I")


def judge(material: Material) -> Iterator[Finding]:
    """Yield what makes the judge's start or its score unreliable."""
    text = material.text(SCRIPT)
    if text is not None:
        yield from _start(material, text)
        found = commands(text)
        yield from _isolated(material, found)
        yield from _parses(text, found)
    for entry in material.below("tests"):
        if entry.path.endswith(".py") and material.contract is not None:
            for number, line in enumerate((material.text(entry.path) or "").splitlines(), start=1):
                if _PARSED.search(line) and not line.lstrip().startswith("#"):
                    reason = "a number seems to be read from what a process printed, which a candidate can print too"
                    yield raised("lint/judge-parses-output", reason, file=entry.path, line=number, fix=_COMPUTE)


_COMPUTE = "let the evaluator compute the score from data it holds itself"


def _start(material: Material, text: str) -> Iterator[Finding]:
    if not text.startswith("#!"):
        reason = "does not start with '#!' and an interpreter; the script is run directly"
        yield raised("lint/test-shebang", reason, file=SCRIPT, line=1, fix="start it with #!/bin/sh")
    if not _STRICT.search(text):
        reason = "goes on after a command that failed"
        # Harbor tasks often collect a test runner's status on purpose.
        weight = Severity.WARNING if material.contract is not None else Severity.NOTE
        yield raised("lint/test-strict", reason, file=SCRIPT, line=1, fix="add `set -eu`", severity=weight)


def _isolated(material: Material, found: list[Command]) -> Iterator[Finding]:
    if material.contract is None:
        return
    for command in found:
        options = [word for word in command.arguments if word.startswith("-")]
        apart = any(_ISOLATING.match(option) for option in options) or {"-E", "-s", "-P"} <= set(options)
        if _PYTHON.match(command.name) and not apart:
            reason = "starts Python with the candidate's folder, user packages and environment in its path"
            fix = "start it with -I (and -S where the judge needs no packages)"
            yield raised("lint/test-isolated", reason, file=SCRIPT, line=command.line, fix=fix)


def _parses(text: str, found: list[Command]) -> Iterator[Finding]:
    lines = text.splitlines()
    writes = any(_REWARD.search(line) for line in lines)
    for number, line in enumerate(lines, start=1):
        if writes and _STATUS.search(line) and not line.lstrip().startswith("#"):
            reason = "the score hangs on an exit status, which candidate code in the same process can set"
            yield raised("lint/judge-parses-output", reason, file=SCRIPT, line=number, fix=_COMPUTE)
            return
    for before, after in pairwise(found):
        if before.piped and after.name in _READERS and _PYTHON.match(before.name):
            reason = f"{after.name} reads the score from what {before.name} printed, which a candidate can print too"
            yield raised("lint/judge-parses-output", reason, file=SCRIPT, line=after.line, fix=_COMPUTE)
