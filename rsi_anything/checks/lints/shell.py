"""Shell text as simple commands with their lines: enough to see what is installed, fetched and started."""

import re
from dataclasses import dataclass, field

_KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"}
_WRAPPERS = {"sudo", "exec", "env", "command", "nohup", "eval", "builtin", "nice", "ionice"}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")


@dataclass
class Command:
    """One simple command: its words without quotes, and whether its output goes into the next one."""

    line: int
    words: list[str] = field(default_factory=list)
    piped: bool = False

    @property
    def name(self) -> str:
        """Name of the program, without its folder."""
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def arguments(self) -> list[str]:
        """Words after the program's name."""
        return self.words[1:]


def commands(text: str, first_line: int = 1) -> list[Command]:
    """Return the simple commands of a script; the bodies of here-documents are left out."""
    reader = _Reader(_without_heredocs(text), first_line)
    return [command for command in map(_strip, reader.read()) if command.words]


def _without_heredocs(text: str) -> str:
    """Blank the bodies of here-documents, keeping the count of lines."""
    out: list[str] = []
    end = ""
    for line in text.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            out.append("")
            continue
        out.append(line)
        found = _HEREDOC.search(line)
        end = found[2] if found else ""
    return "\n".join(out)


def _strip(command: Command) -> Command:
    """Drop what stands before the program: keywords, wrappers and assignments."""
    words = command.words
    while words and (words[0] in _KEYWORDS | _WRAPPERS or _ASSIGNMENT.match(words[0])):
        wrapper, words = words[0], words[1:]
        while wrapper in {"sudo", "env", "nice"} and words and words[0].startswith("-"):
            words = words[1:]
    return Command(command.line, words, command.piped)


class _Reader:
    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.line = line
        self.at = 0
        self.done: list[Command] = []
        self.now = Command(line)
        self.word = ""
        self.quoted = False

    def read(self) -> list[Command]:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_command()
        return self.done

    def _step(self, char: str) -> None:
        self.at += 1
        if char == "\\":
            self._escape()
        elif char in "'\"":
            self._quote(char)
        elif char == "#" and not self.word and not self.quoted:
            while self.at < len(self.text) and self.text[self.at] != "\n":
                self.at += 1
        elif char in " \t\r":
            self._end_word()
        elif char in "\n;&|()`":
            self._operator(char)
        elif char == "$" and self.text.startswith("(", self.at):
            # What a substitution runs is looked at like any other command.
            self.at += 1
            self._end_command()
        else:
            self.word += char

    def _escape(self) -> None:
        if self.at < len(self.text):
            if self.text[self.at] == "\n":
                self.line += 1
                self._end_word()
            else:
                self.word += self.text[self.at]
            self.at += 1

    def _quote(self, mark: str) -> None:
        self.quoted = True
        while self.at < len(self.text) and self.text[self.at] != mark:
            if self.text[self.at] == "\\" and mark == '"' and self.at + 1 < len(self.text):
                self.at += 1
            self.line += self.text[self.at] == "\n"
            self.word += self.text[self.at]
            self.at += 1
        self.at += 1

    def _operator(self, char: str) -> None:
        before = self.text[self.at - 2] if self.at > 1 else ""
        after = self.text[self.at] if self.at < len(self.text) else ""
        if char == "&" and (before in "<>" or after == ">"):
            # `2>&1` and `&>` are redirections of one command.
            self.word += char
            return
        doubled = char == after and char in "&|;"
        self.at += doubled
        self._end_command(piped=char == "|" and not doubled)
        self.line += char == "\n"

    def _end_word(self) -> None:
        if self.word or self.quoted:
            if not self.now.words:
                self.now.line = self.line
            self.now.words.append(self.word)
        self.word, self.quoted = "", False

    def _end_command(self, *, piped: bool = False) -> None:
        self._end_word()
        self.now.piped = piped
        if self.now.words:
            self.done.append(self.now)
        self.now = Command(self.line)
