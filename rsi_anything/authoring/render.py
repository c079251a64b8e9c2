"""Renders a task from a specification and the project's files: pure, and the same bytes for the same input.

Every text comes from the contract, so that no two of them can disagree.
"""

import ast
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.task.contract import Contract, Mode, Source
from harness.task.globs import any_matches
from rsi_anything.authoring.derive import ADAPTER, WORKDIR, contract_of, verifier_sec
from rsi_anything.authoring.files import project_files
from rsi_anything.authoring.holdout import Split, split, split_classes
from rsi_anything.authoring.plan import Plan, PlannedFile
from rsi_anything.authoring.quoting import FILTERS
from rsi_anything.contract.answers import dump_answers
from rsi_anything.contract.spec import Data, Edit, EvaluationRound, TaskSpec
from rsi_anything.resources import templates_dir

if TYPE_CHECKING:
    from jinja2 import Environment

NUMERIC = frozenset({"mse", "rmse", "mae", "r2"})
BASE_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*\Z")
ENV = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
}


@dataclass(frozen=True)
class Template:
    """One entry of the templates' manifest."""

    source: str
    target: str
    variables: tuple[str, ...]
    executable: bool = False
    copied: bool = False
    when: str = ""


def render(spec: TaskSpec, project_folder: Path, source: Source) -> Plan:
    """Return all files of the task, the manifest of what we write included.

    `project_folder` is what becomes the workdir. Raises InputError where answers and project do not go together.
    """
    check_spec(spec)
    contract = contract_of(spec, source)
    project = project_files(project_folder, spec.boundary.exclude)
    project |= _changed("source.edits", spec.source.edits, project, "name a file of the project that is not excluded")
    project, held_out = _hold_out(spec, project)
    if spec.evaluation.adapter is not None:
        project[ADAPTER] = PlannedFile(_ended(spec.evaluation.adapter))
    reference = _reference(contract, project)
    files = {f"environment/project/{path}": file for path, file in project.items()}
    files |= {f"solution/files/{path}": file for path, file in reference.items()}
    floor = _changed("baseline.floor", spec.baseline.floor, reference, "name one that boundary.editable names")
    files |= {f"solution/floor/{path}": file for path, file in floor.items()}
    if held_out is not None:
        files["tests/data/examples.jsonl"] = PlannedFile(held_out.examples)
    files["answers.toml"] = PlannedFile(dump_answers(spec).encode("utf-8"))
    files |= _rendered(_variables(spec, contract, project, held_out), floor=bool(spec.baseline.floor))
    _check_python(files["tests/evaluate.py"])
    return Plan(dict(sorted(files.items()))).with_manifest()


def check_spec(spec: TaskSpec) -> None:
    """Raise InputError for answers that fit their types and still make no task."""
    evaluation, data = spec.evaluation, spec.evaluation.data
    if not BASE_IMAGE.match(spec.compute.base):
        raise _wrong("compute.base", f"{spec.compute.base!r} is no image", "name it as in a Dockerfile, on one line")
    if data is not None:
        _check_data(evaluation, data)
    if evaluation.adapter is not None:
        _check_defines("evaluation.adapter", evaluation.adapter, "load")
    if evaluation.evaluator is not None and evaluation.kind == "custom":
        _check_defines("evaluation.evaluator", evaluation.evaluator, "evaluate")


def _check_data(evaluation: EvaluationRound, data: Data) -> None:
    if evaluation.kind == "next-token" and data.split not in {"lines", "tail"}:
        raise _wrong("evaluation.data.split", f"next-token does not go with {data.split}", "use lines or tail")
    if evaluation.kind != "predictions" or (data.split == "rows" and data.label is not None):
        return
    if data.split != "classes":
        raise _wrong("evaluation.data", "predictions need rows and a label", "split by rows and name the label column")
    if evaluation.measure in NUMERIC:
        raise _wrong(
            "evaluation.measure", f"{evaluation.measure} needs numbers, not classes", "use accuracy or macro-f1"
        )


def _check_defines(field: str, text: str, name: str) -> None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise _wrong(field, f"this is no Python: {error}{line}", "mend the source") from error
    names = set()
    for node in tree.body:
        names.add(getattr(node, "name", ""))
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    if name not in names:
        raise _wrong(field, f"the source defines no {name}", f"define a function {name} at the top level")


def _hold_out(spec: TaskSpec, project: dict[str, PlannedFile]) -> tuple[dict[str, PlannedFile], Split | None]:
    data = spec.evaluation.data
    if data is None:
        return project, None
    if data.split == "classes":
        return _hold_out_classes(data, project)
    whole = project.get(data.file)
    if whole is None:
        raise _wrong(
            "evaluation.data.file", f"the project has no file {data.file!r}", "name a file that is not excluded"
        )
    copies = [path for path, file in project.items() if path != data.file and file.data == whole.data]
    if copies:
        reason = f"{copies[0]} is a copy of {data.file}, so nothing would be held out"
        raise _wrong("boundary.exclude", reason, f"exclude {copies[0]}")
    parts = split(data, whole.data, numeric=spec.evaluation.measure in NUMERIC)
    return {**project, data.file: PlannedFile(parts.kept, whole.mode)}, parts


def _hold_out_classes(data: Data, project: dict[str, PlannedFile]) -> tuple[dict[str, PlannedFile], Split]:
    files = {path: file for path, file in project.items() if any_matches((data.file,), path)}
    if len(files) < 2:
        reason = f"{len(files)} files of the project match {data.file!r}, one a class"
        raise _wrong("evaluation.data.file", reason, "name a glob of the files that hold the classes' lines")
    kept, parts = split_classes(data, {path: file.data for path, file in files.items()})
    return {**project, **{path: PlannedFile(kept[path], file.mode) for path, file in files.items()}}, parts


