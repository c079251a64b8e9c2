"""Read a task folder and say everything that is wrong with it at once.

Nothing here trusts the folder: no link out of it is followed, sizes are capped, and whatever stands in its files, the
only error raised is InputError.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, time
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.errors import InputError
from harness.task.contract import Contract
from harness.task.digest import digest_task, digest_tree
from harness.task.explain import dotted, explain
from harness.task.folder import MOST_TEXT, folder_problems, read_text
from harness.task.harbor import TaskConfig
from harness.task.positions import KeyPath, Positions
from harness.task.problems import Kind, Problem, TaskError, nearest, printable
from harness.task.sense import contradictions
from harness.task.task import Task

CONTRACT: KeyPath = ("metadata", "rsi")
FILE = "task.toml"
_WHERE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")
_CANARY = re.compile(r"#|<!--.*-->\Z")


@dataclass(frozen=True)
class TaskFile:
    """task.toml, read: its values and, where they are right, what they mean."""

    data: Mapping[str, Any]
    positions: Positions
    config: TaskConfig | None
    contract: Contract | None
    problems: tuple[Problem, ...]


def load_task(folder: Path) -> Task:
    """Return the task in a folder; TaskError lists every problem found in it."""
    try:
        return _load_task(folder)
    except OSError as error:
        reason = f"the task folder cannot be read: {error.strerror or error}"
        next_step = "check that all of it exists and may be read"
        raise InputError(reason, where=printable(str(error.filename or folder)), next_step=next_step) from error


def _load_task(folder: Path) -> Task:
    if not folder.is_dir():
        reason = "there is no such folder" if not folder.exists() else "is a file; a task is a folder"
        raise InputError(f"{reason}: {printable(str(folder))}", next_step="name a task folder, one with a task.toml")
    problems = folder_problems(folder)
    if not (folder / FILE).is_file():
        raise TaskError([*_no_task_file(folder), *problems], where=str(folder))
    if problems:
        # What may not be there is not read either.
        raise TaskError(problems, where=str(folder))
    found = read_task_file(_text(folder, FILE, problems))
    problems += found.problems
    instruction = _instruction(folder, problems, steps="steps" in found.data)
    if found.config is not None:
        problems += _missing_files(folder, found.config)
    if problems or found.config is None:
        raise TaskError(problems, where=str(folder))
    return Task(
        folder=folder.absolute(),
        name=found.config.task.name.split("/")[-1] if found.config.task else folder.absolute().name,
        config=found.config,
        contract=found.contract,
        instruction=instruction,
        digest=digest_task(folder, found.data, instruction),
        tests_digest=digest_tree(folder / "tests"),
        environment_digest=digest_tree(folder / "environment"),
    )


def load_contract(text: str) -> Contract:
    """Return the contract in the text of a task.toml; TaskError lists every problem of it."""
    found = read_task_file(text)
    if found.problems:
        raise TaskError(found.problems)
    if found.contract is None:
        raise TaskError([_at(CONTRACT, found.positions, "has no contract", "add [metadata.rsi]", Kind.MISSING_KEY)])
    return found.contract


def read_task_file(text: str) -> TaskFile:
    """Read the text of a task.toml; problems are returned, not raised."""
    data, positions, problems = _parse(text)
    if problems:
        return TaskFile({}, positions, None, None, tuple(problems))
    config: TaskConfig | None = None
    try:
        config = TaskConfig.model_validate(data)
    except ValidationError as error:
        problems += explain(error, model=TaskConfig, data=data, file=FILE, positions=positions)
    problems = [_homeless(problem, data) for problem in problems]
    contract, wrong = _contract(data, positions)
    problems = sorted([*problems, *wrong], key=lambda problem: problem.line or 0)
    return TaskFile(data, positions, config, contract, tuple(problems))


def _parse(text: str) -> tuple[dict[str, Any], Positions, list[Problem]]:
    empty = Positions("")
    if len(text.encode(errors="replace")) > MOST_TEXT:
        return {}, empty, [Problem(FILE, f"is larger than {MOST_TEXT >> 20} MiB", fix="keep data out of task.toml")]
    if text.startswith("\ufeff"):
        return {}, empty, [_broken("starts with a byte-order mark", 1, "save it as UTF-8 without BOM")]
    try:
        data = tomllib.loads(text)
        return data, Positions(text), []
    except RecursionError:
        return {}, empty, [_broken("is nested too deeply", None, "flatten the lists and tables")]
    except ValueError as error:
        found = _WHERE.search(str(error))
        line = text.count("\n") + 1 if found is None or found[1] is None else int(found[1])
        reason = f"is not valid TOML: {_WHERE.sub('', str(error)).strip()}"
        return {}, empty, [_broken(reason, line, "correct the syntax in this line")]


def _broken(reason: str, line: int | None, fix: str) -> Problem:
    return Problem(FILE, reason, line=line, fix=fix, kind=Kind.SYNTAX)


def _contract(data: Mapping[str, Any], positions: Positions) -> tuple[Contract | None, list[Problem]]:
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping):
        return None, []
    if "rsi" not in metadata:
        return None, _misnamed(metadata, positions)
    rsi = metadata["rsi"]
    try:
        # JSON mode, strict: lists may become tuples and text an enum member, yet "3" is no number and 1 no truth value.
        contract = Contract.model_validate_json(json.dumps(rsi, default=_tagged), strict=True)
    except ValidationError as error:
        found = explain(error, model=Contract, data=rsi, file=FILE, positions=positions, prefix=CONTRACT)
        return None, found
    except RecursionError:
        return None, [_broken("is nested too deeply", None, "flatten the lists and tables")]
    return contract, [
        _at((*CONTRACT, *key), positions, reason, fix, Kind.CONTRADICTION)
        for key, reason, fix in contradictions(contract)
    ]


def _at(path: KeyPath, positions: Positions, reason: str, fix: str, kind: Kind) -> Problem:
    return Problem(FILE, reason, line=positions.line(path), key=dotted(path), fix=fix, kind=kind)


def _tagged(value: date | time) -> dict[str, str]:
    # No field of the contract is a date; as a table it fails as a wrong type instead of passing for text.
    return {"date": value.isoformat()}


def _misnamed(metadata: Mapping[str, Any], positions: Positions) -> list[Problem]:
    """Find a contract under a mistyped name: `[metadata]` is free, so that it would be ignored without a word."""
    needed = {name for name, field in Contract.model_fields.items() if field.is_required()}
    for key, value in metadata.items():
        if isinstance(value, Mapping) and len(needed & value.keys()) >= 3:
            path = ("metadata", key)
            reason = "looks like a contract, yet only metadata.rsi is read as one"
            return [_at(path, positions, reason, "did you mean metadata.rsi?", Kind.UNKNOWN_KEY)]
    return []


def _homeless(problem: Problem, data: Mapping[str, Any]) -> Problem:
    """Give `[rsi]` at the top the one place where a contract can be."""
    if problem.key == "rsi" and problem.reason == "unknown key" and isinstance(data.get("rsi"), Mapping):
        return replace(problem, fix="did you mean metadata.rsi?")
    return problem


def _no_task_file(folder: Path) -> list[Problem]:
    present = [path.name for path in sorted(folder.iterdir())[:1000] if path.is_file()]
    near = nearest(FILE, present)
    fix = f"did you mean {near}? Rename it" if near else "name a task folder, or make one with `rsi new`"
    return [Problem(FILE, "is missing", fix=fix)]


def _text(folder: Path, name: str, problems: list[Problem]) -> str:
    try:
        return read_text(folder / name)
    except InputError as error:
        line = error.where.rsplit(":", 1)[-1]
        at = int(line) if line.isdecimal() else None
        problems.append(Problem(name, error.what, line=at, fix=error.next_step))
        return ""


def _instruction(folder: Path, problems: list[Problem], *, steps: bool) -> str:
    if not (folder / "instruction.md").exists():
        if not steps:
            problems.append(Problem("instruction.md", "is missing", fix="write what the agent shall do there"))
        return ""
    text = strip_canary(_text(folder, "instruction.md", problems))
    if not text.strip() and not problems:
        problems.append(Problem("instruction.md", "is empty", fix="write what the agent shall do there"))
    return text


def strip_canary(text: str) -> str:
    """Return an instruction as an agent reads it: without leading canary comments and the blank lines after them."""
    lines = text.splitlines(keepends=True)
    at = 0
    while at < len(lines) and _CANARY.match(lines[at].strip()) and "canary" in lines[at].lower():
        at += 1
        while at < len(lines) and not lines[at].strip():
            at += 1
    return "".join(lines[at:])


def _missing_files(folder: Path, config: TaskConfig) -> list[Problem]:
    windows = config.environment.os == "windows"
    script = f"test.{'bat' if windows else 'sh'}"
    separate = config.verifier.environment
    own_image = (separate is not None and separate.docker_image is not None) or any(
        (folder / "tests" / name).is_file() for name in ("Dockerfile", "docker-compose.yaml")
    )
    problems = []
    if not config.steps and not own_image and not (folder / "tests" / script).is_file():
        problems.append(Problem(f"tests/{script}", "is missing", fix="add the script that judges a candidate"))
    for step in config.steps:
        home = folder / "steps" / step.name
        if not (home / "instruction.md").is_file():
            problems.append(Problem(f"steps/{step.name}/instruction.md", "is missing", fix="add it"))
        if not (home / "tests" / script).is_file() and not (folder / "tests" / script).is_file():
            problems.append(Problem(f"steps/{step.name}/tests/{script}", "is missing", fix="add it, or shared tests"))
    if config.environment.docker_image is None and not (folder / "environment").is_dir():
        problems.append(Problem("environment/", "is missing", fix="add a folder with a Dockerfile"))
    return problems
