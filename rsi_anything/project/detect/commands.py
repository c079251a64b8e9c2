"""Collects the commands that a project tells people to run: in its README, scripts, makefiles and docstrings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from rsi_anything.project.detect.code import Code
from rsi_anything.project.detect.scan import Scan, SourceFile
from rsi_anything.project.evidence import Evidence

_LONGEST = 2000
_START = re.compile(
    r"(?:\$ +|> +|% +)?(?P<command>(?:[A-Z_][A-Z0-9_]*=[^\s;]*[ \t]+)*"
    r"(?:time +|nohup +|uv run +|poetry run +|pipenv run +|srun +(?:-\S+ +)*)?"
    r"(?:python[0-9.]*|torchrun|accelerate +launch|deepspeed|ipython|bash|sh|make|mpirun|horovodrun"
    r"|mlflow +run|dvc +repro|\./[\w./-]+\.(?:sh|py))(?: +[^\n]*)?)$"
)
_FENCE = re.compile(r"^[ \t]*(?P<fence>```+|~~~+)[ \t]*(?P<language>[\w+-]*)")
_INLINE = re.compile(r"`(?P<command>(?:python[0-9.]*|torchrun|bash|make|\./)[^`\n]{3,300})`")
_INSTALL = re.compile(r"(?m)^[ \t]*(?:[$>] +)?(?P<command>(?:python[0-9.]* +-m +)?pip[0-9.]* +install +[^\n`]{2,500})$")
_TALK = re.compile(r"[.!?]$|<[a-z_ ]+>|\.\.\.|\[[A-Za-z_ ]+\]|…")


@dataclass(frozen=True)
class Command:
    """A command as it stands in the project, joined to one line; `where` says what kind of text it is in."""

    text: str
    where: str
    evidence: Evidence
    about: str
    """Words near it: the heading or the sentence before, in lower case."""

    def words(self) -> list[str]:
        """Return the words a shell would see; an unbalanced quote makes it a plain split."""
        try:
            return shlex.split(self.text, comments=True)
        except ValueError:
            return self.text.split()


def commands_in(found: Scan, codes: list[Code]) -> list[Command]:
    """Return all commands in the order of the files."""
    commands = [command for file in found.files("prose") for command in _of_prose(file)]
    for file in found.files("shell", "make"):
        where = "script" if file.kind == "shell" else "makefile"
        commands += _of_lines(file, 1, file.lines(), where, file.path)
    for code in codes:
        lines = code.docstring.split("\n") if code.docstring else []
        commands += _of_lines(code.file, 1, lines, "docstring", code.file.path)
    return commands


def _of_prose(file: SourceFile) -> Iterator[Command]:
    about = ""
    fence = ""
    block: list[str] = []
    first = 0
    for number, line in enumerate(file.lines(), start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark["fence"].startswith(fence):
                yield from _of_lines(file, first, block, "prose", about)
                fence, block = "", []
            else:
                block.append(line)
        elif mark:
            fence, first = mark["fence"], number + 1
        elif line.startswith(("    ", "\t")) or re.match(r"^[ \t]*[$] ", line):
            yield from _of_lines(file, number, [line], "prose", about)
        elif line.strip():
            about = line.strip().lower()[:200]
            for match in _INLINE.finditer(line):
                yield from _of_lines(file, number, [match["command"]], "inline", about)


def _of_lines(file: SourceFile, first: int, lines: list[str], where: str, about: str) -> Iterator[Command]:
    joined = ""
    begin = first
    for number, raw in enumerate(lines, start=first):
        line = raw.strip()
        begin = begin if joined else number
        if line.endswith("\\") and len(joined) < _LONGEST:
            joined += line[:-1].strip() + " "
            continue
        joined += line
        whole, joined = joined, ""
        match = _START.match(whole.removeprefix("@").removeprefix(">>> "))
        if match is None or len(whole) > _LONGEST or (where == "docstring" and _TALK.search(whole)):
            continue
        text = re.sub(r"[ \t]+#.*$", "", match["command"]).strip()
        text = re.sub(r"(?:[ \t]*(?:&|\d?>+ *\S+|\| *tee\b.*))+$", "", text)
        yield Command(text, where, file.evidence(begin, f"`{text[:120]}`", number), about)


def installs_in(found: Scan) -> list[Command]:
    """Return the `pip install` commands of the documentation and the scripts."""
    commands = []
    for file in found.files("prose", "shell"):
        for match in _INSTALL.finditer(file.text):
            number = file.line_at(match.start("command"))
            evidence = file.evidence(number, f"`{match['command'][:120]}`")
            commands.append(Command(match["command"].strip(), file.kind, evidence, ""))
    return commands
