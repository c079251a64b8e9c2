"""Dockerfiles as instructions with their lines, here-documents included."""

import json
import re
from dataclasses import dataclass

from rsi_anything.checks.lints.shell import Command, commands

_START = re.compile(r"\s*([A-Za-z]+)(?:\s+|$)")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_FLAG = re.compile(r"\s*--[a-z]+(=\S+)?\s")


@dataclass(frozen=True)
class Instruction:
    """One instruction. `text` is all after its name, with line breaks as in the file; `line` is where it starts."""

    name: str
    text: str
    line: int
    body: str = ""
    """Bodies of here-documents, joined."""

    @property
    def words(self) -> list[str]:
        """The arguments as words, in shell form or in JSON form."""
        text = re.sub(r"\\\n", " ", self.text)
        while found := _FLAG.match(f"{text} "):
            text = text[found.end() - 1 :]
        try:
            listed = json.loads(text)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return [str(item) for item in listed]
        return text.split()

    @property
    def flags(self) -> list[str]:
        """Flags such as --from=build."""
        return re.findall(r"--[a-z]+(?:=\S+)?", self.text.split("\n", 1)[0])

    def commands(self) -> list[Command]:
        """Return what a RUN instruction starts."""
        if self.text.lstrip().startswith("["):
            return [Command(self.line, self.words)]
        text = self.text
        while found := re.match(r"\s*--(?:mount|network|security)(=\S+)?\s", text):
            text = " " * found.end() + text[found.end() :]
        # A comment between continued lines belongs to the file, not to the shell.
        lines = [
            " \\" if line.lstrip().startswith("#") and place else line for place, line in enumerate(text.split("\n"))
        ]
        found_commands = commands("\n".join(lines), self.line)
        if self.body:
            found_commands += commands(self.body, self.line + 1)
        return found_commands


def instructions(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile in order."""
    lines = text.replace("\r\n", "\n").split("\n")
    found: list[Instruction] = []
    at = 0
    while at < len(lines):
        start = _START.match(lines[at])
        if start is None or lines[at].lstrip().startswith("#"):
            at += 1
            continue
        first, collected = at, [lines[at][start.end() :]]
        while at + 1 < len(lines) and _continues(lines[at], inside=at > first):
            at += 1
            collected.append(lines[at])
        at += 1
        ends = [each[1] for each in _HEREDOC.findall("\n".join(collected))]
        body: list[str] = []
        for end in ends if start[1].upper() in {"RUN", "COPY", "ADD"} else []:
            while at < len(lines) and lines[at].strip() != end:
                body.append(lines[at])
                at += 1
            at += 1
        found.append(Instruction(start[1].upper(), "\n".join(collected), first + 1, "\n".join(body)))
    return found


def _continues(line: str, *, inside: bool) -> bool:
    stripped = line.rstrip()
    return stripped.endswith("\\") or (inside and (not stripped or stripped.lstrip().startswith("#")))
