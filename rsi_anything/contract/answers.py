"""Answers files: the task specification as TOML, written the same way every time, read with the line of each key.

A long text may be given as a file beside the answers: `adapter_file = "rsi_adapter.py"` instead of `adapter = "..."`.
"""

import math
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import InputError
from rsi_anything.contract.fields import BY_ID, Field, Kind, Value, leaves, nearest
from rsi_anything.contract.spec import TaskSpec
from rsi_anything.contract.tomllines import key_lines

MAX_BYTES = 4_000_000
"""Largest answers file, and largest file named by one."""

LONG_KINDS = frozenset({Kind.LONG, Kind.CODE})
"""Kinds whose value may lie in a file of its own."""

BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True)
class AnswersProblem:
    """Something wrong with an answers file, at a line where one is known."""

    field: str
    message: str
    line: int | None = None


@dataclass
class Answers:
    """What an answers file says, by field id, and what is wrong with it."""

    path: Path
    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[AnswersProblem] = field(default_factory=list)

    def nested(self) -> dict[str, Any]:
        """Return the values as nested tables."""
        tables: dict[str, Any] = {}
        for name, value in self.values.items():
            *path, last = name.split(".")
            table = tables
            for part in path:
                table = table.setdefault(part, {})
            table[last] = value
        return tables


def load_answers(path: Path) -> Answers:
    """Read an answers file. Unknown keys and unusable files become problems; what is no TOML is an InputError."""
    text = read_text(path, "answers file")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"the answers file is not valid TOML: {error}", where=str(path), next_step="mend the line that is named"
        ) from error
    lines = key_lines(text)
    answers = Answers(path)
    for name, value in _walk(data, ""):
        _take(answers, name, value, _line(lines, name))
    return answers


def dump_answers(spec: TaskSpec) -> str:
    """Return the specification as an answers file; the same specification gives the same bytes."""
    data = spec.model_dump(mode="json", exclude_none=True)
    out = [
        "# Answers of the interview. The same answers and project make the same task:",
        "#   rsi new PROJECT --answers THIS_FILE --out DIR",
        f"version = {data.pop('version')}",
    ]
    for name, table in data.items():
        out += _table_lines(name, table)
    return "\n".join(out) + "\n"


def toml_value(value: Value) -> str:
    """Return one value in TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            assert math.isfinite(value), value
            return repr(value)
        case str():
            return f'"{_escaped(value)}"'
        case list():
            return f"[{', '.join(toml_value(item) for item in value)}]"
        case dict():
            return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    raise AssertionError(f"TOML has no value for {value!r}")


def toml_key(key: str) -> str:
    """Return a key in TOML, quoted where it has to be."""
    return key if BARE.match(key) else f'"{_escaped(key)}"'


def read_text(path: Path, what: str) -> str:
    """Return a UTF-8 text file of bounded size; raises InputError, naming it `what`, where it is none."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"the {what} is not a regular file", where=str(path), next_step="give a file")
        if status.st_size > MAX_BYTES:
            raise InputError(f"the {what} is larger than {MAX_BYTES:,} bytes", where=str(path), next_step="shorten it")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        near = nearest(path.name, _names(path.parent))
        step = f"did you mean {path.parent / near}?" if near else "check the path"
        raise InputError(f"there is no such {what}", where=str(path), next_step=step) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"the {what} is not UTF-8 text (byte {error.start})", where=str(path), next_step="save it as UTF-8"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the {what} cannot be read: {reason}", where=str(path), next_step="check the path") from error


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _walk(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values; descends only where the specification has a table."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        inner = any(known.startswith(name + ".") for known in BY_ID)
        if isinstance(value, dict) and inner:
            yield from _walk(value, name + ".")
        else:
            yield name, value


def _take(answers: Answers, name: str, value: Any, line: int | None) -> None:
    if name == "version":
        if value != 1 or isinstance(value, bool):
            answers.problems.append(AnswersProblem(name, f"version {value!r} is unknown; this program reads 1", line))
        return
    if name in BY_ID:
        _put(answers, name, value, line)
        return
    long = BY_ID.get(name.removesuffix("_file")) if name.endswith("_file") else None
    if long is not None and long.kind in LONG_KINDS:
        _take_file(answers, long, value, line)
        return
    answers.problems.append(AnswersProblem(name, _unknown(name), line))


def _put(answers: Answers, name: str, value: Any, line: int | None) -> None:
    if name in answers.values:
        answers.problems.append(AnswersProblem(name, "is given twice, as a text and as a file", line))
    answers.values[name] = value
    if line is not None:
        answers.lines[name] = line


def _take_file(answers: Answers, item: Field, value: Any, line: int | None) -> None:
    if not isinstance(value, str) or not value:
        answers.problems.append(AnswersProblem(f"{item.id}_file", "wants the path of a file", line))
        return
    try:
        text = read_text(answers.path.parent / value, "file")
    except InputError as error:
        answers.problems.append(AnswersProblem(f"{item.id}_file", f"{error.what}: {error.where}", line))
        # The field was answered, if wrongly: it is not missing as well.
        answers.values.setdefault(item.id, None)
        return
    _put(answers, item.id, text.removeprefix("\ufeff").replace("\r\n", "\n"), line)


def _unknown(name: str) -> str:
    if any(known.startswith(name + ".") for known in BY_ID):
        return "must be a table"
    files = [f"{item.id}_file" for item in BY_ID.values() if item.kind in LONG_KINDS]
    near = nearest(name, [*BY_ID, *files])
    return f"is unknown; did you mean {near}?" if near else "is unknown"


def _line(lines: dict[str, int], name: str) -> int | None:
    """Return the line of a key, or of the nearest table around it."""
    while name:
        if name in lines:
            return lines[name]
        name = name.rpartition(".")[0]
    return None


def _table_lines(name: str, table: dict[str, Any]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict) and not _is_tables(value)}
    out = ["", f"[{name}]"]
    out += [line for key, value in plain.items() for line in _key_lines(key, value)]
    for key, value in table.items():
        if _is_tables(value):
            for entry in value:
                out += ["", f"[[{name}.{key}]]"]
                out += [line for inner, item in entry.items() for line in _key_lines(inner, item)]
    for key, value in table.items():
        if isinstance(value, dict):
            out += _table_lines(f"{name}.{key}", value)
    return out


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _key_lines(key: str, value: Value) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        return [f"{toml_key(key)} = {_block(value)}"]
    line = f"{toml_key(key)} = {toml_value(value)}"
    if isinstance(value, list) and len(line) > 110:
        return [f"{toml_key(key)} = [", *(f"  {toml_value(item)}," for item in value), "]"]
    return [line]


def _block(text: str) -> str:
    """Return a text of several lines as it reads, where TOML allows; otherwise with escapes."""
    odd = any((ord(sign) < 32 and sign not in "\n\t") or ord(sign) == 127 for sign in text)
    if not odd and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    lines = [_escaped(line) for line in text.split("\n")]
    return '"""\n' + "\n".join(lines) + '"""'


def _escaped(text: str) -> str:
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(
        short.get(sign) or (sign if ord(sign) >= 32 and ord(sign) != 127 else f"\\u{ord(sign):04x}") for sign in text
    )


def known_keys() -> list[str]:
    """Return every key an answers file may hold, in order, the `_file` forms included."""
    keys = ["version"]
    for name, _, _ in leaves():
        if name in BY_ID:
            keys.append(name)
            if BY_ID[name].kind in LONG_KINDS:
                keys.append(f"{name}_file")
    return keys
