"""From pydantic's errors to problems a person can act on: the key as written, its line, the nearest known key."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.task.positions import KeyPath, Positions
from harness.task.problems import Kind, Problem, nearest

_NUMBERS = {"float_type", "int_type", "float_parsing", "int_parsing", "bool_type"}
_KINDS = {"extra_forbidden": Kind.UNKNOWN_KEY, "missing": Kind.MISSING_KEY}


def explain(
    error: ValidationError,
    *,
    model: type[BaseModel],
    data: object,
    file: str,
    positions: Positions,
    prefix: KeyPath = (),
) -> list[Problem]:
    """Return one problem for each wrong key, in the order of the file."""
    reasons: dict[KeyPath, list[str]] = {}
    fixes: dict[KeyPath, str] = {}
    kinds: dict[KeyPath, Kind] = {}
    given: dict[KeyPath, str] = {}
    for detail in error.errors(include_url=False):
        path = _path(detail, data)
        reason, fix = _reason(detail, path, model)
        if reason not in reasons.setdefault(path, []):
            reasons[path].append(reason)
        fixes[path] = fixes.get(path) or fix
        given[path] = _given(detail)
        kinds[path] = _KINDS.get(detail["type"], Kind.WRONG_VALUE)
    problems = [
        Problem(
            file=file,
            line=positions.line((*prefix, *path)),
            key=dotted((*prefix, *path)),
            reason=", or ".join(found) + given[path],
            fix=fixes[path],
            kind=kinds[path],
        )
        for path, found in reasons.items()
    ]
    return sorted(problems, key=lambda problem: problem.line or 0)


def dotted(path: KeyPath) -> str:
    """Return a key path as people write it: a.b[0].c."""
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else f"{'.' if out else ''}{part}"
    return out


def _path(detail: ErrorDetails, data: object) -> KeyPath:
    """Return the error's location without pydantic's own marks for unions and models, which no file contains."""
    here: Any = data
    path: KeyPath = ()
    for place, part in enumerate(detail["loc"]):
        of_table = isinstance(here, Mapping) and part in here
        if of_table or (isinstance(here, list) and isinstance(part, int) and part < len(here)):
            here = here[part]
        elif detail["type"] != "missing" or place < len(detail["loc"]) - 1:
            continue
        path = (*path, part)
    return path


def _reason(detail: ErrorDetails, path: KeyPath, model: type[BaseModel]) -> tuple[str, str]:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return "unknown key", _near_key(path, model)
    if kind == "missing":
        return "is missing", "add it"
    message = detail["msg"].removeprefix("Value error, ")
    message = message.replace("Input should be", "must be").replace("a valid ", "a ")
    near = None
    if kind in {"enum", "literal_error"} and isinstance(detail["input"], str):
        near = nearest(detail["input"], re.findall(r"'([^']*)'", detail["msg"]))
    fix = "write it without quotes" if kind in _NUMBERS and isinstance(detail["input"], str) else "correct the value"
    return message[:1].lower() + message[1:], f"did you mean {near}?" if near else fix


def _given(detail: ErrorDetails) -> str:
    """Return what was written, where the reason does not hold it already."""
    value = detail["input"]
    if detail["type"] in {"value_error", "extra_forbidden"} or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, bool):
        return f", is {str(value).lower()}"
    return f", is {value!r}" if isinstance(value, str) or abs(value) < 1e18 else ", is out of reach"


def _near_key(path: KeyPath, model: type[BaseModel]) -> str:
    """Name the key that was meant: the same key where it belongs, else one like it in the same table."""
    key = str(path[-1])
    here = _table(model, path[:-1])
    homes = sorted({dotted((*home, key)) for home, table in _tables(model) if key in table.model_fields})
    if homes:
        return f"did you mean {' or '.join(homes[:3])}?"
    near = nearest(key, here.model_fields) if here else None
    if near:
        return f"did you mean {near}?"
    known = sorted(here.model_fields) if here else []
    return f"known keys: {', '.join(known)}" if known else "remove it"


def _inner(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the tables an annotation can hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _inner(argument)


def _table(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    here: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int) or here is None:
            continue
        field = here.model_fields.get(part)
        here = next(_inner(field.annotation), None) if field else None
    return here


def _tables(model: type[BaseModel], path: KeyPath = ()) -> Iterator[tuple[KeyPath, type[BaseModel]]]:
    """Yield every table of a model with its path; a table within itself is not entered again."""
    yield path, model
    for name, field in model.model_fields.items():
        for table in _inner(field.annotation):
            if len(path) < 4:
                yield from _tables(table, (*path, name))
