"""Rendered tasks, byte for byte, and every one of them really judged.

RSI_UPDATE_GOLDEN=1 writes the folders anew; read the difference before you commit it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.task.contract import Source
from harness.task.load import load_task
from rsi_anything.authoring.derive import contract_of
from rsi_anything.authoring.plan import MANIFEST, Plan
from rsi_anything.authoring.render import render
from rsi_anything.authoring.write import write
from rsi_anything.contract.spec import TaskSpec
from rsi_anything.resources import templates_dir

GOLDEN = Path(__file__).parents[3] / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/answers.toml"))
KIT = "tests/judge_kit.py"
SOURCE = Source(repository="https://example.org/project.git", commit="0123456789abcdef" * 2 + "01234567", license="MIT")


def spec_of(case: str) -> TaskSpec:
    return TaskSpec(**tomllib.loads((GOLDEN / case / "answers.toml").read_text(encoding="utf-8")))


def plan_of(case: str) -> Plan:
    return render(spec_of(case), GOLDEN / case / "project", SOURCE)


def lying_there(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Return content and execute bit of all files below a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("case", CASES)
def test_the_task_is_rendered_as_before(case: str) -> None:
    plan = plan_of(case)
    files = {path: file for path, file in plan.files.items() if path not in {KIT, MANIFEST}}
    folder = GOLDEN / case / "task"
    if os.environ.get("RSI_UPDATE_GOLDEN"):
        shutil.rmtree(folder, ignore_errors=True)
        write(Plan(files), folder)
    expected = lying_there(folder)
    assert sorted(files) == sorted(expected)
    for path, file in files.items():
        assert file.data.decode("utf-8") == expected[path][0].decode("utf-8"), path
        assert bool(file.mode & 0o100) == expected[path][1], path
    assert plan.files[KIT].data == (templates_dir() / "task" / KIT).read_bytes()
    record = json.loads(plan.files[MANIFEST].data)
    assert sorted(record["files"]) == sorted(set(plan.files) - {MANIFEST})


def test_rendering_hangs_on_nothing_but_its_input() -> None:
    """Another folder, locale, time zone and hash seed, in another process, give the same bytes."""
    code = (
        "import hashlib, json, sys, tomllib\n"
        "from pathlib import Path\n"
        "from harness.task.contract import Source\n"
        "from rsi_anything.authoring.render import render\n"
        "from rsi_anything.contract.spec import TaskSpec\n"
        "folder, source = Path(sys.argv[1]), Source(**json.loads(sys.argv[2]))\n"
        "spec = TaskSpec(**tomllib.loads((folder / 'answers.toml').read_text(encoding='utf-8')))\n"
        "plan = render(spec, folder / 'project', source)\n"
        "print(json.dumps({path: [file.digest, file.mode] for path, file in plan.files.items()}))\n"
    )
    root = str(GOLDEN.parents[1])
    for case, environment in (
        ("lines", {"LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "1"}),
        ("tail", {"LC_ALL": "POSIX", "TZ": "UTC", "PYTHONHASHSEED": "2"}),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, str(GOLDEN / case), SOURCE.model_dump_json()],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": root, **environment},
            cwd="/",
            capture_output=True,
            check=True,
        )
        plan = plan_of(case)
        assert json.loads(done.stdout) == {path: [file.digest, file.mode] for path, file in plan.files.items()}


@pytest.mark.parametrize("case", CASES)
def test_the_harness_reads_the_task_and_finds_the_contract(case: str, tmp_path: Path) -> None:
    write(plan_of(case), tmp_path / "task")
    task = load_task(tmp_path / "task")
    spec = spec_of(case)
    assert task.contract == contract_of(spec, SOURCE)
    assert task.name == spec.source.name
    assert task.config.verifier.timeout_sec >= spec.evaluation.predict_sec
    assert task.config.agent.timeout_sec == spec.compute.budget.hours * 3600
    assert spec.source.title.split()[0] in task.instruction  # Harbor drops a leading heading about canaries
    again = TaskSpec(**tomllib.loads((tmp_path / "task" / "answers.toml").read_text(encoding="utf-8")))
    assert again == spec


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rsi-golden-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def judge(task: Path, place: Path, script: str | None, seed: int = 5) -> dict[str, Any]:
    """Judge the workspace as it is, or after a script of solution/, at the plain-process level."""
    workdir, logs = place / "app", place / "logs"
    for folder in (workdir, logs):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(task / "environment" / "project", workdir)
    logs.mkdir()
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "RSI_LEVEL": "process",
        "RSI_TESTS": str(task / "tests"),
        "RSI_LOGS": str(logs),
        "RSI_WORKDIR": str(workdir),
        "RSI_SEED": str(seed),
    }
    if script is not None:
        subprocess.run([task / "solution" / script], env=environment, check=True, capture_output=True)
    done = subprocess.run([task / "tests" / "test.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((logs / "reward.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_task_is_judged(case: str, place: Path) -> None:
    spec = spec_of(case)
    name, start = spec.evaluation.metric.name, spec.baseline.start
    write(plan_of(case), place / "task")
    solved = judge(place / "task", place, "solve.sh")
    assert spec.evaluation.metric.lowest <= solved[name] <= spec.evaluation.metric.highest
    assert judge(place / "task", place, "solve.sh") == solved
    untouched = judge(place / "task", place, None)
    if start == "unscoreable":
        assert untouched == {"reward": 0, "invalid": 1}
    else:
        assert untouched == solved
    if spec.baseline.floor:
        floor = judge(place / "task", place, "floor.sh")
        assert floor["reward"] < solved["reward"]


@pytest.mark.parametrize("case", CASES)
def test_nothing_that_is_held_out_is_in_the_image(case: str) -> None:
    files = plan_of(case).files
    examples = files.get("tests/data/examples.jsonl")
    hidden = [json.loads(line) for line in examples.data.decode().splitlines()] if examples else []
    texts = [example if isinstance(example, str) else "\t".join(example["row"].values()) for example in hidden]
    assert (examples is None) == (case == "custom")
    for path, file in files.items():
        if path.startswith(("environment/", "solution/")) and not path.endswith((".py", ".json", ".sh", "Dockerfile")):
            lines = file.data.decode("utf-8").splitlines()
            assert not [text for text in texts if text in lines], path
        assert "secret thoughts" not in file.data.decode("utf-8")
