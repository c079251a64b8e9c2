"""The answers of the real projects are whole, and fit the projects where these can be had."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.task.contract import Source
from rsi_anything.authoring.render import render
from rsi_anything.contract.answers import load_answers
from rsi_anything.contract.spec import TaskSpec
from rsi_anything.interview.headless import take

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/answers.toml"))


def spec_of(name: str) -> TaskSpec:
    outcome = take(load_answers(HERE / name / "answers.toml"), {}, {})
    assert outcome.whole, outcome.lines()
    return outcome.draft.to_spec()


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_whole(name: str) -> None:
    spec = spec_of(name)
    assert spec.source.commit is not None
    assert re.fullmatch(r"[0-9a-f]{40}", spec.source.commit)
    assert spec.source.license != "unknown"
    assert spec.baseline.floor
    assert len(spec.compute.knobs) >= 2


def test_shapes_differ() -> None:
    specs = {name: spec_of(name) for name in NAMES}
    assert len(specs) >= 5
    assert {spec.evaluation.kind for spec in specs.values()} == {"next-token", "predictions", "custom"}
    assert {spec.evaluation.data.split if spec.evaluation.data else None for spec in specs.values()} == {
        *("lines", "tail", "rows", "classes"),
        None,
    }


@pytest.mark.projects
@pytest.mark.parametrize("name", NAMES)
def test_answers_fit_the_project(name: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(HERE / "fetch.py"), str(tmp_path), name], check=True, capture_output=True)
    spec = spec_of(name)
    source = Source(repository=spec.source.project, commit=spec.source.commit or "none", license=spec.source.license)
    files = render(spec, tmp_path / name, source).files
    for knob in spec.compute.knobs:
        assert knob.pattern is not None
        text = files[f"environment/project/{knob.file}"].data.decode("utf-8")
        assert len(re.findall(knob.pattern, text)) == 1
    assert any(path.startswith("solution/floor/") for path in files)
