"""The wheel holds what it must and nothing else, and works where no checkout is."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.packaging


def run(*command: str | Path, cwd: Path = Path("/"), **env: str) -> str:
    """Run a command with nothing of this checkout on its path and return its stdout."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**clean, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from it, as a release does; the build tools are those of this environment."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=ROOT)
    [made] = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a fresh environment.

    Its dependencies come from the environment of the tests, at the end of the path, so nothing is fetched; ours cannot
    come from there, because an editable install is only found through a .pth file, and those are not read here.
    """
    folder = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return folder / "bin"


def test_the_wheel_holds_code_data_and_markers_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"harness", "rsi_anything"}
    for needed in (
        "harness/py.typed",
        "rsi_anything/py.typed",
        "harness/run/scripts/rsi-submit",
        "harness/run/scripts/rsi-status",
        "rsi_anything/_data/templates/sample/answers.toml",
    ):
        assert needed in names, needed
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".env"))]


def test_the_wheel_holds_every_tracked_file_of_its_folders(wheel: Path) -> None:
    # The checkout may belong to somebody else, as in a container.
    tracked = run(
        "git", "-c", "safe.directory=*", "ls-files", "harness", "rsi_anything", "templates", "tasks", cwd=ROOT
    ).split("\n")
    data = {"templates", "tasks"}
    wanted = {f"rsi_anything/_data/{name}" if name.split("/")[0] in data else name for name in tracked if name}
    assert wanted - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_installed_command_runs_from_anywhere(installed: Path, own_home: Path) -> None:
    env = {"HOME": str(own_home), "RSI_HOME": str(own_home / "rsi")}
    assert run(installed / "rsi", "--version", **env).startswith("rsi-anything ")
    assert run(installed / "rsi-anything", "--help", **env).startswith("usage: rsi")
    assert run(installed / "rsi", "runs", "--json", **env) == '{\n  "runs": []\n}\n'
    where = run(
        installed / "python", "-c", "import harness, rsi_anything; print(harness.__file__, rsi_anything.__file__)"
    )
    assert where.count(str(installed.parent)) == 2


def test_the_installed_command_authors_the_bundled_sample(installed: Path, own_home: Path, tmp_path: Path) -> None:
    env = {"HOME": str(own_home), "RSI_HOME": str(own_home / "rsi")}
    code = "from rsi_anything.resources import templates_dir; print(templates_dir() / 'sample')"
    sample = Path(run(installed / "python", "-c", code).strip())
    assert sample.is_relative_to(installed.parent)
    out = tmp_path / "task"
    answers = sample / "answers.toml"
    run(installed / "rsi", "new", sample / "project", "--answers", answers, "--out", out, cwd=tmp_path, **env)
    for name in ("task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "solution/solve.sh"):
        assert (out / name).is_file(), name