def _reference(contract: Contract, project: Mapping[str, PlannedFile]) -> dict[str, PlannedFile]:
    """Return the author's own version of all that may be edited."""
    boundary = contract.boundary
    editable = {
        path: file
        for path, file in project.items()
        if any_matches(boundary.editable, path) and not any_matches(boundary.frozen, path)
    }
    if not editable:
        raise _wrong("boundary.editable", "no file of the project may be edited", "name files that the project has")
    return editable


def _changed(
    name: str, edits: tuple[Edit, ...], files: Mapping[str, PlannedFile], else_: str
) -> dict[str, PlannedFile]:
    """Return the files that the edits change, as they are then; each edit sees what the ones before it did."""
    changed: dict[str, PlannedFile] = {}
    for place, edit in enumerate(edits):
        field = f"{name}[{place}]"
        before = changed.get(edit.file) or files.get(edit.file)
        if before is None:
            raise _wrong(field, f"there is no such file to edit: {edit.file!r}", else_)
        changed[edit.file] = PlannedFile(_edited(field, edit, before.data), before.mode)
    return changed


def _edited(field: str, edit: Edit, content: bytes) -> bytes:
    try:
        text, pattern = content.decode("utf-8"), re.compile(edit.pattern, re.MULTILINE)
    except UnicodeDecodeError as error:
        raise _wrong(field, f"{edit.file} is not UTF-8 text", "change a text file") from error
    except re.error as error:
        raise _wrong(field, f"{edit.pattern!r} is no regular expression: {error}", "mend the pattern") from error
    if pattern.groups != 1:
        raise _wrong(field, f"{edit.pattern!r} has {pattern.groups} groups", "put one pair of ( ) around the value")
    found = [match for match in pattern.finditer(text) if match.start(1) >= 0]
    if len(found) != 1:
        raise _wrong(
            field, f"{edit.pattern!r} is found {len(found)} times in {edit.file}", "make it match exactly once"
        )
    start, end = found[0].span(1)
    return (text[:start] + edit.value + text[end:]).encode("utf-8")


def _variables(
    spec: TaskSpec, contract: Contract, project: Mapping[str, PlannedFile], held_out: Split | None
) -> dict[str, Any]:
    made = all(any(any_matches((glob,), path) for path in project) for glob in spec.baseline.outputs)
    return {
        "spec": spec,
        "contract": contract,
        "workdir": WORKDIR,
        "adapter": ADAPTER if spec.evaluation.adapter is not None else None,
        "verifier_sec": verifier_sec(spec),
        "split": held_out,
        "trains": spec.evaluation.mode is Mode.DIRECT and not made,
        "kit_contract": kit_contract(spec.evaluation, spec, contract),
        "env": ENV,
    }


def kit_contract(evaluation: EvaluationRound, spec: TaskSpec, contract: Contract) -> dict[str, Any]:
    """Return what the evaluator needs to know, as plain JSON values."""
    metric = contract.metric
    return {
        "workdir": WORKDIR,
        "metric": metric.model_dump(mode="json", include={"name", "direction", "lowest", "highest"}),
        "mode": str(evaluation.mode),
        "kind": evaluation.kind,
        "measure": evaluation.measure,
        "split": evaluation.data.split if evaluation.data else None,
        "window": evaluation.data.window if evaluation.data else None,
        "command": spec.baseline.command,
        "outputs": list(spec.baseline.outputs),
        "frozen": list(contract.boundary.frozen),
        "train_sec": spec.baseline.train_sec,
        "predict_sec": evaluation.predict_sec,
        "file_mb": spec.compute.storage_mb,
    }


def templates() -> tuple[Template, ...]:
    """Return the templates of a task, as their manifest lists them."""
    manifest = tomllib.loads((templates_dir() / "task" / "manifest.toml").read_text(encoding="utf-8"))
    return tuple(
        Template(
            source=entry["source"],
            target=entry.get("target", entry["source"].removesuffix(".jinja")),
            variables=tuple(entry["variables"]),
            executable=entry.get("executable", False),
            copied=entry.get("copied", False),
            when=entry.get("when", ""),
        )
        for entry in manifest["file"]
    )


@cache
def environment() -> "Environment":
    """Return the template engine: an unknown variable is an error, and nothing is escaped behind our back."""
    # 60 ms of import that only rendering needs.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(templates_dir() / "task", encoding="utf-8"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - these are no HTML pages; quoting.py has a filter for each language
    )
    made.filters.update(FILTERS)
    return made


def _rendered(variables: Mapping[str, Any], *, floor: bool) -> dict[str, PlannedFile]:
    conditions = {"": True, "floor": floor}
    found = {}
    for template in templates():
        if not conditions[template.when]:
            continue
        if template.copied:
            content = (templates_dir() / "task" / template.source).read_bytes()
        else:
            given = {name: variables[name] for name in template.variables}
            content = environment().get_template(template.source).render(given).encode("utf-8")
        found[template.target] = PlannedFile(content, 0o755 if template.executable else 0o644)
    return found


def _check_python(file: PlannedFile) -> None:
    try:
        compile(file.data, "evaluate.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        reason = f"tests/evaluate.py would be no Python: {error}"
        raise _wrong("evaluation.evaluator", reason, "mend the source") from error


def _ended(text: str) -> bytes:
    return (text.rstrip("\n") + "\n").encode("utf-8")


def _wrong(field: str, reason: str, next_step: str) -> InputError:
    return InputError(f"{field}: {reason}", where=field, next_step=next_step)
