"""Answers files: the same bytes every time, nothing lost on the way, and every mistake with its line."""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from rsi_anything.contract.answers import dump_answers, known_keys, load_answers, toml_key, toml_value
from rsi_anything.contract.draft import Draft, Who, draft_from_spec
from rsi_anything.contract.fields import BY_ID
from rsi_anything.contract.spec import TaskSpec
from rsi_anything.contract.tomllines import key_lines

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


def spec(**changes) -> TaskSpec:
    data = {
        "source": {"name": "tiny", "title": "小さい", "category": "regression"},
        "question": {"question": "Better?", "background": "line one\nline two 'quoted'\n"},
        "baseline": {
            "description": "A line.",
            "command": "python train.py",
            "floor": [{"file": "r.toml", "pattern": "lr = (\\S+)", "value": "0"}],
        },
        "evaluation": {
            "mode": "retrain",
            "kind": "custom",
            "metric": {"name": "mse", "direction": "minimize", "lowest": 0.0, "highest": 1e6},
            "evaluator": "def evaluate(c):\n    \"\"\"It's \\ here.\"\"\"\n    return {'''a''': 1}\n",
        },
        "boundary": {"editable": ["**"], "deliver": ["r.toml", *(f"file-{n:03}.py" for n in range(20))]},
        "compute": {
            "budget": {"hours": 1, "submissions": 3},
            "knobs": [{"file": "r.toml", "key": "lr", "range": [1e-06, 1], "scale": "log"}],
        },
    }
    for name, value in changes.items():
        table, _, key = name.partition("__")
        data[table][key] = value
    return TaskSpec.model_validate(data)


def test_round_trip(tmp_path: Path) -> None:
    text = dump_answers(spec())
    assert text == dump_answers(TaskSpec.model_validate(tomllib.loads(text)))
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    answers = load_answers(tmp_path / "a.toml")
    assert answers.problems == []
    assert TaskSpec.model_validate(answers.nested()) == spec()
    assert "小さい" in text
    assert "line one\nline two 'quoted'\n" in text
    assert all("\r" not in line for line in text)


@given(text=TEXTS, key=TEXTS)
def test_any_text_survives(text: str, key: str) -> None:
    assert tomllib.loads(f"x = {toml_value(text)}") == {"x": text}
    assert tomllib.loads(f"{toml_key(key)} = 1") == {key: 1}
    made = spec(question__background=text, evaluation__evaluator=text + "\n" + key)
    assert TaskSpec.model_validate(tomllib.loads(dump_answers(made))) == made


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_survives(number: float) -> None:
    assert tomllib.loads(f"x = {toml_value(number)}") == {"x": number}


@given(text=TEXTS)
def test_lines_are_those_of_the_keys_whatever_the_texts(text: str) -> None:
    dumped = dump_answers(spec(question__background=f"[compute]\nhours = 3\n{text}", source__title=text))
    lines = dumped.split("\n")
    found = key_lines(dumped)
    for name in ("evaluation.metric.lowest", "compute.budget.hours", "boundary.deliver", "compute.knobs.range"):
        assert lines[found[name] - 1].startswith(name.rpartition(".")[2] + " =")
    assert lines[found["compute.budget"] - 1] == "[compute.budget]"


def test_unknown_keys_name_the_nearest_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        'version = 1\n[source]\nnam = "x"\n\n[evaluation]\nadaptor_file = "x"\nmetric.directoin = "minimize"\n'
        "[zzz]\na = 1\n",
        encoding="utf-8",
    )
    found = [(problem.field, problem.line, problem.message) for problem in load_answers(path).problems]
    assert found == [
        ("source.nam", 3, "is unknown; did you mean source.name?"),
        ("evaluation.adaptor_file", 6, "is unknown; did you mean evaluation.adapter_file?"),
        ("evaluation.metric.directoin", 7, "is unknown; did you mean evaluation.metric.direction?"),
        ("zzz", 8, "is unknown"),
    ]


def test_scalar_for_a_table_and_wrong_version(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('version = 2\nsource = "x"\n', encoding="utf-8")
    messages = [problem.message for problem in load_answers(path).problems]
    assert messages == ["version 2 is unknown; this program reads 1", "must be a table"]


def test_long_text_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_bytes("\ufeffa = '日本'\r\nb = 2\r\n".encode())
    path = tmp_path / "a.toml"
    path.write_text('[evaluation]\nadapter_file = "code.py"\n', encoding="utf-8")
    answers = load_answers(path)
    assert answers.values == {"evaluation.adapter": "a = '日本'\nb = 2\n"}
    path.write_text('[evaluation]\nadapter = "x"\nadapter_file = "code.py"\n', encoding="utf-8")
    assert "given twice" in load_answers(path).problems[0].message


def test_unusable_files_are_problems(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    path = tmp_path / "a.toml"
    for value, words in (
        ('"none.py"', "no such file"),
        ('"pipe"', "not a regular file"),
        ('"."', "not a regular file"),
        ('"binary"', "not UTF-8"),
        ('"a\\u0000b"', "cannot be read"),
        ("3", "wants the path"),
    ):
        path.write_text(f"[evaluation]\nadapter_file = {value}\n", encoding="utf-8")
        (problem,) = load_answers(path).problems
        assert words in problem.message
        assert problem.line == 2


def test_no_toml_no_file_no_text(tmp_path: Path) -> None:
    path = tmp_path / "answers.toml"
    path.write_text("[source\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1"):
        load_answers(path)
    with pytest.raises(InputError) as caught:
        load_answers(tmp_path / "answer.toml")
    assert "answers.toml" in caught.value.next_step
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        load_answers(path)
    with pytest.raises(InputError, match="regular file"):
        load_answers(tmp_path)


def test_dump_of_a_draft_with_the_examples() -> None:
    draft = draft_from_spec(spec(), Who.ANSWERS)
    assert isinstance(draft, Draft)
    assert dump_answers(draft.to_spec()) == dump_answers(spec())
    assert set(BY_ID) <= set(known_keys())
