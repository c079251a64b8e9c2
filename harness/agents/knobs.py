"""Reading and writing the values of a contract's knobs in the files of a workspace."""

import json
import re
from decimal import Decimal
from typing import Any

from harness.agents.base import Workspace
from harness.errors import InputError
from harness.task.contract import Knob

Values = dict[str, Any]


def knob_names(knobs: tuple[Knob, ...]) -> list[str]:
    """Return a name for each knob that a person can read in a message: its file, and its key or the pattern's word."""
    labels = [f"{knob.file}:{knob.key or _word(knob.pattern or '')}" for knob in knobs]
    return [label if labels.count(label) == 1 else f"{label}#{index}" for index, label in enumerate(labels)]


def _word(pattern: str) -> str:
    bare = re.sub(r"\\.|\[[^]]*\]|\(\?(?:[aiLmsux-]*[:)]|<?[=!]|P<\w+>)", " ", pattern)
    words = re.findall(r"[A-Za-z][A-Za-z0-9_-]+", bare)
    return max(words, key=len, default="value")


def read_values(work: Workspace, knobs: tuple[Knob, ...]) -> Values:
    """Return the present value of each knob, by knob name."""
    return {name: get_value(_text(work, knob), knob) for name, knob in zip(knob_names(knobs), knobs, strict=True)}


def write_values(work: Workspace, knobs: tuple[Knob, ...], values: Values) -> None:
    """Set each knob to its value; files without a change are not written."""
    texts: dict[str, str] = {}
    before: dict[str, str] = {}
    for name, knob in zip(knob_names(knobs), knobs, strict=True):
        if name not in values:
            continue
        if knob.file not in texts:
            texts[knob.file] = before[knob.file] = _text(work, knob)
        texts[knob.file] = set_value(texts[knob.file], knob, values[name])
    for file, text in texts.items():
        if text != before[file]:
            work.write(file, text.encode())


def _text(work: Workspace, knob: Knob) -> str:
    try:
        return work.read(knob.file).decode()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise InputError(
            f"knob file {knob.file} cannot be read: {error}", where="[[metadata.rsi.search.knobs]]"
        ) from error


def get_value(text: str, knob: Knob) -> Any:
    """Return a knob's value in a file's text.

    Raises:
        InputError: when the pattern or key is not there.
    """
    if knob.pattern is not None:
        return _parse(_match(text, knob).group(1), knob)
    try:
        holder, last = _walk(_load(text, knob), knob)
        return holder[last]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _missing(knob) from error


def set_value(text: str, knob: Knob, value: Any) -> str:
    """Return the file's text with the knob set to a value.

    Raises:
        InputError: when the pattern or key is not there, or the pattern would not find the whole value again.
    """
    if knob.pattern is not None:
        return _set_match(text, knob, value)
    try:
        return _set_key(text, knob, value)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _missing(knob) from error


def _match(text: str, knob: Knob) -> re.Match[str]:
    match = re.search(knob.pattern or "", text, re.MULTILINE)
    if match is None or match.group(1) is None:
        raise _missing(knob)
    return match


def _set_match(text: str, knob: Knob, value: Any) -> str:
    """Write a value in the first way in which the pattern finds all of it: `[0-9.]+` takes 0.00002 and not 2e-05."""
    match = _match(text, knob)
    start, end = match.span(1)
    for written in _spellings(value, match.group(1)):
        new = text[:start] + written + text[end:]
        again = re.search(knob.pattern or "", new, re.MULTILINE)
        if again is not None and again.span(1) == (start, start + len(written)):
            return new
    raise InputError(
        f"pattern {knob.pattern!r} of {knob.file} does not match the value {value!r}",
        where="[[metadata.rsi.search.knobs]]",
        next_step="widen the pattern so that it matches every value of the range or the choices",
    )


def _missing(knob: Knob) -> InputError:
    return InputError(
        f"knob {knob.key or knob.pattern!r} is not found in {knob.file}",
        where="[[metadata.rsi.search.knobs]]",
        next_step="correct the key or the pattern",
    )


def _parse(text: str, knob: Knob) -> Any:
    for choice in knob.choices or ():
        if _format(choice, text) == text:
            return choice
    for kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            continue
    if text in {"True", "False", "true", "false"}:
        return text.lower() == "true"
    return text


def _spellings(value: Any, before: str) -> list[str]:
    found = [_format(value, before)]
    if isinstance(value, float):
        found.append(format(Decimal(repr(value)), "f"))
        if value.is_integer():
            found.append(str(int(value)))
    return found


def _format(value: Any, before: str) -> str:
    if isinstance(value, bool):
        return str(value).lower() if before in {"true", "false"} else str(value)
    return str(value)


def _load(text: str, knob: Knob) -> Any:
    if knob.file.endswith(".json"):
        return json.loads(text)
    if knob.file.endswith(".toml"):
        # tomlkit keeps comments; it costs 30 ms, which only a TOML knob should pay.
        import tomlkit

        return tomlkit.parse(text)
    raise InputError(
        f"knob file {knob.file} is neither JSON nor TOML",
        where="[[metadata.rsi.search.knobs]]",
        next_step="use a pattern for other files",
    )


def _walk(data: Any, knob: Knob) -> tuple[Any, Any]:
    parts: list[Any] = (knob.key or "").split(".")
    for part in parts[:-1]:
        data = data[int(part)] if isinstance(data, list) else data[part]
    last = int(parts[-1]) if isinstance(data, list) else parts[-1]
    data[last]
    return data, last


def _set_key(text: str, knob: Knob, value: Any) -> str:
    data = _load(text, knob)
    holder, last = _walk(data, knob)
    holder[last] = value
    if knob.file.endswith(".json"):
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    import tomlkit

    return tomlkit.dumps(data)
