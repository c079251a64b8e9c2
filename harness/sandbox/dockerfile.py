"""Reads a Dockerfile into instructions for the local sandboxes; what they cannot do is an InputError at its line."""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError

_LAYERED = ("COPY", "ADD", "RUN", "WORKDIR")
_SETTING = ("FROM", "ARG", "ENV", "USER", "SHELL")
_IGNORED = ("EXPOSE", "LABEL", "MAINTAINER", "CMD", "ENTRYPOINT", "STOPSIGNAL", "HEALTHCHECK")
KNOWN = frozenset((*_LAYERED, *_SETTING, *_IGNORED))
_REASONS = {
    "VOLUME": "a box keeps all that is written in its own layer, so volumes have no meaning",
    "ONBUILD": "no image is built from this one",
}
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Instruction:
    """One instruction; `line` counts from 1."""

    name: str
    value: str
    line: int
    file: Path

    @property
    def where(self) -> str:
        """Return file and line as a person reads them."""
        return f"{self.file}:{self.line}"

    def refuse(self, what: str) -> InputError:
        """Return the error that this instruction cannot be carried out."""
        return InputError(
            f"{self.name}: {what}", where=self.where, next_step="change the Dockerfile, or use the docker sandbox"
        )

    def flags(self) -> tuple[dict[str, str], str]:
        """Return leading `--name=value` flags and the rest."""
        found: dict[str, str] = {}
        rest = self.value.strip()
        while match := re.match(r"--([a-z-]+)(?:=(\S*))?\s+", rest):
            found[match[1]] = match[2] or ""
            rest = rest[match.end() :]
        return found, rest

    def array(self, text: str) -> list[str] | None:
        """Return the text as a JSON array of words, or None where it is none."""
        if not text.lstrip().startswith("["):
            return None
        try:
            value = json.loads(text)
        except ValueError:
            return None
        return value if isinstance(value, list) and all(isinstance(word, str) for word in value) else None


def read(file: Path) -> list[Instruction]:
    """Return the instructions of a Dockerfile; one stage alone, nothing that cannot be carried out locally."""
    found = outline(file)
    _check_directives(file.read_text("utf-8"), file)
    _check(found, file)
    return found


def outline(file: Path) -> list[Instruction]:
    """Return the instructions of a Dockerfile, whatever they are; only an engine can carry all of them out."""
    try:
        raw = file.read_bytes()
        text = raw[:_MAX_BYTES].decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(
            "the task has no Dockerfile", where=str(file), next_step="add environment/Dockerfile"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the Dockerfile cannot be read: {error}", where=str(file)) from error
    if len(raw) > _MAX_BYTES:
        raise InputError("the Dockerfile is larger than 1 MiB", where=str(file))
    return [
        Instruction(part["instruction"].upper(), part["value"], part["startline"] + 1, file)
        for part in _structure(text)
        if part["instruction"] != "COMMENT"
    ]


def _structure(text: str) -> list[dict[str, Any]]:
    from dockerfile_parse import DockerfileParser  # here, as only a build needs it

    return list(DockerfileParser(fileobj=io.BytesIO(text.encode("utf-8"))).structure)


def _check_directives(text: str, file: Path) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"#\s*([a-z]+)\s*=\s*(\S+)", line)
        if match is None:
            return
        if match[1] == "escape" and match[2] != "\\":
            raise InputError("another escape character is not supported", where=f"{file}:{number}")


def _check(found: list[Instruction], file: Path) -> None:
    stages = 0
    for one in found:
        if one.name in {"RUN", "COPY", "ADD"} and re.search(r"<<[-~]?['\"]?[A-Za-z_]", one.value):
            raise one.refuse("here-documents are not supported")
        if one.name not in KNOWN:
            raise one.refuse(_REASONS.get(one.name, "this instruction is not known"))
        stages += one.name == "FROM"
        if stages > 1:
            raise one.refuse("only one stage is supported")
        if not stages and one.name != "ARG":
            raise one.refuse("FROM must come first")
    if not stages:
        raise InputError("the Dockerfile has no FROM", where=str(file))


# --- words and variables ---------------------------------------------------------------------------------------------

_VARIABLE = re.compile(
    r"\$(?:(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<named>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<how>[-+])(?P<other>[^}]*))?\})"
)
_PIECE = re.compile(
    r"""(?P<space>\s+)|'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<escaped>\\.)|(?P<bare>[^\s'"\\]+)|(?P<odd>.)""",
    re.DOTALL,
)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with $NAME, ${NAME}, ${NAME:-other} and ${NAME:+other} replaced; an unknown name is empty."""

    def value(match: re.Match[str]) -> str:
        found = variables.get(match["plain"] or match["named"], "")
        if match["how"] == "-":
            return found or expand(match["other"], variables)
        if match["how"] == "+":
            return expand(match["other"], variables) if found else ""
        return found

    return _VARIABLE.sub(value, text)


def words(text: str, variables: Mapping[str, str]) -> list[str]:
    """Split as Docker does: quotes join, single quotes and a backslash keep a dollar as it is."""
    found: list[str] = []
    current: str | None = None
    for match in _PIECE.finditer(text):
        if match["space"] is not None:
            if current is not None:
                found.append(current)
            current = None
            continue
        if match["single"] is not None:
            piece = match["single"]
        elif match["double"] is not None:
            kept = re.split(r"\\([\"\\$])", match["double"])
            piece = "".join(part if odd % 2 else expand(part, variables) for odd, part in enumerate(kept))
        elif match["escaped"] is not None:
            piece = match["escaped"][1:]
        else:
            piece = expand(match["bare"] or match["odd"], variables)
        current = (current or "") + piece
    return found if current is None else [*found, current]


def assignments(instruction: Instruction, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what an ENV sets, in both of its forms."""
    first = instruction.value.split(None, 1)
    if first and "=" not in first[0]:
        if len(first) < 2:
            raise instruction.refuse(f"{first[0]} is given no value")
        return {first[0]: " ".join(words(first[1], variables))}
    found = {}
    for word in words(instruction.value, variables):
        name, equals, value = word.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise instruction.refuse(f"{word!r} is no NAME=value")
        found[name] = value
    return found
