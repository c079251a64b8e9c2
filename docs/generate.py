"""Write the reference pages that say what the code says: `make docs`. A test fails when one is stale."""

import argparse
import ast
import inspect
import sys
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from harness import errors
from harness.run import state, verdict
from harness.task import contract
from rsi_anything.cli import build_parser

HERE = Path(__file__).resolve().parent / "reference"
MARK = "<!-- Written by `make docs` from the code; change the code instead. -->\n"


def pages() -> dict[Path, str]:
    """Return the text of every generated page."""
    texts = {"cli.md": cli(), "exit-codes.md": exit_codes(), "contract.md": contract_page(), "journal.md": journal()}
    return {HERE / name: f"{MARK}\n{text.rstrip()}\n" for name, text in texts.items()}


def cli() -> str:
    """Return the page of commands, from the parsers."""
    parser = build_parser()
    parts = [
        "# The command line",
        f"{parser.description} `rsi` and `rsi-anything` are the same command.",
        (
            "stdout is data, stderr is talk. Every command takes `--json`, and `-q` for silence on stderr, "
            "before or after its name; `rsi --version` prints the version. What follows `--` belongs to the agent. "
            "Exit codes are [a table](exit-codes.md), JSON keys have [a page](json.md)."
        ),
    ]
    for name, command in parser.commands.items():
        parts += [f"## rsi {name}", command.description or "", _options(command)]
        if command.epilog:
            parts.append(f"```text\n{command.epilog.strip()}\n```")
    return "\n\n".join(part for part in parts if part)


def _options(command: argparse.ArgumentParser) -> str:
    rows = []
    for action in command._actions:  # noqa: SLF001 - argparse has no public way to list them
        if {"--help", "--json", "--quiet"} & set(action.option_strings):
            continue
        values = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
        shown = ", ".join(action.option_strings)
        takes = action.nargs != 0
        shown = f"{shown} {values}" if shown and takes else shown or str(values)
        rows.append((f"`{shown}`", action.help or ""))
    return table(("argument", "meaning"), rows) if rows else ""


def exit_codes() -> str:
    """Return the table of exit codes, from the error classes."""
    classes = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, errors.RsiError)]
    rows = []
    for code in errors.ExitCode:
        means = [inspect.getdoc(one).splitlines()[0] for one in classes if one.exit_code == code] or [
            "Everything was done."
        ]
        rows.append((str(int(code)), code.name.lower().replace("_", " "), " ".join(means)))
    text = (
        "An error is at most three things on stderr: what happened, where, and what to do next. With `--json` it is an "
        "object on stdout as well. A bug of ours exits 1 and keeps its traceback in a log file whose path is printed."
    )
    commands = [
        "What a command was asked to find out is no error of the command:",
        (
            "- `rsi check` exits 1 where it found an error in the task, whatever the error is. A wrong contract is "
            "such a finding; of `rsi run`, which needs a right one, it is wrong input and exits 2. That there is no "
            "such folder or rung exits 2 here too."
        ),
        "- `rsi judge` exits 0 whatever the verdict is; the verdict is on stdout.",
        (
            "- `rsi run` and `rsi resume` exit 0 when the run came to its end, also where nothing beat the baseline; "
            "1 where the agent's command could not be found or run (its status was 127 or 126)."
        ),
        "- `rsi runs` exits 0 also where a run is damaged or may not be read; a line on stderr says so.",
        "- `rsi doctor` exits 3 where the machine lacks something.",
        "",
        "A stdout that cannot be written, because it is closed or its disk is full, is a failure: exit 1.",
    ]
    shown = "\n".join([commands[0], "", *commands[1:]])
    return f"# Exit codes\n\n{table(('code', 'name', 'meaning'), rows)}\n\n{text}\n\n{shown}"


def contract_page() -> str:
    """Return the page of the contract, from its models and the text under their fields."""
    docs = field_docs(contract)
    parts = [
        "# The contract",
        inspect.getdoc(contract) or "",
        "An unknown key is an error that names the nearest known one.",
    ]
    parts += ["## `[metadata.rsi]`", _fields(contract.Contract, docs)]
    for name, field in contract.Contract.model_fields.items():
        model = _model(field.annotation)
        if model is not None:
            parts += [f"## `[metadata.rsi.{name}]`", inspect.getdoc(model) or "", _fields(model, docs)]
    parts += ["## `[[metadata.rsi.search.knobs]]`", inspect.getdoc(contract.Knob) or "", _fields(contract.Knob, docs)]
    return "\n\n".join(part for part in parts if part)


def _fields(model: type[BaseModel], docs: dict[str, str]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        if _model(field.annotation) is not None:
            continue
        default = "required" if field.default is PydanticUndefined else f"`{_plain(field.default)}`"
        rows.append((f"`{name}`", _type(field.annotation), default, docs.get(f"{model.__name__}.{name}", "")))
    return table(("key", "type", "default", "meaning"), rows)


def _model(annotation: Any) -> type[BaseModel] | None:
    return annotation if inspect.isclass(annotation) and issubclass(annotation, BaseModel) else None


def _type(annotation: Any) -> str:
    """Return a type in TOML's words."""
    names = {str: "string", int: "integer", float: "number", bool: "true or false", type(None): "absent"}
    if annotation in names:
        return names[annotation]
    if isinstance(annotation, EnumType):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) in {Union, UnionType}:
        return " or ".join(_type(one) for one in get_args(annotation) if one is not type(None))
    if get_origin(annotation) is tuple:
        inner = [one for one in get_args(annotation) if one is not Ellipsis]
        return f"list of {_type(inner[0])}" if Ellipsis in get_args(annotation) else f"{len(inner)} {_type(inner[0])}s"
    return "table"


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{one}"' for one in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


def journal() -> str:
    """Return the page of the journal, from the kinds and their text."""
    docs = field_docs(state)
    rows = [(f"`{kind.value}`", docs.get(f"Kind.{kind.name}", "")) for kind in state.Kind]
    verdicts = ", ".join(f"`{one.value}`" for one in verdict.Verdict)
    text = (
        "`journal.jsonl` in a run's folder is the only truth about a run: one JSON object a line, appended and flushed "
        "to disk before anything that depends on it happens. Each line has `n` (its number, from 1), `t` (Unix time in "
        "seconds, never running backwards), `prev` (sha256 of the line before with its newline; zeros for the first) "
        "and `kind`; the rest depends on the kind."
    )
    phases = inspect.getdoc(state) or ""
    return (
        f"# The journal\n\n{text}\n\n{table(('kind', 'fields'), rows)}\n\nVerdicts are {verdicts}.\n\n"
        f"## The state\n\n{phases}"
    )


def field_docs(module: Any) -> dict[str, str]:
    """Return the string under each field of each class of a module, as `Class.field`."""
    found = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            target = field.target if isinstance(field, ast.AnnAssign) else getattr(field, "targets", [None])[0]
            if isinstance(target, ast.Name) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[f"{node.name}.{target.id}"] = " ".join(str(text.value.value).split())
    return found


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    """Write the pages that have changed and name them."""
    for path, text in pages().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"wrote {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
