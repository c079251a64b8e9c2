"""Finds the values of a recipe in JSON, TOML, YAML and INI files."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from rsi_anything.project.detect.findings import Knob, Scalar
from rsi_anything.project.detect.knob_roles import never_a_knob, order_of, role_of
from rsi_anything.project.detect.knobs import Candidate, make_knob, number
from rsi_anything.project.detect.scan import SourceFile
from rsi_anything.project.detect.spans import literal, pattern_for

_LARGEST = 256 * 1024
_MOST = 400
_DEEPEST = 12
_TOOLS = re.compile(
    r"(^|/)(package(-lock)?|tsconfig|composer|\.\w+rc|\.eslintrc|\.pre-commit-config|mkdocs|\.readthedocs|codecov|\.?coverage"
    r"|tox|pytest|mypy|renovate|dependabot|pyrightconfig|manifest|vocab|tokenizer(_config)?|special_tokens_map|angular"
    r")\.?\w*\Z|(^|/)\.github/|(^|/)\.circleci/|(^|/)\.vscode/|lock\.json\Z",
    re.IGNORECASE,
)
_YAML = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_][\w.-]*|'[^'\n]+'|\"[^\"\n]+\"):(?P<rest>[ \t]+[^\n]*)?$")
_INI = re.compile(r"^(?P<key>[A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*(?P<value>[^\n]*)$")
_SECTION = re.compile(r"^\[(?P<name>[^\]\n]+)\][ \t]*$")
_SCALAR = re.compile(
    r"(?P<value>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|true|false|True|False)(?=[ \t]*(?:[#;]|\r?$))"
)


def knobs_in_config(file: SourceFile) -> list[Candidate]:
    """Return the knobs of a settings file; JSON and TOML are addressed by key, the others by pattern."""
    if not (file.whole and file.exact) or file.size > _LARGEST or _TOOLS.search(file.path):
        return []
    suffix = PurePosixPath(file.path).suffix.lower()
    if suffix in {".json", ".toml"}:
        found = [(name, value, partial(_keyed, file, name, value)) for name, value in _entries(file, suffix)]
    else:
        lines = _yaml(file) if suffix in {".yaml", ".yml"} else _ini(file)
        found = [(name, value, partial(_lined, file, name, value, (start, end))) for name, value, start, end in lines]
    worth = [item for item in found if _worth(item[0], item[1])]
    return [
        Candidate(file.path, order_of(role_of(name)), 0.85 if role_of(name) else 0.3, make)
        for name, _, make in worth[:_MOST]
    ]


def _entries(file: SourceFile, suffix: str) -> list[tuple[str, Scalar]]:
    try:
        data = json.loads(file.text) if suffix == ".json" else tomllib.loads(file.text)
    except (ValueError, RecursionError):
        return []
    return list(_leaves(data))


def _keyed(file: SourceFile, key: str, value: Scalar) -> Knob | None:
    last = literal(key.rpartition(".")[2])
    place = re.search(rf"""(?m)(?:["']|^[ \t]*){last}["']?[ \t]*[:=]""", file.text)
    return _settings_knob(file, key, value, place.start() if place else 0, key=key)


def _lined(file: SourceFile, name: str, value: Scalar, span: tuple[int, int]) -> Knob | None:
    if isinstance(value, bool) or number(file.text[slice(*span)]) != value:
        return None
    pattern = pattern_for(file, span, value, (rf"^[ \t]*{literal(name.rpartition('.')[2])}[ \t]*[:=][ \t]*",))
    knob = _settings_knob(file, name, value, span[0], key=None)
    return replace(knob, pattern=pattern) if knob and pattern else None


def _leaves(data: Any) -> Iterator[tuple[str, Scalar]]:
    stack: list[tuple[tuple[str, ...], Any]] = [((), data)]
    while stack:
        way, value = stack.pop()
        if isinstance(value, dict) and len(way) < _DEEPEST:
            # A key with a dot cannot be addressed by a dotted key, so what is below it is no knob.
            stack += [((*way, name), inner) for name, inner in value.items() if "." not in name and name][::-1]
        elif isinstance(value, list) and len(way) < _DEEPEST and len(value) <= 16:
            stack += [((*way, str(index)), inner) for index, inner in enumerate(value) if isinstance(inner, dict)][::-1]
        elif isinstance(value, int | float) and way:
            yield ".".join(way), value


def _worth(key: str, value: Scalar) -> bool:
    if never_a_knob(key):
        return False
    return role_of(key) is not None or isinstance(value, float)


def _settings_knob(file: SourceFile, name: str, value: Scalar, offset: int, *, key: str | None) -> Knob | None:
    role = role_of(name)
    whence = f"{name} is an entry of a settings file" + (f" and reads as {role.name}" if role else "")
    return make_knob(file, name, value, offset, whence=whence, confidence=0.85 if role else 0.3, key=key)


def _yaml(file: SourceFile) -> Iterator[tuple[str, Scalar, int, int]]:
    """Yield the plain `key: value` lines of block mappings with their dotted keys; lists and flows are passed by."""
    above: list[tuple[int, str]] = []
    for start, line in zip(file.starts, file.lines(), strict=True):
        match = _YAML.match(line)
        if match is None:
            if line.strip().startswith("- "):
                above = [item for item in above if item[0] < len(line) - len(line.lstrip())]
            continue
        indent, key = len(match["indent"]), match["key"].strip("'\"")
        above = [item for item in above if item[0] < indent]
        rest = match["rest"] or ""
        value = _SCALAR.match(rest.strip() and rest, len(rest) - len(rest.lstrip())) if rest.strip() else None
        if value is not None:
            begin = start + match.start("rest") + value.start()
            name = ".".join([*(item[1] for item in above), key])
            yield name, _value(value["value"]), begin, begin + len(value["value"])
        elif not rest.strip() or rest.lstrip().startswith(("#", "&")):
            above.append((indent, key))


def _ini(file: SourceFile) -> Iterator[tuple[str, Scalar, int, int]]:
    section = ""
    for start, line in zip(file.starts, file.lines(), strict=True):
        if head := _SECTION.match(line):
            section = head["name"].strip()
        elif match := _INI.match(line.rstrip("\r")):
            value = _SCALAR.match(match["value"])
            if value is not None:
                begin = start + match.start("value")
                name = f"{section}.{match['key']}" if section and "." not in section else match["key"]
                yield name, _value(value["value"]), begin, begin + len(value["value"])


def _value(text: str) -> Scalar:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    found = number(text)
    return text if found is None else found
