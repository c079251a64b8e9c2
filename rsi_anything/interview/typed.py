"""What a person types and sees, and the values it stands for: the two directions undo each other."""

import re
import tomllib
from collections.abc import Callable, Sequence

from harness.errors import InputError
from harness.report.text import printable
from rsi_anything.contract.answers import toml_value
from rsi_anything.contract.fields import Field, Kind, Value

YES = frozenset({"y", "yes", "true", "on"})
NO = frozenset({"n", "no", "false", "off"})

_COMMA = re.compile(r",(?![^\[\]]*\])")
"""A comma that is not within square brackets, such as those of a package's extras."""


def parse(field: Field, text: str, options: Sequence[str] = ()) -> Value:
    """Return the value that a typed text stands for; raises InputError where it cannot stand for one."""
    return _PARSERS[field.kind](field, text, options)


def show(field: Field, value: Value) -> str:
    """Return a value as a person would type it; no value is an empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list() if field.kind is Kind.TABLES:
            return "\n".join(_bare_table(item) for item in value if isinstance(item, dict))
        case list():
            items = [str(item) for item in value]
            plain = ", ".join(items)
            return plain if items and _items(plain) == items else toml_value(value)
        case _:
            return str(value)


def brief(field: Field, value: Value, width: int = 72) -> str:
    """Return a value on one printable line of at most `width` characters; no value is a dash."""
    if value == []:
        return "none"
    text = show(field, value)
    if not text.strip():
        return "-"
    first, _, rest = text.strip().partition("\n")
    line = printable(first.strip())
    more = f" ... ({rest.count(chr(10)) + 2} lines)" if rest else ""
    return line + more if len(line) + len(more) <= width else line[: max(width - len(more) - 3, 1)] + "..." + more


def _choice(text: str, options: Sequence[str]) -> str:
    """Return the option meant by its name, the beginning of its name, or its number."""
    if text in options or not text:
        return text
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(options):
        return options[int(text) - 1]
    beginning = [option for option in options if option.startswith(text.lower())]
    return beginning[0] if len(beginning) == 1 else text


def _number(field: Field, text: str) -> int | float:
    compact = text.strip().replace("_", "").replace(" ", "")
    try:
        return int(compact) if field.kind is Kind.INTEGER else float(compact)
    except ValueError as error:
        what = "a whole number" if field.kind is Kind.INTEGER else "a number"
        raise InputError(f"{text[:40]!r} is not {what}", next_step=f"such as {field.example}") from error


def _number_or_word(text: str) -> int | float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _flag(text: str) -> bool:
    if text not in YES | NO:
        raise InputError(f"{text[:40]!r} is neither yes nor no", next_step="type yes or no")
    return text in YES


def _items(text: str) -> list[str]:
    """Return the items of a typed list: a TOML array, one item a line, or items between commas."""
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        try:
            value = tomllib.loads(f"x = {stripped}")["x"]
        except tomllib.TOMLDecodeError:
            value = None
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
    parts = stripped.split("\n") if "\n" in stripped else _COMMA.split(stripped)
    return [part.strip() for part in parts if part.strip()]


def _bare_table(table: dict[str, Value]) -> str:
    return toml_value(table).removeprefix("{ ").removesuffix(" }")


def _tables(field: Field, text: str) -> list[Value]:
    tables: list[Value] = []
    for line in text.split("\n"):
        body = line.strip().rstrip(",")
        if not body or body in {"[", "]", "[]"}:
            continue
        body = body if body.startswith("{") else f"{{ {body} }}"
        try:
            tables.append(tomllib.loads(f"x = {body}")["x"])
        except tomllib.TOMLDecodeError as error:
            reason = str(error).partition(" (at")[0]
            raise InputError(
                f"{line.strip()[:60]!r} is not understood: {reason}",
                next_step=f"one a line, such as  {show(field, field.example).partition(chr(10))[0]}",
            ) from error
    return tables


_PARSERS: dict[Kind, Callable[[Field, str, Sequence[str]], Value]] = {
    Kind.TEXT: lambda _field, text, _options: text.strip(),
    Kind.LONG: lambda _field, text, _options: text.strip("\n"),
    Kind.CODE: lambda _field, text, _options: text.rstrip("\n") + "\n",
    Kind.CHOICE: lambda _field, text, options: _choice(text.strip(), options),
    Kind.CHOICES: lambda _field, text, options: [_choice(item, options) for item in _items(text)],
    Kind.INTEGER: lambda field, text, _options: _number(field, text),
    Kind.NUMBER: lambda field, text, _options: _number(field, text),
    Kind.NUMBER_OR_WORD: lambda _field, text, _options: _number_or_word(text.strip()),
    Kind.FLAG: lambda _field, text, _options: _flag(text.strip().lower()),
    Kind.LIST: lambda _field, text, _options: list(_items(text)),
    Kind.TABLES: lambda field, text, _options: _tables(field, text),
}
