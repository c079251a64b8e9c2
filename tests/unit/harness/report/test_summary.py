"""What a run found is stated honestly: against the control, with noise, and with luck in mind."""

import copy
import math
import random
import statistics

import pytest

from harness.report.record import load
from harness.report.rows import measured_rows
from harness.report.summary import Summary, luck_bar


def found(make_run, handed, **options) -> Summary:
    return load(make_run(handed=handed, **options)).summary


def test_improvement_is_against_the_control_and_in_units_of_noise(make_run, handed) -> None:
    summary = found(make_run, [handed(2.2), handed(2.031), handed(2.05)])
    assert summary.headline() == (
        "best 2.0310 nats/char, baseline 2.1140 ± 0.0042 on this host: better by 0.0830, 20 times the noise"
    )
    assert summary.best.number == 2
    assert summary.real is True


def test_what_luck_explains_is_called_noise(make_run, handed) -> None:
    summary = found(make_run, [handed(2.105)] * 8)
    assert summary.real is False
    assert "within the noise (luck alone may reach 3.5 times the noise)" in summary.headline()


def test_worse_equal_and_nothing(make_run, handed) -> None:
    assert "worse by 0.0860, 20 times the noise" in found(make_run, [handed(2.2)]).headline()
    assert found(make_run, [handed(2.114)], name="b").headline().endswith("equal to the baseline")
    assert found(make_run, [], name="c").headline() == "no submission was scored (nothing was handed in)"
    nothing = found(make_run, [handed(None, "invalid")], name="d")
    assert nothing.headline() == "no submission was scored (1 handed in)"
    assert nothing.used == 1


def test_the_direction_decides_what_is_best(make_run, handed, contract) -> None:
    contract["metric"]["direction"] = "maximize"
    summary = found(make_run, [handed(2.0), handed(2.3), handed(2.3)], contract=contract)
    assert summary.best.number == 2
    assert summary.improvement == pytest.approx(2.3 - 2.114)


def test_a_control_far_from_the_authors_baseline_is_named(make_run, handed) -> None:
    near = found(make_run, [handed(2.0)])
    assert near.apart == pytest.approx(0.004 / 0.0042)
    assert "apart" not in dict(measured_rows(near))["the author's"]
    far = found(make_run, [handed(2.0)], control=2.2, name="b")
    assert "21 times the noise apart" in dict(measured_rows(far))["the author's"]


def test_the_authors_numbers_stand_in_for_a_missing_control(make_run, handed) -> None:
    summary = found(make_run, [handed(2.0)], control=None)
    assert "baseline 2.1100 ± 0.0042 on the author's host" in summary.headline()
    assert summary.floor.value == 3.3


def test_noise_that_was_never_measured_or_is_zero(make_run, handed, contract) -> None:
    zero = copy.deepcopy(contract)
    zero["reference"]["noise"] = 0.0
    contract["reference"] = {}
    assert "how much of it is noise was never measured" in found(make_run, [handed(2.0)], contract=contract).headline()
    exact = found(make_run, [handed(2.0)], contract=zero, name="b")
    assert "repeated baselines were all equal" in exact.headline()
    assert exact.real is True


def test_a_plain_harbor_task_has_a_reward_to_maximise(make_run, handed) -> None:
    summary = found(make_run, [handed(0.5), handed(0.7)], contract=None, control=None)
    assert (summary.metric, summary.best.number, summary.minimize) == ("reward", 2, False)
    assert summary.headline() == "best 0.7; there is no baseline to compare with"


def test_the_ledger_adds_up_to_the_wall_time(make_run, handed) -> None:
    summary = found(make_run, [handed(2.0), handed(None, "violation")])
    assert sum(line.seconds for line in summary.ledger) == pytest.approx(summary.wall_sec)
    assert summary.working_sec == pytest.approx(125.0)


def test_a_run_without_an_engine_is_interrupted(make_run, handed) -> None:
    folder = make_run(handed=[handed(2.0)], status=None)
    assert load(folder).summary.status == "interrupted"
    with folder.take_lock():
        assert load(folder).summary.status == "running"


def test_a_run_that_died_before_its_first_event_can_be_read(make_run) -> None:
    folder = make_run()
    folder.journal.unlink()
    summary = load(folder).summary
    assert (summary.status, summary.wall_sec) == ("interrupted", 0.0)


def test_the_bar_is_what_luck_reaches_once_in_twenty_runs() -> None:
    luck = random.Random(1)
    for count in (1, 8):
        reached = 0
        for _ in range(4000):
            best = max(luck.gauss(0, 1) - luck.gauss(0, 1) for _ in range(count))
            reached += best > luck_bar(count)
        assert 0.03 < reached / 4000 < 0.07, count
    assert luck_bar(1) == pytest.approx(math.sqrt(2) * statistics.NormalDist().inv_cdf(0.95))
