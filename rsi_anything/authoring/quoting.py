"""Puts a person's text into other languages so that it stays text: Markdown, shell, TOML and JSON."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from rsi_anything.contract.answers import toml_key, toml_value

_RUN = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`|<])")


def inline(text: object) -> str:
    """Return text for a sentence or a table's cell: on one line, and opening nothing."""
    return _SPECIAL.sub(r"\\\1", _one_line(text))


def heading(text: object) -> str:
    """Return a title; Harbor drops a leading `#` line that holds the word canary, so such a title is underlined."""
    line = inline(text)
    return f"{line}\n{'=' * max(3, len(line))}" if "canary" in line.lower() else f"# {line}"


def code(text: object) -> str:
    """Return text as a code span; a table's cell separator within it is escaped, as tables demand."""
    line = _one_line(text).replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in _RUN.findall(line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def fence(text: object, language: str = "") -> str:
    """Return text as a fenced block that nothing in it can close."""
    body = str(text).rstrip("\n")
    ticks = "`" * max(3, max((len(run) for run in _RUN.findall(body)), default=0) + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def quoted(text: object) -> str:
    """Return text as a block quote, which holds whatever a person's Markdown opens."""
    return "\n".join(f"> {line}".rstrip() for line in str(text).strip().splitlines())


def globs(patterns: tuple[str, ...]) -> str:
    """Return globs as code spans in one line."""
    return ", ".join(code(pattern) for pattern in patterns) or "none"


def number(value: float) -> str:
    """Return a number as people write it: no `.0`, no digits beyond what was answered."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def table(value: BaseModel) -> str:
    """Return the keys of one TOML table, without those that are None and without tables of its own."""
    data = value.model_dump(mode="json", exclude_none=True)
    return "\n".join(f"{toml_key(key)} = {toml_value(each)}" for key, each in data.items() if not _nested(each))


def _nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))


def json_text(value: Mapping[str, Any]) -> str:
    """Return strict JSON, with every character as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)


def toml(value: object) -> str:
    """Return one TOML value."""
    return toml_value(str(value) if isinstance(value, StrEnum) else value)  # type: ignore[arg-type]


def sh(text: object) -> str:
    """Return text as one word of a POSIX shell."""
    return shlex.quote(str(text))


def _one_line(text: object) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())


FILTERS: dict[str, Callable[..., str]] = {
    "inline": inline,
    "heading": heading,
    "code": code,
    "fence": fence,
    "quoted": quoted,
    "globs": globs,
    "number": number,
    "table": table,
    "json": json_text,
    "toml": toml,
    "sh": sh,
}
