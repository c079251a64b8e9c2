"""The bundled sample is what its answers say: the demo and many tests stand on it."""

import csv
import json
import math
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rsi_anything.contract.spec import TaskSpec

SAMPLE = Path(__file__).parents[3] / "templates" / "sample"
PROJECT = SAMPLE / "project"


@pytest.fixture(scope="module")
def spec() -> TaskSpec:
    answers = tomllib.loads((SAMPLE / "answers.toml").read_text(encoding="utf-8"))
    adapter = SAMPLE / answers["evaluation"].pop("adapter_file")
    answers["evaluation"]["adapter"] = adapter.read_text(encoding="utf-8")
    return TaskSpec(**answers)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workdir: the project and the adapter, with training cut to one pass to keep the test short."""
    work = tmp_path / "work"
    shutil.copytree(PROJECT, work, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SAMPLE / "rsi_adapter.py", work)
    set_value(work, "epochs", "1")
    return work


def set_value(work: Path, name: str, value: str) -> None:
    recipe = work / "recipe.toml"
    text, count = re.subn(rf"(?m)^({name} = )\S+", rf"\g<1>{value}", recipe.read_text(encoding="utf-8"))
    assert count == 1
    recipe.write_text(text, encoding="utf-8")


def rmse(work: Path, seed: int) -> float:
    """Train as the answers say, then predict the last 300 rows through the adapter in a process of its own."""
    subprocess.run([sys.executable, "-B", "train.py", "--seed", str(seed)], cwd=work, check=True, capture_output=True)
    code = (
        "import csv, json, rsi_adapter\n"
        "rows = list(csv.DictReader(open('friedman.csv', encoding='utf-8')))[-300:]\n"
        "asked = [{k: v for k, v in row.items() if k != 'y'} for row in rows]\n"
        "print(json.dumps([rsi_adapter.load().predict(asked), [float(row['y']) for row in rows]]))\n"
    )
    answer = subprocess.run([sys.executable, "-Bc", code], cwd=work, check=True, capture_output=True, text=True)
    predicted, true = json.loads(answer.stdout)
    assert len(predicted) == len(true) == 300
    return math.sqrt(sum((p - y) ** 2 for p, y in zip(predicted, true, strict=True)) / 300)


def test_every_file_the_answers_name_is_there(spec: TaskSpec) -> None:
    assert spec.evaluation.data is not None
    named = {spec.evaluation.data.file, *(edit.file for edit in spec.baseline.floor), *spec.boundary.exclude}
    named |= {*spec.boundary.deliver, *spec.boundary.frozen} - {"rsi_adapter.py"}
    assert all((PROJECT / name).is_file() for name in named)
    assert spec.compute.packages == ()


def test_knobs_hold_the_recipe(spec: TaskSpec) -> None:
    recipe = tomllib.loads((PROJECT / "recipe.toml").read_text(encoding="utf-8"))
    assert len(spec.compute.knobs) >= 4
    for knob in spec.compute.knobs:
        assert knob.key is not None
        value = recipe[knob.key]
        if knob.choices is not None:
            assert value in knob.choices
        else:
            assert knob.range is not None
            assert knob.range[0] <= value <= knob.range[1]


def test_data_are_the_script_s_own_and_a_proper_table(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "make_data.py", tmp_path)
    subprocess.run([sys.executable, "make_data.py"], cwd=tmp_path, check=True)
    assert (tmp_path / "friedman.csv").read_bytes() == (PROJECT / "friedman.csv").read_bytes()
    with (PROJECT / "friedman.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2400
    assert all(len(row) == 11 and None not in row for row in rows)


def test_training_learns_and_the_seed_counts(work: Path) -> None:
    first, again, other = rmse(work, 1), rmse(work, 1), rmse(work, 2)
    assert first == again
    assert first != other
    assert max(first, other) < 4.9


def test_the_floor_learns_nothing(spec: TaskSpec, work: Path) -> None:
    (edit,) = spec.baseline.floor
    assert re.findall(edit.pattern, (work / edit.file).read_text(encoding="utf-8")) == ["0.03"]
    set_value(work, "learning_rate", edit.value)
    assert rmse(work, 1) == pytest.approx(5.0, abs=0.25)


def test_a_better_setting_beats_the_recipe_by_far(work: Path) -> None:
    recipe = rmse(work, 1)
    for name, value in {"learning_rate": "0.06", "momentum": "0.86", "batch": "4"}.items():
        set_value(work, name, value)
    assert rmse(work, 1) < recipe - 0.5
