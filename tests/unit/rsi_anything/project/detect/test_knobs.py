"""Knobs: a pattern finds precisely its value, and putting another one in its place changes nothing else."""

import ast
import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.task.contract import Knob as ContractKnob
from rsi_anything.project.checkout import Project
from rsi_anything.project.detect.code import parse
from rsi_anything.project.detect.config_files import knobs_in_config
from rsi_anything.project.detect.findings import Knob
from rsi_anything.project.detect.knob_roles import role_of
from rsi_anything.project.detect.knobs import knobs_in, options_in, parameters_of
from rsi_anything.project.detect.scan import SourceFile
from rsi_anything.project.recipe import Recipe
from rsi_anything.project.research import research

Make = Callable[[dict[str, str | bytes]], Project]


def source(text: str, path: str = "train.py", kind: str = "python") -> SourceFile:
    return SourceFile(path, len(text.encode()), kind, text, whole=True, exact=True)


def knobs_of(text: str, path: str = "train.py") -> list[Knob]:
    if path.endswith(".py"):
        code = parse(source(text, path))
        candidates = knobs_in(code, parameters_of([code])) if code else []
    else:
        candidates = knobs_in_config(source(text, path, "config"))
    return [knob for candidate in candidates if (knob := candidate.make()) is not None]


def values(knobs: list[Knob]) -> dict[str, Any]:
    return {knob.name: knob.value for knob in knobs}


def check_pattern(text: str, knob: Knob) -> None:
    """The promise: one match, exactly the value, and a replacement changes this value alone."""
    assert knob.pattern is not None
    matches = list(re.finditer(knob.pattern, text, re.MULTILINE))
    assert len(matches) == 1
    match = matches[0]
    assert re.compile(knob.pattern).groups == 1
    assert match[1] == knob.value or ast.literal_eval(match[1]) == knob.value
    for new in ("0", "1e-05", "0.25", "512"):
        start, end = match.span(1)
        changed = text[:start] + new + text[end:]
        again = re.search(knob.pattern, changed, re.MULTILINE)
        if not isinstance(knob.value, bool | str):
            assert again is not None
            assert again.span(1) == (start, start + len(new))


def test_argparse_defaults() -> None:
    text = """
import argparse
p = argparse.ArgumentParser()
p.add_argument('--learning-rate', '-l', type=float, default=5e-4, help="rate (default: 5e-4)")
p.add_argument(
    "--n-layer",
    type=int,
    help="layers (many)",
    default=4,
)
p.add_argument('--dropout', default=0.1, type=float)
p.add_argument('--seed', type=int, default=3407)
p.add_argument('--num-workers', type=int, default=4)
p.add_argument('--cell', choices=['gru', 'lstm'], default='gru')
"""
    knobs = knobs_of(text)
    assert values(knobs) == {"learning_rate": 5e-4, "n_layer": 4, "dropout": 0.1, "cell": "gru"}
    by_name = {knob.name: knob for knob in knobs}
    assert by_name["learning_rate"].range == (5e-5, 5e-3)
    assert by_name["learning_rate"].scale == "log"
    assert by_name["learning_rate"].flags == ("--learning-rate", "-l")
    assert (by_name["n_layer"].range, by_name["n_layer"].integer) == ((2, 8), True)
    assert by_name["dropout"].range == (0.0, 0.5)
    assert by_name["cell"].choices == ("gru", "lstm")
    assert [knob.line for knob in knobs if knob.name == "learning_rate"] == [4]
    for knob in knobs:
        check_pattern(text, knob)


def test_constants_at_the_top_and_their_namesakes() -> None:
    text = """
learning_rate = 6e-4 # max learning rate
batch_size = 12
decay_lr = True
def use():
    batch_size = 99
    return learning_rate * batch_size
min_lr: float = 6e-5
steps = 5 * 8
"""
    knobs = knobs_of(text)
    assert {"learning_rate", "batch_size", "decay_lr", "min_lr"} <= set(values(knobs))
    assert "steps" not in values(knobs)
    assert sorted(knob.value for knob in knobs if knob.name == "batch_size") == [12, 99]
    assert {knob.name: knob.role for knob in knobs}["min_lr"] == "min-learning-rate"
    assert {knob.name: knob.choices for knob in knobs}["decay_lr"] == (True, False)
    for knob in knobs:
        check_pattern(text, knob)


def test_fields_dictionaries_defaults_and_arguments() -> None:
    text = """
from dataclasses import dataclass, field
@dataclass
class Config:
    width: int = 64
    rate: float = field(default=0.5)
settings = {"lr": 1e-3, 'nested': {"epochs": 3}}
def train(model, lr=0.01, *, momentum=0.9): ...
def evaluate(model, batch_size=50): ...
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1)
evaluate(model, batch_size=100)
"""
    knobs = knobs_of(text)
    found = [(knob.name, knob.value) for knob in knobs]
    assert ("width", 64) in found
    assert {("lr", 1e-3), ("lr", 0.01), ("lr", 3e-4), ("momentum", 0.9), ("weight_decay", 0.1)} <= set(found)
    assert not any(name == "batch_size" for name, _ in found)
    for knob in knobs:
        check_pattern(text, knob)


