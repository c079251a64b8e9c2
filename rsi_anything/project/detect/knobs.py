"""Finds the values of a recipe in Python code: options, constants, fields, entries, defaults and arguments."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from rsi_anything.project.detect.code import Call, Code, dotted, keyword, mentions, scalar, text_of
from rsi_anything.project.detect.findings import Knob, Option, Scalar
from rsi_anything.project.detect.knob_roles import (
    choices_of,
    is_evaluation,
    is_vague,
    never_a_knob,
    order_of,
    range_of,
    role_for,
)
from rsi_anything.project.detect.scan import SourceFile
from rsi_anything.project.detect.spans import literal, pattern_for, span_of

_MOST_SETTINGS = 100
_GAP = r"[^\n]*?"
_SURE = {
    "option": (0.9, "the default of a command-line option"),
    "constant": (0.8, "a constant at the top of the file"),
    "field": (0.8, "the default of a field of settings"),
    "entry": (0.7, "an entry of a dictionary of settings"),
    "argument": (0.6, "an argument of a call"),
    "positional": (0.55, "an argument of a call"),
    "default": (0.5, "the default of a function's parameter"),
    "local": (0.5, "a constant in a function"),
}


@dataclass(frozen=True)
class Named:
    """A named constant in the code, before anything is known of its role."""

    how: str
    name: str
    node: ast.expr
    owner: str = ""
    """Name of the function, the call or the option that it belongs to."""
    flags: tuple[str, ...] = ()
    choices: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A knob that is not made yet: its pattern takes a while, and most of a large project's are never shown."""

    file: str
    order: int
    confidence: float
    make: Callable[[], Knob | None]
    """Make the knob with a pattern that finds its value and nothing else; None where there is none."""


def options_in(code: Code) -> list[Option]:
    """Return the command-line options that argparse, click, absl or typer declare."""
    found = [_option(code, call) for call in code.called("add_argument", "option")]
    found += [_flag(code, call) for call in code.calls if call.last.startswith("DEFINE_")]
    return [option for option in found if option is not None] + list(_settings(code))


def _settings(code: Code) -> Iterator[Option]:
    """Yield the constants at the top of a file: paths and names that other findings refer to."""
    top = [item for item in code.assignments if not item.scope and scalar(item.value) is not None]
    for item in top[:_MOST_SETTINGS]:
        yield Option(
            file=code.file.path, name=item.name, flags=(), default=scalar(item.value), confidence=0.8,
            reason="it is a constant at the top of the file",
            evidence=(code.file.evidence(item.value.lineno, f"{item.name} is set"),),
        )  # fmt: skip


def _option(code: Code, call: Call) -> Option | None:
    flags = tuple(text for argument in call.node.args if (text := text_of(argument)))
    if not flags:
        return None
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = text_of(keyword(call.node, "dest")) or long.lstrip("-").split("/")[0].replace("-", "_")
    default = scalar(constant(keyword(call.node, "default")))
    if default is None and text_of(keyword(call.node, "action")) in {"store_true", "store_false"}:
        default = text_of(keyword(call.node, "action")) == "store_false"
    return _made_option(code, call, name, flags, default)


def _flag(code: Code, call: Call) -> Option | None:
    name = text_of(call.node.args[0]) if call.node.args else None
    if name is None:
        return None
    return _made_option(
        code, call, name, (f"--{name}",), scalar(call.node.args[1]) if len(call.node.args) > 1 else None
    )


def _made_option(code: Code, call: Call, name: str, flags: tuple[str, ...], default: Scalar | None) -> Option:
    listed = keyword(call.node, "choices")
    items = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
    choices = tuple(value for item in items if (value := scalar(item)) is not None)
    return Option(
        file=code.file.path, name=name, flags=flags, default=default, choices=choices,
        help=(text_of(keyword(call.node, "help")) or "")[:200], confidence=0.95, reason="it is declared in the code",
        evidence=(code.file.evidence(call.node.lineno, f"option {flags[0]}", call.node.end_lineno),),
    )  # fmt: skip


