"""The whole loop on fake boxes: verdicts, scores, feedback, controls."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from stage import SEED, Stage, assert_whole, outcome, write_result

from harness import paths
from harness.agents.base import Workspace
from harness.agents.fake import FakeAgent
from harness.agents.script import Script
from harness.errors import RsiError
from harness.run.folder import RunFolder
from harness.run.journal import read_events
from harness.run.seeds import judge_seed
from harness.run.state import Kind, Status
from harness.sandbox.fake import FakeBox, Fault


def folder() -> RunFolder:
    """Return the folder of the staged run."""
    return RunFolder(paths.runs() / "staged")


def unmeasured(logs: Path, seed: int) -> None:
    """Play a judge that writes nothing."""


def write_text(path: Path, text: str) -> None:
    """Write a file."""
    path.write_text(text)


def test_scored_invalid_and_scored_again(stage: Stage) -> None:
    state = stage.run(stage.hand_in(40), stage.hand_in("nothing"), stage.hand_in(30))
    assert outcome(state) == [("scored", 40.0, 1.2), ("invalid", None, None), ("scored", 30.0, 1.4)]
    assert state.status is Status.COMPLETED
    assert state.submissions[1].judgings[-1].message == "value.txt holds no value"
    assert [one.message for one in state.submissions] == ["40", "nothing", "30"]
    assert_whole(folder(), state)
    assert not (paths.home() / "boxes").exists() or not list((paths.home() / "boxes").iterdir())


def test_a_changed_frozen_file_is_a_violation_that_no_judge_sees(stage: Stage) -> None:
    def cheat(work: Workspace) -> None:
        work.write("frozen.txt", b"changed\n")
        stage.feedback.append(work.submit("cheating"))

    def repent(work: Workspace) -> None:
        work.write("frozen.txt", b"must stay\n")
        stage.hand_in(30)(work)

    state = stage.run(cheat, repent)
    assert outcome(state) == [("violation", None, 0.0), ("scored", 30.0, 1.4)]
    assert stage.judged == [("30", judge_seed(SEED, 2))]
    assert "frozen.txt" in state.submissions[0].judgings[0].message
    assert state.used_submissions == 2
    first = stage.feedback[0]
    assert first is not None
    assert (first.verdict, first.score, first.submissions_left) == ("violation", 0.0, 2)


def test_a_violation_that_the_judge_saw_scores_zero_and_its_evidence_stays_with_the_operator(stage: Stage) -> None:
    stage.special["cheat"] = lambda logs, seed: write_result(
        logs, {"reward": 0, "violation": 1}, "it read the labels", "open('/tests/labels')"
    )
    state = stage.run(stage.hand_in("cheat"))
    assert outcome(state) == [("violation", None, 0.0)]
    assert state.submissions[0].judgings[0].evidence == "open('/tests/labels')"
    told = stage.feedback[0]
    assert told is not None
    assert told.message == "it read the labels"
    assert "labels')" not in told.text() + told.as_json()


@pytest.mark.parametrize(
    "said", ['{"loss": NaN}', '{"loss": 1e999}', '{"loss": true}', '{"loss": 101}', "{}", "", "[]"]
)
def test_a_result_that_is_no_number_of_its_domain_is_no_measurement(stage: Stage, said: str) -> None:
    stage.special["odd"] = lambda logs, seed: write_text(logs / "reward.json", said)
    state = stage.run(stage.hand_in("odd"), stage.hand_in(30))
    assert outcome(state) == [("no_measurement", None, None), ("scored", 30.0, 1.4)]


def test_no_measurement_is_judged_again_on_the_same_seed_and_forgiven(stage: Stage) -> None:
    tries = []
    stage.special["flaky"] = lambda logs, seed: (
        write_result(logs, {"reward": -20, "loss": 20}) if len(tries) == 2 else tries.append(seed)
    )
    state = stage.run(stage.hand_in("flaky"), submissions=1)
    assert outcome(state) == [("scored", 20.0, 1.6)]
    assert stage.judged == [("flaky", judge_seed(SEED, 1))] * 3
    assert [each.verdict for each in state.submissions[0].judgings] == ["no_measurement", "no_measurement", "scored"]
    assert [each.attempt for each in state.submissions[0].judgings] == [1, 2, 3]


def test_after_three_judgings_without_a_measurement_the_submission_is_given_back(stage: Stage) -> None:
    stage.special["broken"] = unmeasured
    state = stage.run(stage.hand_in("broken"), stage.hand_in(40), stage.hand_in(30), submissions=2)
    assert outcome(state) == [("no_measurement", None, None), ("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    assert len(state.submissions[0].judgings) == 3
    assert state.used_submissions == 2
    first = stage.feedback[0]
    assert first is not None
    assert (first.verdict, first.submissions_left) == ("no_measurement", 2)
    assert "no reward.json" in state.submissions[0].judgings[-1].evidence


def test_three_submissions_in_a_row_without_a_measurement_end_the_run_with_a_way_on(stage: Stage) -> None:
    stage.special["broken"] = unmeasured
    steps = [stage.hand_in("broken"), stage.hand_in("broken"), stage.hand_in("broken"), stage.hand_in(40)]
    agent = FakeAgent(steps)
    planned = stage.plan(agent)
    with pytest.raises(RsiError) as caught:
        stage.work(planned, agent)
    assert "3 submissions in a row gave no measurement" in caught.value.what
    assert "rsi resume staged" in caught.value.next_step
    failed = list(read_events(planned.journal))[-1]
    assert (failed["kind"], failed["status"]) == (Kind.RUN_ENDED, "failed")
    state = stage.work(planned, agent)  # the operator mended the judge: the agent's next candidate is scored
    assert state is not None
    assert outcome(state)[3:] == [("scored", 40.0, 1.2)]
    assert state.status is Status.COMPLETED
    assert state.used_submissions == 1
    assert_whole(planned, state)


@pytest.mark.parametrize(
    ("name", "fault", "times", "verdict"),
    [
        ("test", Fault.START_FAILS, 1, "scored"),
        ("test", Fault.OUT_OF_MEMORY, 2, "scored"),
        ("test", Fault.BOX_VANISHES, 1, "scored"),
        ("judge-0001-*", Fault.CREATE_FAILS, 2, "scored"),
        ("test", Fault.START_FAILS, 3, "no_measurement"),
        ("test", Fault.OUT_OF_MEMORY, 3, "no_measurement"),
    ],
)
def test_a_judge_that_fails_on_our_side(stage: Stage, name: str, fault: Fault, times: int, verdict: str) -> None:
    def begin(work: Workspace) -> None:
        stage.sandbox.inject(name, fault, times=times)  # not before, or it would strike the author's candidates
        stage.hand_in(40)(work)

    state = stage.run(begin)
    assert [one.verdict for one in state.submissions] == [verdict]
    assert len(state.submissions[0].judgings) == min(times + 1, 3)
    assert_whole(folder(), state)


def test_a_judge_that_hangs_is_ended_at_its_limit(tiny_task: Callable[..., Path], stage: Stage) -> None:
    stage.task = tiny_task("hasty", verifier_sec=0.1)

    def begin(work: Workspace) -> None:
        stage.sandbox.inject("test", Fault.HANGS)
        stage.hand_in(40)(work)

    state = stage.run(begin)
    first, second = state.submissions[0].judgings
    assert first.message == "the judge exceeded its limit of 0.1 s"
    assert (second.verdict, second.metric) == ("scored", 40.0)


def test_tests_that_were_changed_during_the_run_measure_nothing(stage: Stage) -> None:
    def tamper(work: Workspace) -> None:
        (folder().tests / "test.sh").write_text("#!/bin/sh\n")
        stage.hand_in(40)(work)

    state = stage.run(tamper)
    assert outcome(state) == [("no_measurement", None, None)]
    assert stage.judged == []


def test_repeats_are_averaged_over_fresh_seeds(tiny_task: Callable[..., Path], stage: Stage) -> None:
    stage.task = tiny_task("repeated", change={'mode = "direct"': 'mode = "direct"\nrepeats = 3'})
    values = iter([10.0, 20.0, 60.0])
    stage.special["noisy"] = lambda logs, seed: write_result(logs, {"loss": next(values), "extra": 7})
    state = stage.run(stage.hand_in("noisy"))
    assert outcome(state) == [("scored", 30.0, 1.4)]
    judging = state.submissions[0].judgings[0]
    assert judging.values == (10.0, 20.0, 60.0)
    assert dict(judging.details) == {"extra": 7}
    seed = judge_seed(SEED, 1)
    assert [each for _, each in stage.judged] == [seed, seed + 1, seed + 2]


def test_one_repeat_that_is_invalid_decides(tiny_task: Callable[..., Path], stage: Stage) -> None:
    stage.task = tiny_task("repeated", change={'mode = "direct"': 'mode = "direct"\nrepeats = 3'})
    said = iter([{"loss": 10.0}, {"reward": 0, "invalid": 1}])
    stage.special["fragile"] = lambda logs, seed: write_result(logs, next(said))
    state = stage.run(stage.hand_in("fragile"))
    assert outcome(state) == [("invalid", None, None)]
    assert len(stage.judged) == 2


def test_an_invalid_candidate_gets_the_number_that_the_contract_names(
    tiny_task: Callable[..., Path], stage: Stage
) -> None:
    stage.task = tiny_task("strict", change={'mode = "direct"': 'mode = "direct"\non_invalid = -1.0'})
    state = stage.run(stage.hand_in("nothing"))
    assert outcome(state) == [("invalid", None, -1.0)]


def test_feedback_holds_no_part_that_the_contract_hides(tiny_task: Callable[..., Path], stage: Stage) -> None:
    stage.task = tiny_task("silent", change={'mode = "direct"': 'mode = "direct"\nfeedback = ["best"]'})
    stage.run(stage.hand_in(41.25), stage.hand_in(43.5), stage.hand_in("nothing"))
    first, second, third = stage.feedback
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.metric, first.score, first.baseline, first.noise, first.best) == (None, None, None, None, 41.25)
    assert (second.best, third.message, third.verdict) == (41.25, "", "invalid")
    outbox = folder().mailbox / "outbox"
    replies = "".join(path.read_text() for path in outbox.glob("*.reply"))
    assert "41.25" in replies
    assert "43.5" not in replies
    status = json.loads((outbox / "status.json").read_text())
    assert "baseline" not in status
    assert status["best"] == 41.25


def test_an_agent_that_never_hands_in_has_its_final_state_judged(stage: Stage) -> None:
    state = stage.run(lambda work: work.write("value.txt", b"value = 25\n"))
    assert outcome(state) == [("scored", 25.0, 1.5)]
    assert state.submissions[0].message == "the workspace as the agent left it"
    assert_whole(folder(), state)


def test_controls_are_judged_once_and_then_named(stage: Stage) -> None:
    first = stage.run(stage.hand_in(40))
    assert [(one.role, one.metric, one.reused_from) for one in first.controls] == [
        ("baseline", 50.0, ""),
        ("floor", 100.0, ""),
    ]
    boxes = len(stage.sandbox.made)
    second = stage.run(stage.hand_in(40), name="second")
    assert [(one.role, one.metric) for one in second.controls] == [("baseline", 50.0), ("floor", 100.0)]
    assert all("staged" in one.reused_from for one in second.controls)
    assert outcome(second) == outcome(first)
    assert not [box for box in stage.sandbox.made[boxes:] if "control" in box.spec.name]
    assert "baseline 50, as measured in run staged on this host" in stage.told


def test_a_control_that_cannot_be_scored_ends_the_run_before_any_agent(stage: Stage) -> None:
    stage.special["50"] = lambda logs, seed: write_result(logs, {"reward": 0, "invalid": 1}, "the author erred")
    agent = FakeAgent([stage.hand_in(40)])
    planned = stage.plan(agent)
    with pytest.raises(RsiError, match="the author's baseline candidate was not scored: invalid: the author erred"):
        stage.work(planned, agent)
    kinds = [event["kind"] for event in read_events(planned.journal)]
    assert Kind.AGENT_STARTED not in kinds
    assert kinds[-1] == Kind.RUN_ENDED
    del stage.special["50"]
    state = stage.work(planned, agent)
    assert state is not None
    assert outcome(state) == [("scored", 40.0, 1.2)]


def test_a_task_that_maximises_scores_by_the_same_formula(tiny_task: Callable[..., Path], stage: Stage) -> None:
    stage.task = tiny_task("rising", change={'direction = "minimize"': 'direction = "maximize"'})
    stage.special["100"] = lambda logs, seed: write_result(logs, {"loss": 10.0})  # the floor
    state = stage.run(stage.hand_in(70), stage.hand_in(10.0), stage.hand_in(70))
    assert outcome(state) == [("scored", 70.0, 1.5), ("scored", 10.0, 0.0), ("scored", 70.0, 1.5)]
    last = stage.feedback[-1]
    assert last is not None
    assert last.best == 70.0


def test_a_plain_harbor_task_is_judged_in_the_workspace_as_it_stands(
    tiny_task: Callable[..., Path], stage: Stage
) -> None:
    stage.task = tiny_task("plain", contract=False)
    seen = []

    def judge(logs: Path, seed: int) -> None:
        over = stage.sandbox.made[-1].spec.over
        seen.append(over.spec.name if over else None)
        (logs / "reward.txt").write_text("0.75\n")

    stage.special["41"] = judge

    def work(work: Workspace) -> None:
        work.write("frozen.txt", b"changed, and nobody minds\n")
        stage.hand_in(41)(work)

    state = stage.run(work)
    assert outcome(state) == [("scored", 0.75, 0.75)]
    assert seen == ["work"]
    assert state.controls == ()
    told = stage.feedback[0]
    assert told is not None
    assert told.metric_name == "reward"


def test_a_stop_while_the_agent_works_is_clean_and_the_run_goes_on(stage: Stage) -> None:
    planned = stage.plan(FakeAgent())

    def ask_to_stop(work: Workspace) -> None:
        planned.stop_flag.touch()
        while True:
            work.wait(0.01)

    stopped = stage.work(planned, FakeAgent([stage.hand_in(40), ask_to_stop]))
    assert stopped is not None
    assert stopped.status is Status.STOPPED
    assert outcome(stopped) == [("scored", 40.0, 1.2)]
    stage.clock.now += 5000
    state = stage.work(planned, FakeAgent([stage.hand_in(40), stage.hand_in(30)]))
    assert state is not None
    assert outcome(state) == [("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    assert state.ledger["down"] == pytest.approx(5000)
    assert state.agent_starts == 2
    assert_whole(planned, state)


def test_a_stop_while_a_judge_works_costs_nothing_and_the_judging_is_repeated(stage: Stage) -> None:
    agent = FakeAgent([stage.hand_in("slow"), stage.hand_in(30)])
    planned = stage.plan(agent)

    def slow(logs: Path, seed: int) -> None:
        planned.stop_flag.touch()
        stage.sandbox.made[-1].sleep(20)

    stage.special["slow"] = slow
    stopped = stage.work(planned, agent)
    assert stopped is not None
    assert stopped.status is Status.STOPPED
    assert stopped.frozen
    assert stopped.submissions[0].verdict is None
    assert stopped.submissions[0].judgings == ()
    stage.special["slow"] = lambda logs, seed: write_result(logs, {"loss": 40.0})
    state = stage.work(planned, agent)
    assert state is not None
    assert outcome(state) == [("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    assert {seed for value, seed in stage.judged if value == "slow"} == {judge_seed(SEED, 1)}
    assert_whole(planned, state)


def test_a_freeze_that_fails_ends_the_run_and_the_submission_is_taken_up_again(stage: Stage) -> None:
    def begin(work: Workspace) -> None:
        stage.sandbox.inject("work", Fault.FREEZE_FAILS)
        stage.hand_in(40)(work)

    agent = FakeAgent([begin, stage.hand_in(30)])
    planned = stage.plan(agent)
    with pytest.raises(RsiError, match="could not be frozen"):
        stage.work(planned, agent)
    state = stage.work(planned, agent)
    assert state is not None
    assert outcome(state) == [("scored", 40.0, 1.2), ("scored", 30.0, 1.4)]
    assert_whole(planned, state)


@pytest.mark.parametrize("when", ["working", "judging"])
def test_a_workspace_whose_host_went_down_goes_on_with_its_files(stage: Stage, when: str) -> None:
    def vanish(work: Workspace) -> None:
        work.write("value.txt", b"value = 20\n")
        stage.sandbox.boxes["staged", "work"].vanish()
        while True:
            work.wait(0.01)

    def vanish_while_judged(work: Workspace) -> None:
        def judge(logs: Path, seed: int) -> None:
            stage.sandbox.boxes["staged", "work"].vanish()
            write_result(logs, {"loss": 40.0})

        stage.special["20"] = judge
        stage.hand_in(20)(work)
        while True:
            work.wait(0.01)

    planned = stage.plan(FakeAgent())
    step = vanish if when == "working" else vanish_while_judged
    with pytest.raises(RsiError, match="the workspace is gone"):
        stage.work(planned, FakeAgent([step]))
    stage.special.clear()
    steps = [lambda work: stage.feedback.append(work.submit("as it was"))] * (1 if when == "working" else 2)
    state = stage.work(planned, FakeAgent(steps))
    assert state is not None
    assert outcome(state)[-1] == ("scored", 20.0, 1.6)
    assert state.work_box == "work-2"
    assert state.status is Status.COMPLETED
    assert "started again on the files" in " ".join(state.notes)
    assert_whole(planned, state)
    assert stage.sandbox.boxes == {}


def test_the_agent_did_not_end_where_its_box_took_its_process_along(stage: Stage) -> None:
    def agent(box: FakeBox, env: Mapping[str, str], workdir: Path, logs: Path) -> int:
        if box.spec.name == "work":
            (workdir / "value.txt").write_text("value = 20\n")
            box.vanish()
        return 0

    stage.commands["agent"] = agent
    planned = stage.plan(Script(("work",)), ("work",))
    with pytest.raises(RsiError, match="the workspace is gone"):
        stage.work(planned, Script(("work",)))
    state = stage.work(planned, Script(("work",)))
    assert state is not None
    assert (state.agent_code, state.agent_starts) == (0, 2)
    assert outcome(state) == [("scored", 20.0, 1.6)]