def test_positional_arguments_of_the_projects_own_functions() -> None:
    text = """
class Network:
    def SGD(self, data, epochs, mini_batch_size, eta, lmbda=0.0): ...
net.SGD(training_data, 30, 10, 3.0, lmbda=5.0)
"""
    found = {(knob.name, knob.value) for knob in knobs_of(text)}
    assert {("epochs", 30), ("mini_batch_size", 10), ("eta", 3.0), ("lmbda", 5.0)} <= found
    for knob in knobs_of(text):
        check_pattern(text, knob)


def test_fallbacks_of_arguments_and_variables() -> None:
    text = """
import os, sys
alpha = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
lr = float(os.environ.get("LR", "0.1"))
epochs = int(os.getenv("EPOCHS", 10))
dropout = 0.3 if training else 0
"""
    knobs = knobs_of(text)
    assert values(knobs) == {"alpha": 0.5, "lr": 0.1, "epochs": 10}
    for knob in knobs:
        check_pattern(text, knob)


def test_neighbours_on_one_line_do_not_depend_on_each_other() -> None:
    text = "def solve(self, alpha=1, beta=2, rho=0.1): ...\nx = PSO(w=0.8, c1=0.5, c2=0.5, pop=40, max_iter=150)\n"
    knobs = {knob.name: knob for knob in knobs_of(text)}
    changed = text
    for name in ("beta", "rho", "pop", "max_iter"):
        pattern = knobs[name].pattern
        match = re.search(pattern, changed, re.MULTILINE) if pattern else None
        assert match is not None, name
        changed = changed[: match.start(1)] + "7" + changed[match.end(1) :]
    assert changed == text.replace("beta=2", "beta=7").replace("rho=0.1", "rho=7").replace("pop=40", "pop=7").replace(
        "=150", "=7"
    )


def test_click_absl_and_typer_options() -> None:
    text = """
@click.option("--lr", default=0.1, help="x")
def main(lr): ...
flags.DEFINE_float("weight_decay", 0.01, "decay")
def run(batch_size: int = typer.Option(32, help="size")): ...
"""
    assert values(knobs_of(text)) == {"lr": 0.1, "weight_decay": 0.01, "batch_size": 32}
    code = parse(source(text))
    assert code is not None
    assert [option.flags for option in options_in(code)] == [("--lr",), ("--weight_decay",)]


def test_json_and_toml_by_key() -> None:
    data = {"train": {"lr": 0.1, "epochs": 5, "seed": 1}, "layers": [{"dropout": 0.2}], "name": "x", "a.b": {"lr": 1.0}}
    knobs = knobs_of(json.dumps(data, indent=2), "config.json")
    assert {knob.key: knob.value for knob in knobs} == {"train.lr": 0.1, "train.epochs": 5, "layers.0.dropout": 0.2}
    text = "[optim]\nlr = 0.1 # rate\nbetas = [0.9, 0.99]\n[model]\nn_layer = 4\n"
    assert tomllib.loads(text)
    knobs = knobs_of(text, "conf/base.toml")
    assert {knob.key: (knob.value, knob.line) for knob in knobs} == {"optim.lr": (0.1, 2), "model.n_layer": (4, 5)}


def test_yaml_and_ini_by_pattern() -> None:
    text = """# settings
optim:
  lr: 1e-3  # rate
  weight_decay: 0.01
model:
  dropout: .1
  layers:
    - dropout: 0.4
  lr: 7
seed: 1
text: "lr: 5"
"""
    knobs = knobs_of(text, "config.yaml")
    assert {(knob.name, knob.value) for knob in knobs} == {
        ("optim.lr", 1e-3), ("optim.weight_decay", 0.01), ("model.dropout", 0.1), ("model.lr", 7),
    }  # fmt: skip
    for knob in knobs:
        check_pattern(text, knob)
    text = "[train]\nlr = 0.5\nbatch_size: 32\n[test]\nbatch_size = 64\n"
    knobs = knobs_of(text, "run.cfg")
    assert {(knob.name, knob.value) for knob in knobs} == {
        ("train.lr", 0.5),
        ("train.batch_size", 32),
        ("test.batch_size", 64),
    }
    for knob in knobs:
        check_pattern(text, knob)


