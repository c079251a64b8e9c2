"""The curve shows every submission where it belongs, and a scale on which differences can be seen."""

import re
from xml.etree import ElementTree as ET

import pytest

from harness.report.curve import draw, scale_of
from harness.report.record import load


def drawn(folder) -> str:
    record = load(folder)
    return draw(record.summary, record.state.submissions)


def test_the_curve_is_well_formed_and_named(make_run, handed) -> None:
    svg = drawn(make_run(handed=[handed(2.2), handed(None, "invalid"), handed(None, "violation"), handed(2.0)]))
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "20 times" not in svg
    assert root[0].text.startswith("tiny-lm, search: best 2.0000 nats/char")
    for label in ("baseline", "± noise", "best so far", "scored", "invalid", "violation", "lower is better"):
        assert label in svg
    assert "metadata" not in svg


def test_a_run_without_submissions_or_numbers_has_a_curve(make_run) -> None:
    assert ET.fromstring(drawn(make_run(control=None, contract=None))) is not None


def test_text_that_looks_like_mathematics_is_text(make_run, handed, contract) -> None:
    contract["metric"]["unit"] = r"$\frac{x$ <b>"
    assert r"$\frac{x$ &lt;b&gt;" in drawn(make_run(handed=[handed(2.0)], contract=contract))


def test_one_lost_submission_does_not_squeeze_the_others(make_run, handed) -> None:
    record = load(make_run(handed=[handed(m) for m in (2.2, 2.15, 2.1, 2.05, 1e9)]))
    scale = scale_of(record.summary, record.state.submissions)
    assert scale.holds(2.2)
    assert scale.holds(2.05)
    assert not scale.holds(1e9)
    assert not scale.holds(3.3)  # the floor is far away as well
    assert "beyond the scale" in draw(record.summary, record.state.submissions)


def test_the_floor_is_drawn_where_it_is_near(make_run, handed) -> None:
    record = load(make_run(handed=[handed(m) for m in (3.2, 2.9, 2.05)]))
    assert scale_of(record.summary, record.state.submissions).holds(3.3)
    assert ">floor<" in draw(record.summary, record.state.submissions)


@pytest.mark.parametrize(("direction", "ys"), [("minimize", [3, 2]), ("maximize", [3, 4])])
def test_the_best_so_far_follows_the_direction(make_run, handed, contract, direction, ys, monkeypatch) -> None:
    from harness.report import curve

    contract["metric"]["direction"] = direction
    steps = []
    monkeypatch.setattr("matplotlib.axes.Axes.plot", lambda self, xs, values, **_: steps.extend(values))
    record = load(make_run(handed=[handed(3.0), handed(2.0), handed(4.0), handed(3.5)], contract=contract))
    curve.draw(record.summary, record.state.submissions)
    assert [step for index, step in enumerate(steps) if index == 0 or step != steps[index - 1]] == ys


@pytest.mark.parametrize(("seconds", "unit"), [(5, "s"), (600, "min"), (9000, "h")])
def test_the_time_axis_has_a_fitting_unit(make_run, handed, seconds, unit) -> None:
    svg = drawn(make_run(handed=[handed(2.0, working=seconds)]))
    assert re.search(rf"working time of the agent \({unit}\)", svg)


def test_drawing_leaves_no_global_state(make_run, handed) -> None:
    import sys

    import matplotlib as mpl

    before = mpl.rcParams.copy()  # dict() would look up a backend and load pyplot for it
    drawn(make_run(handed=[handed(2.0)]))
    assert mpl.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules
