"""The tree keeps its own rules: small files, small functions, honest names, reasons for exceptions."""

import ast
import re
import statistics
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("harness", "rsi_anything")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FORBIDDEN = {"utils", "util", "helpers", "helper", "misc", "common"}
FAMILIES = ("harness/sandbox", "harness/agents")
"""Folders of interchangeable things: a protocol, one file each, a fake."""


def percentile(values: list[int], part: float) -> int:
    """Return the value that `part` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def functions() -> list[tuple[str, int]]:
    """Return every function of the packages with its length in lines, decorators and docstring included."""
    found = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno
                found.append((f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1))
    return found


def test_modules_are_small() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert not {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > 500}
    assert statistics.median(lengths.values()) <= 120
    assert percentile(list(lengths.values()), 0.9) <= 350


def test_functions_are_small() -> None:
    lengths = functions()
    assert not [(name, n) for name, n in lengths if n > 80]
    assert percentile([n for _, n in lengths], 0.95) <= 50


def test_modules_have_names_that_say_something() -> None:
    parts = {part for path in MODULES for part in path.relative_to(ROOT).with_suffix("").parts}
    assert not parts & FORBIDDEN


def test_every_module_says_why_it_exists() -> None:
    for path in MODULES:
        doc = ast.get_docstring(ast.parse(path.read_text("utf-8")))
        assert doc, path


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_a_protocol_and_a_fake(family: str) -> None:
    names = {path.name for path in (ROOT / family).glob("*.py")}
    assert {"base.py", "fake.py"} <= names


def test_package_inits_hold_no_code() -> None:
    for path in MODULES:
        if path.name != "__init__.py" or path.parent.name == "catalogue":
            continue
        body = ast.parse(path.read_text("utf-8")).body
        kinds = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.If)
        assert all(isinstance(node, kinds) for node in body), path


def test_every_linter_exception_has_its_reason_on_its_line() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    ignored = re.search(r"\nignore = \[\n(.*?)\n\]", text, re.DOTALL)
    assert ignored
    for line in ignored[1].splitlines():
        assert re.match(r'\s+"[A-Z0-9]+",\s+# \S.{8,}', line), line


def test_every_exception_in_the_code_names_its_rule_and_reason() -> None:
    # A comment token can only be told from a string by its line here: none of our strings holds these words.
    reasoned: set[tuple[Path, str]] = set()
    marks = []
    for path in MODULES:
        for line in path.read_text("utf-8").splitlines():
            for rule in re.findall(r"# noqa:? ?([A-Z]*)", line):
                marks.append((path, rule, line.strip()))
                if re.search(r"# noqa: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)*\W+[a-z]", line):
                    reasoned.add((path, rule))
    # A file says once why it leaves a family of rules.
    assert not [line for path, rule, line in marks if (path, rule) not in reasoned]


def test_type_ignores_are_rare_and_name_their_code() -> None:
    lines = [line for path in MODULES for line in path.read_text("utf-8").splitlines()]
    ignores = [line for line in lines if "# type: ignore" in line]
    assert all(re.search(r"# type: ignore\[[a-z-]+(, [a-z-]+)*\]", line) for line in ignores)
    assert len(ignores) <= max(3, len(lines) / 1000)


def test_there_are_few_hard_dependencies() -> None:
    assert len(PYPROJECT["project"]["dependencies"]) <= 8


def test_developer_dependencies_are_pinned() -> None:
    assert all("==" in name for name in PYPROJECT["dependency-groups"]["dev"])


def test_ci_calls_only_the_developers_words() -> None:
    stages = re.findall(r"^ *stage (\w+) (.+)$", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    allowed = re.compile(r"(env RSI_TEST_\w+=1 )?(\.ci/with-\w+ )?(\.ci/again )?make (\w+)")
    found = [allowed.fullmatch(command) for _, command in stages]
    assert all(found)
    assert {"test", "check", "package", "docker"} <= {match[4] for match in found if match}


def test_version_and_changelog_agree() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"^## \[?([0-9.]+)", text, re.MULTILINE)
    assert newest
    assert newest[1] == PYPROJECT["project"]["version"]