def constant(node: ast.expr | None) -> ast.expr | None:
    """Return the constant that a value comes down to: itself, or the fallback of a choice or a variable."""
    for _ in range(4):
        if node is None or scalar(node) is not None:
            return node
        if isinstance(node, ast.IfExp) and mentions(node.test, "argv", "environ"):
            node = node.orelse
        elif isinstance(node, ast.Call) and dotted(node.func) in {"int", "float"} and len(node.args) == 1:
            node = node.args[0]
        elif isinstance(node, ast.Call) and dotted(node.func) in {
            "os.environ.get",
            "os.getenv",
            "environ.get",
            "getenv",
        }:
            node = node.args[1] if len(node.args) > 1 else None
        elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in {"field", "Field", "Option"}:
            node = keyword(node, "default") or (node.args[0] if node.args else None)
        else:
            return None
    return None


def named_in(code: Code, parameters: dict[str, list[str]]) -> Iterator[Named]:
    """Yield the named constants of a file; `parameters` gives the names of positional arguments by function."""
    for call in code.calls:
        yield from _of_call(call, parameters)
    for item in code.assignments:
        value = constant(item.value)
        if value is not None:
            yield Named("field" if item.in_class else "local" if item.scope else "constant", item.name, value)
    for _, mapping, _ in code.dicts:
        for key, entry in zip(mapping.keys, mapping.values, strict=True):
            name, value = text_of(key), constant(entry)
            if name and value is not None:
                yield Named("entry", name, value)
    for _, function in code.functions:
        if not is_evaluation(function.name):
            yield from _of_function(function)


def _of_call(call: Call, parameters: dict[str, list[str]]) -> Iterator[Named]:
    if call.last in {"add_argument", "option"} or call.last.startswith("DEFINE_"):
        yield from _of_option(call)
        return
    if is_evaluation(call.last):
        return
    for item in call.node.keywords:
        value = constant(item.value)
        if item.arg and value is not None:
            yield Named("argument", item.arg, value, call.last)
    for name, argument in zip(parameters.get(call.last, ()), call.node.args, strict=False):
        if scalar(argument) is not None:
            yield Named("positional", name, argument)


def _of_option(call: Call) -> Iterator[Named]:
    flags = tuple(text for argument in call.node.args[:4] if (text := text_of(argument)))
    value = constant(keyword(call.node, "default"))
    if call.last.startswith("DEFINE_") and len(call.node.args) > 1:
        value, flags = constant(call.node.args[1]), flags[:1]
    if not flags or value is None:
        return
    flag = next((flag for flag in flags if flag.startswith("--")), flags[0])
    listed = keyword(call.node, "choices")
    items = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
    choices = tuple(choice for item in items if (choice := scalar(item)) is not None)
    name = text_of(keyword(call.node, "dest")) or flag.lstrip("-").split("/")[0].replace("-", "_")
    shown = flags if not call.last.startswith("DEFINE_") else (f"--{flag}",)
    yield Named("option", name, value, flag, shown, choices)


def _of_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Named]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
    pairs += [(a, b) for a, b in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if b is not None]
    for argument, default in pairs:
        value = constant(default)
        if value is not None:
            yield Named("default", argument.arg, value, function.name)


def anchors_of(named: Named) -> tuple[str, ...]:
    """Return what stands before the value, as regular expressions, the most telling first."""
    name, owner = literal(named.name), literal(named.owner)
    quote = r"""['"]"""
    if named.how == "option":
        flag = f"{quote}{owner}{quote}"
        default = r"\bdefault[ \t]*=[ \t]*['\"]?"
        return f"{flag}{_GAP}{default}", rf"{flag}(?:[^()]|\([^()]*\))*?{default}"
    if named.how == "argument":
        head = rf"\b{owner}\([^\n()]*?" if owner else ""
        return rf"{head}\b{name}[ \t]*=[ \t]*", rf"\b{name}[ \t]*=[ \t]*{quote}?"
    if named.how == "entry":
        return (rf"{quote}{name}{quote}[ \t]*:[ \t]*{quote}?",)
    if named.how == "default":
        return (rf"\bdef[ \t]+{owner}\b{_GAP}\b{name}\b[^=,\n]*=[ \t]*{quote}?",)
    if named.how == "positional":
        return ()
    return rf"^[ \t]*{name}[ \t]*(?::[^=\n]*)?=[ \t]*", rf"^[ \t]*{name}\b{_GAP}"


