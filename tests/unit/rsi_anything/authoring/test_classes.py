"""Answers that edit the project, and data in one file a class."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.task.contract import Source
from rsi_anything.authoring.holdout import split_classes
from rsi_anything.authoring.plan import Plan
from rsi_anything.authoring.render import render
from rsi_anything.contract.spec import Data, TaskSpec

FILES = {
    "names/Irish.txt": "".join(f"O'Name{i}\n" for i in range(20)).encode(),
    "names/Česká.txt": "".join(f"Jméno{i}\r\n" for i in range(30)).encode() + b"\r\nO'Name3",
}


def data(**changes: Any) -> Data:
    return Data(**{"file": "names/*.txt", "split": "classes", "holdout": 0.3, "seed": 4, **changes})


def spec(**changes: Any) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "source": {"name": "names", "title": "Names", "category": "text", **changes.pop("source", {})},
            "question": {"question": "Does it?"},
            "baseline": {
                "description": "A recipe.",
                "command": "python3 train.py",
                "floor": [{"file": "train.py", "pattern": r"rate = (\S+)", "value": "0"}],
            },
            "evaluation": {
                "mode": "retrain",
                "kind": "predictions",
                "measure": "macro-f1",
                "metric": {"name": "f1", "direction": "maximize", "lowest": 0.0, "highest": 1.0},
                "data": data().model_dump(),
                "adapter": "def load():\n    return None\n",
                **changes.pop("evaluation", {}),
            },
            "boundary": {"editable": ["train.py"], "deliver": ["train.py"]},
            "compute": {"budget": {"hours": 1.0, "submissions": 2}},
        }
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "names").mkdir()
    for path, content in FILES.items():
        (tmp_path / path).write_bytes(content)
    (tmp_path / "train.py").write_text("seed = 1337\nrate = 0.1\n", encoding="utf-8")
    return tmp_path


def rendered(spec: TaskSpec, project: Path) -> Plan:
    return render(spec, project, Source(repository="local", commit="none", license="MIT"))


def text_of(plan: Plan, path: str) -> str:
    return plan.files[path].data.decode("utf-8")


def test_lines_of_all_files_are_held_out_and_labelled_by_their_file() -> None:
    kept, parts = split_classes(data(), FILES)
    examples = [json.loads(line) for line in parts.examples.decode("utf-8").splitlines()]
    assert {example["label"] for example in examples} == {"Irish", "Česká"}
    for example in examples:
        # "O'Name3" is in both files: held out, it is in neither.
        assert all(example["row"]["text"] not in content.decode("utf-8").splitlines() for content in kept.values())
    before = [line for content in FILES.values() for line in content.splitlines(keepends=True)]
    after = [line for content in kept.values() for line in content.splitlines(keepends=True)]
    assert len(before) - len(after) == parts.held_out
    assert (len(after), b"".join(after)) == (parts.left, parts.kept)
    assert split_classes(data(), FILES) == (kept, parts)


@pytest.mark.parametrize("seed", range(12))
def test_a_text_in_two_classes_is_an_example_of_both(seed: int) -> None:
    _, parts = split_classes(data(seed=seed), FILES)
    twice = [json.loads(line)["label"] for line in parts.examples.decode().splitlines() if '"O\'Name3"' in line]
    assert twice in ([], ["Irish", "Česká"])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.txt": b"one\ntwo\nthree\nfour\n"}, "fewer than 2 classes"),
        ({"a.txt": b"x\n" * 9, "b.txt": b"\xff\n"}, "b.txt is not UTF-8"),
        ({"a.txt": b"", "b.txt": b"one\ntwo\nthree\nfour\n"}, "no line of a.txt would be left"),
    ],
)
def test_files_that_cannot_be_split(files: dict[str, bytes], words: str) -> None:
    with pytest.raises(InputError, match=words):
        split_classes(data(holdout=0.5), files)


def test_the_task_has_the_classes_parts_and_says_so(project: Path) -> None:
    plan = rendered(spec(), project)
    kept, parts = split_classes(data(), FILES)
    assert plan.files["tests/data/examples.jsonl"].data == parts.examples
    for path, content in kept.items():
        assert plan.files[f"environment/project/{path}"].data == content
    assert "`text`" in text_of(plan, "instruction.md")
    assert "name of the file" in text_of(plan, "instruction.md")


@pytest.mark.parametrize(
    ("evaluation", "words"),
    [
        ({"measure": "rmse"}, "needs numbers"),
        ({"kind": "next-token", "measure": "nll"}, "does not go with classes"),
        ({"data": data(file="names/Irish.txt").model_dump()}, "1 files of the project"),
    ],
)
def test_classes_that_make_no_task(project: Path, evaluation: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rendered(spec(evaluation=evaluation), project)


def test_edits_make_the_starting_point_of_all_that_follows(project: Path) -> None:
    edits = [
        {"file": "train.py", "pattern": r"seed = (1337)", "value": "int(os.environ['RSI_SEED'])"},
        {"file": "train.py", "pattern": r"(?m)^()seed = ", "value": "import os\n\n"},
    ]
    plan = rendered(spec(source={"edits": edits}), project)
    started = "import os\n\nseed = int(os.environ['RSI_SEED'])\nrate = 0.1\n"
    assert text_of(plan, "environment/project/train.py") == started
    assert text_of(plan, "solution/files/train.py") == started
    assert text_of(plan, "solution/floor/train.py") == started.replace("0.1", "0")
    assert "source.edits" in text_of(plan, "README.md")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"file": "no.py", "pattern": "(x)", "value": "y"}, r"source.edits\[0\].*no.py"),
        ({"file": "train.py", "pattern": "(nowhere)", "value": "y"}, r"source.edits\[0\].*found 0 times"),
        ({"file": "train.py", "pattern": "seed = 1337", "value": "y"}, r"source.edits\[0\].*groups"),
    ],
)
def test_edits_that_do_not_fit_are_named(project: Path, edit: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rendered(spec(source={"edits": [edit]}), project)
