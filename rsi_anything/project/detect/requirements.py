"""Finds what a project needs: what it declares, with its pins, and what it imports besides."""

import ast
import posixpath
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from rsi_anything.project.detect.code import Code, keyword, parse, text_of
from rsi_anything.project.detect.commands import Command
from rsi_anything.project.detect.distributions import DISTRIBUTIONS, EXTRA
from rsi_anything.project.detect.findings import Fact, Requirement
from rsi_anything.project.detect.scan import Scan, SourceFile, unique
from rsi_anything.project.evidence import Evidence

_NEED = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)[ \t]*(?:\[[^\]]*\])?[ \t]*\(?(?P<spec>(?:[<>=!~]=?=?[^;#()]*)?)"
)
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_][\w.]*)", re.MULTILINE)
_CONDA = re.compile(r"^(?P<indent>[ \t]*)-[ \t]+(?P<name>[A-Za-z0-9][\w.-]*)[ \t]*(?P<spec>(?:[=<>!~][^#]*)?)(?:#.*)?$")
_OWN = re.compile(r"""(?m)(?:^|[(,])[ \t]*name\s*=\s*['"]?([A-Za-z0-9._-]+)""")
_VALUED = frozenset(
    {"-r", "--requirement", "-c", "--constraint", "-f", "--find-links", "-i", "--index-url", "-e", "-t"}
)
_NOT_PYTHON = frozenset(
    {"python", "pip", "cudatoolkit", "cuda", "conda", "mkl", "nodejs", "openmpi", "ffmpeg", "git", "gcc"}
)
_OLD = frozenset(
    {"cPickle", "urllib2", "urlparse", "ConfigParser", "StringIO", "Queue", "cStringIO", "tkinter", "Tkinter"}
)
_SIDE = re.compile(r"(^|/)(tests?|docs?|\.github|benchmarks?)(/|$)|(^|/)(conftest|test_\w+|\w+_test|setup)\.py\Z")


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements_in(found: Scan, codes: list[Code], installs: list[Command]) -> list[Requirement]:
    """Return declared requirements first, then imports that nothing declares."""
    declared: dict[str, Requirement] = {}
    own = {canonical(match[1]) for file in found.files("needs") for match in _OWN.finditer(file.text)}
    for file in found.files("needs"):
        low = 0.5 if _SIDE.search(file.path) else 0.0
        for name, spec, evidence in _declared(file):
            _add(declared, name, spec, evidence, "declared", (0.95 if spec else 0.9) - low)
    for command in installs:
        for word in _named(command):
            match = _NEED.fullmatch(word)
            if match:
                _add(declared, match["name"], match["spec"], command.evidence, "declared", 0.7)
    imported: dict[str, Requirement] = {}
    for name, evidence, aside in _imported(found, codes):
        if canonical(name) not in declared:
            _add(imported, name, "", evidence, "imported", 0.35 if aside else 0.8)
    for name in own:
        declared.pop(name, None)
        imported.pop(name, None)
    ordered = sorted(imported.values(), key=lambda item: (-item.confidence, -len(item.evidence), item.name))
    return [*declared.values(), *ordered]


def _named(command: Command) -> list[str]:
    """Return the distributions that a `pip install` command names, options and their values left out."""
    words = command.words()
    words = words[words.index("install") + 1 :] if "install" in words else []
    pairs = zip(["", *words], words, strict=False)
    return [
        word for before, word in pairs if before not in _VALUED and not word.startswith((".", "-")) and "/" not in word
    ]


def _add(
    known: dict[str, Requirement], name: str, spec: str, evidence: Evidence, source: str, confidence: float
) -> None:
    name = canonical(name)
    before = known.get(name)
    if name in _NOT_PYTHON or name in sys.stdlib_module_names:
        return
    spec = (before.spec if before and before.spec else "") or spec.strip().rstrip(",")
    pinned = "pins it" if re.match(r"===?[^*,]+\Z", spec) else "names it without an exact version"
    known[name] = Requirement(
        name=name, spec=spec, source=source, confidence=max(confidence, before.confidence if before else 0.0),
        reason=f"the project {pinned}" if source == "declared" else "the code imports it and nothing declares it",
        evidence=unique([*(before.evidence if before else ()), evidence]),
    )  # fmt: skip


def _declared(file: SourceFile) -> Iterator[tuple[str, str, Evidence]]:
    name = posixpath.basename(file.path)
    if name == "pyproject.toml":
        needs = _of_pyproject(file)
    elif name == "setup.py":
        needs = _of_setup_py(file)
    elif name == "setup.cfg":
        needs = _of_setup_cfg(file)
    elif file.path.endswith((".yml", ".yaml")):
        needs = _of_conda(file)
    elif file.path.endswith((".txt", ".in")) and name != "runtime.txt":
        needs = enumerate(file.lines(), start=1)
    else:
        return
    for line, text in needs:
        match = _NEED.match(text.strip())
        if match and match["name"] != "http" and not re.match(r"[A-Za-z0-9._-]*[:/]", text.strip()):
            yield match["name"], match["spec"], file.evidence(line, f"needs {text.strip()[:80]}")


def _of_pyproject(file: SourceFile) -> Iterator[tuple[int, str]]:
    try:
        data = tomllib.loads(file.text)
    except (ValueError, RecursionError):
        return
    listed = _table(data, "project").get("dependencies", [])
    for need in listed if isinstance(listed, list) else []:
        if isinstance(need, str):
            yield file.line_at(max(file.text.find(need), 0)), need
    for name, spec in _table(_table(_table(data, "tool"), "poetry"), "dependencies").items():
        version = spec if isinstance(spec, str) else ""
        exact = f"=={version}" if re.fullmatch(r"\d[\w.]*", version) else ""
        found = re.search(rf"(?m)^{re.escape(name)}\s*=", file.text)
        yield file.line_at(found.start() if found else 0), name + exact


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _of_setup_py(file: SourceFile) -> Iterator[tuple[int, str]]:
    code = parse(file)
    for call in code.called("setup") if code else ():
        listed = keyword(call.node, "install_requires")
        if isinstance(listed, ast.Name) and code:
            listed = next((item.value for item in code.assignments if item.name == listed.id), None)
        for item in listed.elts if isinstance(listed, ast.List | ast.Tuple) else []:
            text = text_of(item)
            if text:
                yield item.lineno, text


def _of_setup_cfg(file: SourceFile) -> Iterator[tuple[int, str]]:
    inside = False
    for number, raw in enumerate(file.lines(), start=1):
        line = raw
        if re.match(r"install_requires\s*=", line):
            inside, line = True, line.partition("=")[2]
        elif inside and line.strip() and not line.startswith((" ", "\t")):
            inside = False
        if inside and line.strip():
            yield number, line


def _of_conda(file: SourceFile) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(file.lines(), start=1):
        if re.match(r"[A-Za-z]", line):
            inside = line.startswith("dependencies:")
        match = _CONDA.match(line) if inside else None
        if match:
            spec = match["spec"].strip()
            version = re.match(r"={1,2}([\w.]+)", spec)
            yield number, match["name"] + (f"=={version[1]}" if version else spec)


def _imported(found: Scan, codes: list[Code]) -> Iterator[tuple[str, Evidence, bool]]:
    """Yield the distributions that are imported, each at most eight times, and whether the place is aside."""
    local = _local_names(found) | sys.stdlib_module_names | _OLD
    seen: dict[str, int] = {}
    for path, name, line in _import_places(found, codes, local):
        top = name.partition(".")[0]
        if not top or top in local:
            continue
        extra = next((other for module, other in EXTRA.items() if name.startswith(module)), None)
        for distribution in (DISTRIBUTIONS.get(top, top), extra):
            if distribution is not None and seen.get(distribution, 0) < 8:
                seen[distribution] = seen.get(distribution, 0) + 1
                yield distribution, Evidence(path, line, line, f"imports {name}"), bool(_SIDE.search(path))


def _import_places(found: Scan, codes: list[Code], known: set[str]) -> Iterator[tuple[str, str, int]]:
    for code in codes:
        for name, line in code.imports:
            yield code.file.path, name, code.file.evidence(line, "").line_from
    for path, head in found.light:
        for match in _IMPORT.finditer(head):
            name = match[1].decode("ascii", "replace")
            if name.partition(".")[0] not in known:
                yield path, name, head.count(b"\n", 0, match.start(1)) + 1


def _local_names(found: Scan) -> set[str]:
    names: set[str] = set()
    for entry in found.by_kind.get("python", []):
        *folders, name = entry.path.split("/")
        names.add(name.rpartition(".")[0])
        names.update(folders)
    return names


def python_version_in(found: Scan) -> list[Fact]:
    """Return the Python versions that the project asks for, the surest first."""
    patterns = (
        (r"(?m)^requires-python\s*=\s*['\"]([^'\"\n]+)", 0.9),
        (r"python_requires\s*=\s*['\"]?([^'\"\n,)]+)", 0.9),
        (r"(?m)^[ \t]*-[ \t]+python[ \t]*(?:[=:<>]+)[ \t]*([\d.]+)", 0.85),
        (r"(?m)^python[ \t]*[=:][ \t]*['\"]?[\^~]?([\d.]+)", 0.85),
        (r"(?m)^FROM[ \t]+python:([\d.]+)", 0.8),
        (r"\A(?:python-)?(\d+\.\d+(?:\.\d+)?)\s*\Z", 0.9),
    )
    facts = []
    for file in found.files("needs"):
        for pattern, confidence in patterns:
            match = re.search(pattern, file.text)
            if match:
                value = match[1].strip()
                evidence = (file.evidence(file.line_at(match.start(1)), f"Python {value}"),)
                reason = "the project says which Python it needs"
                facts.append(Fact(kind="python", value=value, evidence=evidence, confidence=confidence, reason=reason))
    return facts
