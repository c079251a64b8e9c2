"""Lists what can be started: scripts, modules, console scripts, make targets, shell scripts and notebooks."""

import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterator

from rsi_anything.project.detect.code import Code
from rsi_anything.project.detect.findings import EntryPoint
from rsi_anything.project.detect.scan import Scan, SourceFile

_TARGET = re.compile(r"^([A-Za-z][\w.-]*)[ \t]*:(?![=:])")
_CONSOLE = re.compile(r"""['"]?([\w.-]+)\s*=\s*([\w.]+):(\w+)['"]?""")
_WORK = frozenset(
    {"print", "fit", "backward", "add_argument", "parse_args", "run", "main", "show", "train", "Fire", "minimize"}
)
_PARSERS = {"add_argument": "argparse", "command": "click", "Typer": "typer", "Fire": "fire", "DEFINE_string": "absl"}


def entry_points_in(found: Scan, codes: list[Code]) -> list[EntryPoint]:
    """Return everything that can be started, the surest first."""
    points = [point for code in codes if (point := _script(code)) is not None]
    for file in found.files("needs"):
        points += _console(file)
    for file in found.files("make"):
        points += _targets(file)
    for file in found.files("shell"):
        points.append(_simple(file, "shell-script", f"bash {shlex.quote(file.path)}", "it is a shell script", 0.5))
    for file in found.files("notebook"):
        points.append(_simple(file, "notebook", f"jupyter execute {shlex.quote(file.path)}", "it is a notebook", 0.4))
    return sorted(points, key=lambda point: -point.confidence)


def _simple(file: SourceFile, kind: str, command: str, reason: str, confidence: float) -> EntryPoint:
    evidence = (file.evidence(1, kind.replace("-", " ")),)
    return EntryPoint(
        kind=kind, path=file.path, command=command, evidence=evidence, confidence=confidence, reason=reason
    )


def _script(code: Code) -> EntryPoint | None:
    path = code.file.path
    name = posixpath.basename(path)
    parsers = sorted({kind for call in code.calls if (kind := _PARSERS.get(call.last))})
    top = [call for call in code.calls if not call.scope and call.last in _WORK]
    if name == "__main__.py":
        package = posixpath.dirname(path).removeprefix("src/").replace("/", ".")
        evidence = (code.file.evidence(1, "a package that can be run"),)
        return EntryPoint(
            kind="module",
            path=path,
            command=f"python -m {package}",
            evidence=evidence,
            confidence=0.9,
            reason="it has __main__",
        )
    if code.main_line is not None:
        with_options = f" and reads options with {', '.join(parsers)}" if parsers else ""
        return EntryPoint(
            kind="script", path=path, command=f"python {shlex.quote(path)}", confidence=0.9,
            reason=f"it has a main guard{with_options}",
            evidence=(code.file.evidence(code.main_line, "main guard"),),
        )  # fmt: skip
    if top and name not in {"__init__.py", "setup.py", "conftest.py"} and not name.startswith("test_"):
        return EntryPoint(
            kind="script", path=path, command=f"python {shlex.quote(path)}", confidence=0.6,
            reason="it does work when it is run, outside of any function",
            evidence=(code.file.evidence(top[0].node.lineno, f"{top[0].last} is called at the top level"),),
        )  # fmt: skip
    return None


def _console(file: SourceFile) -> Iterator[EntryPoint]:
    scripts: list[tuple[str, str]] = []
    if file.path.endswith(".toml") and file.whole:
        scripts = _toml_scripts(file.text)
    elif file.path.endswith(("setup.py", "setup.cfg")):
        at = file.text.find("console_scripts")
        scripts = (
            [(match[1], f"{match[2]}:{match[3]}") for match in _CONSOLE.finditer(file.text[at : at + 3000])]
            if at >= 0
            else []
        )
    for name, target in scripts:
        line = file.line_at(max(file.text.find(target), 0))
        yield EntryPoint(
            kind="console-script", path=file.path, command=name, confidence=0.85,
            reason=f"installing the project makes this command, which calls {target}",
            evidence=(file.evidence(line, f"console script {name}"),),
        )  # fmt: skip


def _toml_scripts(text: str) -> list[tuple[str, str]]:
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError):
        return []
    poetry = data.get("tool", {}).get("poetry", {}) if isinstance(data.get("tool"), dict) else {}
    tables = [table.get("scripts") for table in (data.get("project"), poetry) if isinstance(table, dict)]
    return [
        (name, target)
        for table in tables
        if isinstance(table, dict)
        for name, target in table.items()
        if isinstance(target, str)
    ]


def _targets(file: SourceFile) -> Iterator[EntryPoint]:
    folder = posixpath.dirname(file.path)
    for number, line in enumerate(file.lines(), start=1):
        match = _TARGET.match(line)
        if match and not match[1].startswith("."):
            command = f"make -C {shlex.quote(folder)} {match[1]}" if folder else f"make {match[1]}"
            yield EntryPoint(
                kind="make-target", path=file.path, command=command, confidence=0.6,
                reason="it is a target of the Makefile",
                evidence=(file.evidence(number, f"target {match[1]}"),),
            )  # fmt: skip
