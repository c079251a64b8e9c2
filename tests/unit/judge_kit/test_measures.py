"""How answers become a number, without any process: the candidate is a stand-in that answers at once."""

import importlib.util
import math
import random
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import KIT

LABELS = [{"row": {"x": str(x)}, "label": "big" if x > 4 else "small"} for x in range(10)]
NUMBERS = [{"row": {"x": str(x)}, "label": str(x)} for x in range(10)]


def load_kit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("judge_kit_under_test", KIT)
    assert spec is not None
    assert spec.loader is not None
    kit = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # templates are data: nothing is written there
    try:
        spec.loader.exec_module(kit)
    finally:
        sys.dont_write_bytecode = before
    return kit


kit = load_kit()


class StandIn:
    """A judge and its candidate in one."""

    def __init__(self, contract: dict[str, Any], examples: list[Any], answer: Callable[..., Any]) -> None:
        self.contract, self.found, self.answer = contract, examples, answer
        self.random = random.Random(3)
        self.extras: dict[str, float] = {}
        self.vocabulary: Any = ["a", "b", "\n"]

    def examples(self) -> list[Any]:
        return list(self.found)

    @contextmanager
    def serve(self) -> Iterator["StandIn"]:
        yield self

    def extra(self, name: str, value: float) -> None:
        self.extras[name] = value

    def call(self, name: str, rows: list[dict[str, str]]) -> Any:
        return self.answer(rows)

    def get(self, name: str) -> Any:
        return self.vocabulary

    def rows(self, name: str, width: int, count: int, prefixes: list[str]) -> list[Any]:
        return [array("d", self.answer(prefix)) for prefix in prefixes]


def predicted(measure: str, examples: list[Any], answer: Callable[[dict[str, str]], Any]) -> float:
    value = kit.predictions(StandIn({"measure": measure}, examples, lambda rows: [answer(row) for row in rows]))
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize(
    ("measure", "answer", "expected"),
    [
        ("accuracy", lambda row: "small", 0.5),
        ("error-rate", lambda row: "small", 0.5),
        ("macro-f1", lambda row: "small", (0 + 2 * 5 / 15) / 2),
        ("accuracy", lambda row: "big" if int(row["x"]) > 4 else "small", 1.0),
        ("macro-f1", lambda row: "big" if int(row["x"]) > 4 else "small", 1.0),
        ("accuracy", lambda row: "nothing", 0.0),
        ("macro-f1", lambda row: "nothing", 0.0),
        ("log-loss", lambda row: {"small": 3, "big": 1}, (5 * -math.log(0.75) + 5 * -math.log(0.25)) / 10),
        ("log-loss", lambda row: {"small": 1}, 5 * -math.log(1e-9) / 10),
    ],
)
def test_measures_of_labels(measure: str, answer: Callable[[dict[str, str]], Any], expected: float) -> None:
    assert predicted(measure, LABELS, answer) == pytest.approx(expected)


@pytest.mark.parametrize(("measure", "expected"), [("mse", 1.0), ("rmse", 1.0), ("mae", 1.0), ("r2", 1 - 10 / 82.5)])
def test_measures_of_numbers(measure: str, expected: float) -> None:
    assert predicted(measure, NUMBERS, lambda row: int(row["x"]) + 1) == pytest.approx(expected)


@pytest.mark.parametrize("measure", ["mse", "rmse", "mae", "r2"])
def test_a_huge_error_is_infinite_and_no_crash(measure: str) -> None:
    assert abs(predicted(measure, NUMBERS, lambda row: 1.7e308)) == math.inf


def test_numbers_of_equal_labels_have_no_r2() -> None:
    with pytest.raises(kit.JudgeError):
        predicted("r2", [{"row": {}, "label": "1"}] * 3, lambda row: 1.0)


@pytest.mark.parametrize(
    ("measure", "answer"),
    [
        ("accuracy", True),
        ("accuracy", None),
        ("accuracy", ["big"]),
        ("rmse", "1.0"),
        ("rmse", math.nan),
        ("rmse", 10**400),
        ("rmse", False),
        ("log-loss", {}),
        ("log-loss", "big"),
        ("log-loss", {"big": -1, "small": 2}),
        ("log-loss", {"big": 0}),
        ("log-loss", {"big": 1e308, "small": 1e308}),
        ("log-loss", {"big": math.inf}),
    ],
)
def test_predictions_that_are_none(measure: str, answer: Any) -> None:
    with pytest.raises(kit.Invalid):
        predicted(measure, LABELS if measure != "rmse" else NUMBERS, lambda row: answer)


@pytest.mark.parametrize("answers", [None, [], ["small"], {"a": 1}, ["small"] * 11])
def test_as_many_answers_as_rows(answers: Any) -> None:
    with pytest.raises(kit.Invalid, match="one answer for each row"):
        kit.predictions(StandIn({"measure": "accuracy"}, LABELS, lambda rows: answers))


@pytest.mark.parametrize("vocabulary", [["a", "a"], ["ab"], "ab", [], [1], {"a": 1}, None, [""]])
def test_vocabularies_that_are_none(vocabulary: Any) -> None:
    judge = StandIn({"window": 4, "split": "lines", "measure": "nll"}, ["ab"], lambda prefix: [0.0])
    judge.vocabulary = vocabulary
    with pytest.raises(kit.Invalid, match="vocabulary"):
        kit.next_token(judge)


rows = st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=3, max_size=3)


@given(rows, st.text("abc\n", min_size=1, max_size=1))
def test_costs_are_those_of_a_distribution(logits: list[float], sign: str) -> None:
    """Whatever the logits, probabilities sum to one, and a cost is bounded."""
    places = {"a": 0, "b": 1, "\n": 2}
    bound = -math.log(kit.LOWEST)
    costs = kit._costs(array("d", logits), places, ["a", "b", "\n"])
    assert all(-1e-9 <= cost <= bound for cost in costs)
    shares = sum(math.exp(-cost) for cost in costs)
    assert shares == pytest.approx(1.0, abs=3e-9)
    (cost,) = kit._costs(array("d", logits), places, [sign])
    assert (cost == bound) if sign == "c" else (cost in costs)


def test_logits_at_the_edge_of_floats_give_a_number() -> None:
    huge = array("d", [1e308, -1e308, 1e308])
    for cost in kit._costs(huge, {"a": 0, "b": 1, "c": 2}, ["a", "b", "c"]):
        assert math.isfinite(cost)


def test_lines_are_scored_up_to_the_window_and_their_end() -> None:
    asked: list[str] = []

    def answer(prefix: str) -> list[float]:
        asked.append(prefix)
        return [0.0, 0.0, 0.0]

    judge = StandIn({"window": 3, "split": "lines", "measure": "nll"}, ["ab", "abba", "a"], answer)
    assert kit.next_token(judge) == pytest.approx(math.log(3))
    assert judge.extras == {"characters": 3 + 3 + 2}
    assert sorted(asked, key=len) == ["", "a", "ab"]


@given(
    st.lists(st.text(st.sampled_from("abxyz*/"), max_size=12), min_size=1, max_size=3), st.text("abxyz/", max_size=12)
)
def test_globs_mean_what_the_harness_means(globs: list[str], path: str) -> None:
    from harness.task.globs import matches

    for glob in globs:
        assert (kit._pattern(glob).match(path) is not None) == matches(glob, path)


@given(st.text(max_size=3000))
def test_texts_for_the_agent_are_clean_and_short(text: str) -> None:
    cleaned = kit._clean(text, 100)
    assert len(cleaned.encode()) <= 100
    assert all(sign in "\n\t" or sign.isprintable() for sign in cleaned)
