"""Importing does nothing, cheap commands load little, and the arrows between packages hold."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pydantic", "jinja2", "git", "matplotlib", "textual", "openai", "anthropic", "numpy", "tomlkit")


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that sees this checkout."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **env},
    )


def loaded_by(argv: list[str]) -> tuple[int, set[str]]:
    """Return the exit code of a command and the heavy packages it loaded."""
    code = (
        "import json, sys\n"
        "from rsi_anything.cli import main\n"
        f"code = main({argv!r})\n"
        "print('\\n' + json.dumps([int(code), [n for n in sys.modules if '.' not in n]]))\n"
    )
    done = python(code)
    code_, names = json.loads(done.stdout.splitlines()[-1])
    return code_, set(names) & set(HEAVY)


@pytest.mark.parametrize(
    "argv", [[], ["--help"], ["--version"], ["run", "--help"], ["runs"], ["runs", "--json"], ["rnu"]]
)
def test_cheap_commands_load_nothing_heavy(argv: list[str]) -> None:
    code, heavy = loaded_by(argv)
    assert code == (2 if argv == ["rnu"] else 0)
    assert heavy == set()


def test_showing_a_run_loads_nothing_heavy(make_run, handed) -> None:
    make_run(handed=[handed(2.0)])
    for argv in (["show", "calm-otter"], ["show", "calm-otter", "--json"], ["runs"]):
        assert loaded_by(argv) == (0, set())


def test_importing_every_module_prints_nothing_and_writes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    code = (
        "import importlib, pkgutil, sys, harness, rsi_anything\n"
        "for package in (harness, rsi_anything):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not module.name.endswith('__main__') and '._data' not in module.name:\n"
        "            importlib.import_module(module.name)\n"
    )
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    # Root may write anywhere: a home that is a file's child fails for everybody who tries.
    unwritable = {"HOME": "/dev/null/home", "RSI_HOME": "/dev/null/rsi", "TMPDIR": str(home)}
    done = python(code, **unwritable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_imports_read_no_environment() -> None:
    code = (
        "import os, sys\n"
        "import pydantic, enum, dataclasses, argparse\n"
        "class Watched(dict):\n"
        "    def __getitem__(self, key): raise SystemExit(f'read {key}')\n"
        "    get = __contains__ = __getitem__\n"
        "import harness.errors\n"
        "os.environ = Watched()\n"
        "import harness.paths, harness.run.state, harness.run.plan, harness.report.record, rsi_anything.cli\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_contracts_of_the_arrows_are_listed() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    forbidden = next(c for c in linter["contracts"] if c["type"] == "forbidden")
    assert {"rsi_anything", "textual", "jinja2", "openai", "anthropic"} <= set(forbidden["forbidden_modules"])
    assert [c["type"] for c in linter["contracts"]].count("layers") == 2


def test_the_arrows_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(linter)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_data_folders_are_no_packages() -> None:
    for name in ("templates", "tasks"):
        assert not (ROOT / name / "__init__.py").exists()
