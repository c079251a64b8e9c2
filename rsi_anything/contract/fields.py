"""The catalogue of fields: every leaf of the task specification, declared once, validated by the specification."""

import difflib
import math
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from rsi_anything.contract.catalogue import judging, limits, recipe
from rsi_anything.contract.catalogue.base import ROUNDS, Condition, Field, Group, Kind, Value, Values
from rsi_anything.contract.spec import TaskSpec

__all__ = [
    "BY_ID",
    "CATALOGUE",
    "GROUPS",
    "ROUNDS",
    "Condition",
    "Field",
    "Group",
    "Kind",
    "Value",
    "Values",
    "active",
    "default_of",
    "dependents",
    "leaves",
    "nearest",
    "needs_answer",
    "problem_of",
    "unlisted",
]

CATALOGUE: tuple[Field, ...] = recipe.FIELDS + judging.FIELDS + limits.FIELDS
GROUPS: tuple[Group, ...] = recipe.GROUPS + judging.GROUPS + limits.GROUPS
BY_ID: dict[str, Field] = {field.id: field for field in CATALOGUE}

SHOWN = 30
"""Most options that a message lists."""
MAX_TEXT = 1_000_000
"""Most characters of one answer; a longer one is no answer but a file."""


def leaves(model: type[BaseModel] = TaskSpec, prefix: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    """Yield the dotted path of every leaf, with the model and attribute that hold it; lists of tables are leaves."""
    for name, info in model.model_fields.items():
        inner = _table_of(info.annotation)
        if inner is None:
            yield f"{prefix}{name}", model, name
        else:
            yield from leaves(inner, f"{prefix}{name}.")


def _table_of(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return None if getattr(annotation, "__origin__", None) is tuple else candidate
    return None


@cache
def _holders() -> dict[str, tuple[type[BaseModel], str]]:
    return {path: (model, name) for path, model, name in leaves()}


def default_of(field: Field) -> Value:
    """Return the specification's default as plain data; None where it has none."""
    model, name = _holders()[field.id]
    info = model.model_fields[name]
    if info.is_required():
        return None
    value: Value = to_jsonable_python(info.get_default(call_default_factory=True))
    return value


def needs_answer(field: Field, values: Values) -> bool:
    """Say whether the field cannot be left out, given the values of the earlier fields."""
    if field.needed is not None:
        return all(condition.holds(values) for condition in field.needed)
    model, name = _holders()[field.id]
    return model.model_fields[name].is_required()


def active(values: Values) -> list[Field]:
    """Return the fields that apply, in order; the value of a field that does not apply has no say."""
    known: dict[str, Value] = {}
    applying = []
    for field in CATALOGUE:
        if field.applies(known):
            applying.append(field)
            if values.get(field.id) is not None:
                known[field.id] = values[field.id]
    return applying


def dependents(field_id: str) -> list[Field]:
    """Return the fields that have to be looked at again when this one changes."""
    return [field for field in CATALOGUE if field_id in field.depends_on]


def nearest(name: str, known: list[str] | None = None) -> str | None:
    """Return the known field id that a wrong one most likely means."""
    names = list(BY_ID) if known is None else known
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if found:
        return found[0]
    last = name.rpartition(".")[2]
    tails = {candidate.rpartition(".")[2]: candidate for candidate in reversed(names)}
    found = difflib.get_close_matches(last, list(tails), n=1, cutoff=0.6)
    return tails[found[0]] if found else None


def problem_of(field: Field, value: Value, values: Values) -> str | None:
    """Return what is wrong with a value for a field, beside the values of the others; None where it is right."""
    if value is None:
        return "needs an answer" if needs_answer(field, values) else None
    return (
        _kind_problem(field, value)
        or _option_problem(field, value, values)
        or _spec_problem(field, value)
        or (field.check(value, values) if field.check else None)
    )


def _kind_problem(field: Field, value: Value) -> str | None:
    match field.kind:
        case Kind.TEXT | Kind.CHOICE | Kind.LONG | Kind.CODE:
            wrong = not isinstance(value, str)
        case Kind.INTEGER:
            wrong = not isinstance(value, int) or isinstance(value, bool)
        case Kind.NUMBER:
            wrong = not isinstance(value, int | float) or isinstance(value, bool)
        case Kind.NUMBER_OR_WORD:
            wrong = not isinstance(value, int | float | str) or isinstance(value, bool)
        case Kind.FLAG:
            wrong = not isinstance(value, bool)
        case Kind.LIST | Kind.CHOICES:
            wrong = not isinstance(value, list) or not all(isinstance(item, str) for item in value)
        case Kind.TABLES:
            wrong = not isinstance(value, list) or not all(isinstance(item, dict) for item in value)
    if wrong:
        return f"wants {_article(field.kind)}, got {describe(value)}"
    return _number_problem(value) or _text_problem(field, value)


def _number_problem(value: Value) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and abs(value) > 2**53:
        return "is too large a number"
    return None


def _text_problem(field: Field, value: Value) -> str | None:
    for text in _texts(value):
        if len(text) > MAX_TEXT:
            return f"is longer than {MAX_TEXT:,} characters"
        if any(unicodedata.category(sign) == "Cs" for sign in text):
            return "is not valid UTF-8 text"
        # An edit may put several lines in the place of a value.
        allowed = "\n\t\r\f" if field.kind in {Kind.LONG, Kind.CODE, Kind.TABLES} else "\t"
        if any(unicodedata.category(sign) == "Cc" and sign not in allowed for sign in text):
            return "must be one line of text" if "\n" in text else "holds a control character"
    blank = isinstance(value, str) and not value.strip()
    if blank and field.kind in {Kind.TEXT, Kind.LONG, Kind.CODE} and default_of(field) != "":
        return "must not be empty"
    return None


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)


def _option_problem(field: Field, value: Value, values: Values) -> str | None:
    if field.options is None:
        return None
    return unlisted(value, field.options(values))


def unlisted(value: Value, options: Sequence[str]) -> str | None:
    """Return what is wrong with a text, or texts, that must be among the options."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item not in options:
            close = difflib.get_close_matches(item, options, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            more = f" and {len(options) - SHOWN} more" if len(options) > SHOWN else ""
            return f"{item!r} is none of {', '.join(options[:SHOWN])}{more}{hint}"
    return None


def _spec_problem(field: Field, value: Value) -> str | None:
    """Let the specification's own table validate the field; problems of its other fields are not this one's."""
    model, name = _holders()[field.id]
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        for item in error.errors():
            if item["loc"][:1] == (name,):
                return spec_message(item)
    return None


def spec_message(item: Any) -> str:
    """Return one pydantic error as a sentence, with the place inside the field where there is one."""
    words = _plain_words(item)
    inner = [str(part + 1) if isinstance(part, int) else str(part) for part in item["loc"][1:]]
    inner = [part for part in inner if part not in {"float", "literal['unscored']"}]
    return f"{' '.join(inner)}: {words}" if inner else words


_WORDS = {
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "string_too_short": "must not be empty",
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "finite_number": "must be a finite number",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
}
"""The words for what pydantic finds wrong, by its own name for it."""


def _plain_words(item: Any) -> str:
    """Return what is wrong in words for a person; what pydantic says where it has no name here."""
    words = _WORDS.get(str(item["type"]))
    return words.format(**item.get("ctx", {})) if words else str(item["msg"]).removeprefix("Value error, ")


def describe(value: Value) -> str:
    """Return the kind of a value in words, for a message."""
    match value:
        case bool():
            return "yes or no (true or false)"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list" if all(isinstance(item, str) for item in value) else "a list of other things"
        case _:
            return "a table" if isinstance(value, dict) else "nothing"


def _article(kind: Kind) -> str:
    words = {
        Kind.TEXT: "a text",
        Kind.LONG: "a text",
        Kind.CODE: "the text of a program",
        Kind.CHOICE: "one of the options",
        Kind.CHOICES: "a list of options",
        Kind.INTEGER: "a whole number",
        Kind.NUMBER: "a number",
        Kind.NUMBER_OR_WORD: "a number or a word",
        Kind.FLAG: "yes or no (true or false)",
        Kind.LIST: "a list of texts",
        Kind.TABLES: "a list of tables",
    }
    return words[kind]