def parameters_of(codes: list[Code]) -> dict[str, list[str]]:
    """Return the positional parameter names of every function of the project whose name is used once."""
    found: dict[str, list[str] | None] = {}
    for code in codes:
        for scope, function in code.functions:
            names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
            names = names[1:] if names[:1] in (["self"], ["cls"]) else names
            name = scope.rpartition(".")[2] if function.name == "__init__" else function.name
            found[name] = names if name not in found or found[name] == names else None
    return {name: names for name, names in found.items() if names}


def knobs_in(code: Code, parameters: dict[str, list[str]]) -> list[Candidate]:
    """Return the knobs of a file; a place that is found in two ways counts once, the surer way first."""
    found: dict[tuple[int, int], Candidate] = {}
    for named in sorted(named_in(code, parameters), key=lambda item: -_SURE[item.how][0]):
        candidate = _candidate(code.file, named)
        span = span_of(code.file, named.node) if candidate is not None else None
        if candidate is not None and span is not None:
            found.setdefault(span, candidate)
    return list(found.values())


def _candidate(file: SourceFile, named: Named) -> Candidate | None:
    value = scalar(named.node)
    if isinstance(value, str) and not named.choices:
        value = number(value)  # an environment variable's fallback is a number in quotes
    role = role_for(named.name, value)
    known = role is not None and (named.how in {"option", "field"} or not is_vague(named.name))
    if value is None or never_a_knob(named.name) or not (known or named.how in {"option", "constant", "field"}):
        return None
    confidence = _SURE[named.how][0] * (0.4 if role is None or is_vague(named.name) else 1.0)
    return Candidate(file.path, order_of(role), confidence, partial(_knob, file, named, value, confidence))


def _knob(file: SourceFile, named: Named, value: Scalar, confidence: float) -> Knob | None:
    span = span_of(file, named.node)
    role = role_for(named.name, value)
    whence = f"{named.name} is {_SURE[named.how][1]}"
    whence += f" and reads as {role.name}" if role else ", its role is not known"
    knob = make_knob(file, named.name, value, span[0], whence=whence, confidence=confidence) if span else None
    pattern = pattern_for(file, span, scalar(named.node), anchors_of(named)) if span and knob else None
    if knob is None or pattern is None:
        return None
    return replace(knob, pattern=pattern, flags=named.flags, choices=knob.choices or named.choices or None)


def make_knob(
    file: SourceFile, name: str, value: Scalar, offset: int, *, whence: str, confidence: float, key: str | None = None
) -> Knob | None:
    """Return a knob with the range its role gives; a text is one only by its choices, which the caller knows."""
    role = role_for(name, value)
    ranged = range_of(role, value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    choices: tuple[Scalar, ...] | None = (True, False) if isinstance(value, bool) else choices_of(role, value)
    if ranged is None and isinstance(value, int | float) and not isinstance(value, bool):
        return None
    bounds, scale, whole = ranged or (None, "linear", False)
    bounds = None if choices else bounds
    return Knob(
        name=name, role=role.name if role else "", file=file.path, line=file.line_at(offset), value=value,
        type=type(value).__name__, pattern=None, key=key, range=bounds, choices=choices, scale=scale, integer=whole,
        order=order_of(role), confidence=round(confidence, 2), reason=whence,
        evidence=(file.evidence(file.line_at(offset), f"{name} is {value}"),),
    )  # fmt: skip


def number(text: str) -> int | float | None:
    """Return the number that a text is, or None."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
