"""`show` in words, Markdown and JSON."""

import json

from harness.report.data import record_json
from harness.report.record import load
from harness.report.screen import as_markdown, closing, overview


def test_the_overview_says_all_an_operator_needs(make_run, handed) -> None:
    folder = make_run(
        handed=[
            handed(2.031, score=1.07, message="lower lr\x1b[2J"),
            handed(None, "violation", score=0.0, feedback="a frozen file was changed", evidence="eval.py differs"),
        ],
        refused=["all submissions of the budget are used up"],
    )
    text = overview(load(folder))
    for expected in (
        "calm-otter: search on tiny-lm",
        "completed: the budget is used up",
        "20 times the noise",
        "1*",
        "violation",
        "a frozen file was changed | eval.py differs",
        "refused requests (1)",
        "all submissions of the budget are used up",
        "namespaces: Linux namespaces over the host's own root",
        "The kernel is shared with the host.",
        "RUN was carried out in a layer",
        "working",
        "wall",
    ):
        assert expected in text
    assert "\x1b" not in text
    assert "987654321" not in text


def test_an_interrupted_run_names_the_command_that_goes_on(make_run) -> None:
    assert "rsi resume calm-otter" in overview(load(make_run(status=None)))


def test_the_closing_lines_state_result_and_ledger(make_run, handed) -> None:
    text = closing(load(make_run(handed=[handed(2.031, score=1.07)])))
    names = [line.split("  ")[0] for line in text.splitlines()]
    assert names == ["baseline", "the author's", "noise", "floor", "best", "improvement", "submissions", "ledger"]
    assert "1 of 8 used up" in text


def test_markdown_has_the_same_numbers(make_run, handed) -> None:
    text = as_markdown(load(make_run(handed=[handed(2.031, message="a|b")])))
    assert text.startswith("## tiny-lm: search\n")
    assert "2.0310 nats/char" in text
    assert "a\\|b" in text


def test_json_is_strict_and_has_no_seed(make_run, handed) -> None:
    folder = make_run(handed=[handed(2.031), handed(None, "invalid")], refused=["too early"])
    shown = record_json(load(folder))
    text = json.dumps(shown, allow_nan=False)
    assert "987654321" not in text
    assert shown["best"] == {"number": 1, "metric": 2.031, "score": None}
    assert shown["submissions"] == {"handed_in": 2, "used": 2, "budget": 8}
    assert shown["refused"]["count"] == 1
    assert sum(shown["ledger"].values()) == shown["wall_sec"]