def test_tools_settings_are_no_recipe() -> None:
    assert knobs_of('{"lr": 0.1}', "package.json") == []
    assert knobs_of("lr: 0.1\n", ".github/workflows/x.yml") == []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("lr", "learning-rate"),
        ("learningRate", "learning-rate"),
        ("--base-lr", "learning-rate"),
        ("min_lr", "min-learning-rate"),
        ("BATCH_SIZE", "batch-size"),
        ("batchSize", "batch-size"),
        ("weight-decay", "regularisation"),
        ("l1_ratio", "subsample"),
        ("attn_dropout", "dropout"),
        ("hidden_size", "width"),
        ("num_layers", "depth"),
        ("max_steps", "steps"),
        ("warmup_iters", "warmup"),
        ("beta1", "momentum"),
        ("n_head", "heads"),
        ("block_size", "context"),
        ("grad_clip", "gradient-clip"),
        ("n_estimators", "trees"),
        ("model.optim.lr", "learning-rate"),
    ],
)
def test_roles_by_name(name: str, role: str) -> None:
    found = role_of(name)
    assert found is not None
    assert found.name == role


@pytest.mark.parametrize(
    "name", ["seed", "num_workers", "device", "eval_interval", "test_batch_size", "vocab_size", "port"]
)
def test_names_that_are_no_recipe(name: str) -> None:
    assert role_of(name) is None


NAMES = st.sampled_from(["lr", "batch_size", "dropout", "n_layer", "weight_decay", "epochs", "hidden", "momentum"])
NUMBERS = st.one_of(
    st.integers(1, 10_000).map(str),
    st.floats(1e-6, 10, allow_nan=False).map(repr),
    st.sampled_from(["1e-3", "5E-4", ".5", "1_000", "3.", "-0.5"]),
)
LINES = st.one_of(
    st.builds("{} = {}".format, NAMES, NUMBERS),
    st.builds("{}={}  # about {}".format, NAMES, NUMBERS, NUMBERS),
    st.builds("{}: float = {}".format, NAMES, NUMBERS),
    st.builds("p.add_argument('--{}', type=float, default={}, help='(default {})')".format, NAMES, NUMBERS, NUMBERS),
    st.builds("opt = Adam(params, {}={}, {}2={})".format, NAMES, NUMBERS, NAMES, NUMBERS),
    st.builds("cfg = {{'{}': {}, \"{}\": {}}}".format, NAMES, NUMBERS, NAMES, NUMBERS),
    st.builds("def f(x, {}={}): pass".format, NAMES, NUMBERS),
    st.builds("class C:\n    {}: int = {}".format, NAMES, NUMBERS),
    st.builds("if x:\n\t{} = {}".format, NAMES, NUMBERS),
    st.builds("s = '''\n{} = {}\n'''".format, NAMES, NUMBERS),
    st.builds("text = 'k\u00e4se \U0001f9c0'; {} = {}".format, NAMES, NUMBERS),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_patterns_match_exactly_their_value_in_any_file(lines: list[str], end: str) -> None:
    text = "\n".join(lines).replace("\n", end) + end
    for knob in knobs_of(text):
        check_pattern(text, knob)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=8), st.randoms())
def test_all_knobs_can_be_changed_one_after_the_other(lines: list[str], random: Any) -> None:
    text = "\n".join(lines) + "\n"
    knobs = [knob for knob in knobs_of(text) if not isinstance(knob.value, bool | str)]
    wanted = {number: random.choice(["0", "1e-05", "0.25", "64"]) for number in range(len(knobs))}
    for number in random.sample(range(len(knobs)), len(knobs)):
        match = re.search(knobs[number].pattern or "", text, re.MULTILINE)
        assert match is not None
        text = text[: match.start(1)] + wanted[number] + text[match.end(1) :]
    for number, knob in enumerate(knobs):
        match = re.search(knob.pattern or "", text, re.MULTILINE)
        assert match is not None
        assert match[1] == wanted[number]


YAML = st.one_of(
    st.builds("{}: {}".format, NAMES, NUMBERS),
    st.builds("  {}: {} # {}".format, NAMES, NUMBERS, NUMBERS),
    st.builds("- {}: {}".format, NAMES, NUMBERS),
    st.sampled_from(["model:", "  inner:", "", "text: |", "a: [1, 2]", "b: {lr: 1}"]),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(YAML, min_size=1, max_size=12))
def test_patterns_in_yaml(lines: list[str]) -> None:
    text = "\n".join(lines)
    for knob in knobs_of(text, "c.yaml"):
        check_pattern(text, knob)


def test_knobs_fit_the_contract(project_of: Make) -> None:
    project = project_of({
        "train.py": "lr = 1e-3\nn_head = 4\nuse_bias = True\nwd = 0\nif __name__ == '__main__':\n    model.fit(x)\n",
        "config.json": '{"dropout": 0.0, "width": 63}',
        "c.yaml": "epochs: 3\n",
    })  # fmt: skip
    knobs = research(project).knobs
    assert {knob.name for knob in knobs} >= {"lr", "n_head", "use_bias", "wd", "dropout", "width", "epochs"}
    for knob in knobs:
        ContractKnob.model_validate(Recipe.as_table(knob))
