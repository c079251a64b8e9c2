"""Outside the loop, on fake boxes: judging again, judging a folder, planning and cleaning up."""

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import SEED, Stage, outcome, write_result

from harness import paths
from harness.agents.base import Workspace
from harness.agents.fake import FakeAgent
from harness.agents.script import Script
from harness.errors import InputError, PrerequisiteError, RefusedError, RsiError
from harness.run.again import judge_again, judge_folder
from harness.run.clean import clean, idle_runs
from harness.run.create import Wishes, check_run, create_run
from harness.run.folder import RunFolder
from harness.run.journal import read_events
from harness.run.seeds import judge_seed
from harness.run.state import Kind, State, fold
from harness.sandbox.base import Level
from harness.sandbox.fake import FakeSandbox, Fault
from harness.task.load import load_task


@pytest.fixture
def run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run with a score, a violation without a snapshot, and an invalid candidate."""
    monkeypatch.setattr("harness.run.setting.get_sandbox", lambda name, level: stage.sandbox)

    def cheat(work: Workspace) -> None:
        work.write("frozen.txt", b"changed\n")
        work.submit("cheat")
        work.write("frozen.txt", b"must stay\n")

    stage.run(stage.hand_in(40), cheat, stage.hand_in("nothing"))
    return RunFolder(paths.runs() / "staged")


def now(folder: RunFolder) -> State:
    """Return what the journal says."""
    return fold(read_events(folder.journal))


def test_all_submissions_with_a_snapshot_are_judged_again_on_the_same_seeds(stage: Stage, run: RunFolder) -> None:
    first = list(stage.judged)
    again = judge_again(run, None, stage.told.append)
    assert [each.number for each in again] == [1, 3]
    assert stage.judged[len(first) :] == first
    assert [(each.after.verdict, each.after.metric) for each in again] == [("scored", 40.0), ("invalid", None)]
    one = now(run).submissions[0]
    assert [judging.again for judging in one.judgings] == [False, True]
    assert one.score == 1.2
    assert not list((run.path / "trees").iterdir())
    assert stage.sandbox.boxes == {}


def test_a_mended_judge_gives_new_verdicts_beside_the_old_ones(stage: Stage, run: RunFolder) -> None:
    stage.special["40"] = lambda logs, seed: write_result(logs, {"loss": 45.0})
    mended = stage.task / "tests" / "test.sh"
    mended.write_text(mended.read_text() + "# mended\n")
    (only,) = judge_again(run, [1], stage.told.append)
    assert (only.before.metric, only.after.metric, only.after.score) == (40.0, 45.0, 1.1)
    assert "the judge differs from the run's own" in " ".join(stage.told)
    event = list(read_events(run.journal))[-1]
    assert event["kind"] == Kind.REJUDGED
    assert event["tests"] != run.read_plan().tests_digest


def test_our_own_failure_takes_no_verdict_back(stage: Stage, run: RunFolder) -> None:
    stage.sandbox.inject("test", Fault.START_FAILS)
    (only,) = judge_again(run, [1], stage.told.append)
    assert (only.after.verdict, only.after.metric) == ("scored", 40.0)
    assert only.after.judgings[-1].verdict == "no_measurement"


def test_the_run_s_own_tests_serve_where_the_task_is_gone(stage: Stage, run: RunFolder) -> None:
    shutil.rmtree(stage.task)
    (only,) = judge_again(run, [1], stage.told.append)
    assert only.after.metric == 40.0


@pytest.mark.parametrize(("number", "said"), [(2, "has no snapshot"), (9, "does not exist"), (0, "does not exist")])
def test_what_cannot_be_judged_again(stage: Stage, run: RunFolder, number: int, said: str) -> None:
    with pytest.raises(InputError, match=f"submission {number} {said}") as caught:
        judge_again(run, [1, number], stage.told.append)
    assert "1, 3" in caught.value.next_step
    assert len(now(run).submissions[0].judgings) == 1


def test_a_run_at_work_is_not_judged_again(stage: Stage, run: RunFolder) -> None:
    with run.take_lock(), pytest.raises(RefusedError):
        judge_again(run, None, stage.told.append)


def test_a_run_judged_again_after_a_kill_is_not_charged_for_the_time_between(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.setting.get_sandbox", lambda name, level: stage.sandbox)
    agent = FakeAgent([stage.hand_in(40), stage.hand_in(30)])
    planned = stage.plan(agent)
    assert stage.work(planned, agent, lambda event, state: event["kind"] == Kind.WORK_THAWED) is None
    before = now(planned)
    monkeypatch.setattr("harness.run.journal.steady_clock", lambda: lambda: stage.clock.now + 7200)
    judge_again(planned, [1], stage.told.append)
    after = now(planned)
    assert after.ledger["working"] == before.ledger["working"]
    assert after.wall_sec == before.wall_sec  # an operator's judging is no part of the run
    monkeypatch.undo()


def test_a_folder_is_judged_as_a_candidate(stage: Stage, tmp_path: Path) -> None:
    task, candidate = load_task(stage.task), tmp_path / "candidate"
    candidate.mkdir()
    (candidate / "value.txt").write_text("value = 33\n")
    (candidate / "not-delivered").symlink_to("/etc/passwd")
    found = judge_folder(task, candidate, stage.sandbox, seed=SEED, tell=stage.told.append)
    assert (found.verdict, found.metric) == ("scored", 33.0)
    assert stage.judged == [("33", SEED)]
    (candidate / "value.txt").unlink()
    assert judge_folder(task, candidate, stage.sandbox, seed=1, tell=print).verdict == "invalid"
    (candidate / "value.txt").symlink_to("/etc/passwd")
    assert judge_folder(task, candidate, stage.sandbox, seed=1, tell=print).verdict == "violation"
    assert stage.sandbox.boxes == {}
    assert not list((paths.home() / "benches").iterdir())


def test_a_folder_cannot_be_judged_without_a_contract_or_folder(
    stage: Stage, tiny_task: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="must be a folder"):
        judge_folder(load_task(stage.task), tmp_path / "none", stage.sandbox, seed=1, tell=print)
    plain = load_task(tiny_task("plain", contract=False))
    with pytest.raises(InputError, match="only a task with a contract"):
        judge_folder(plain, tmp_path, stage.sandbox, seed=1, tell=print)


def test_a_run_is_cleaned_and_then_deleted(stage: Stage, run: RunFolder) -> None:
    run.stop_flag.touch()
    (run.path / "trees" / "left").mkdir(parents=True)
    assert [folder.name for folder in idle_runs()] == ["staged"]
    before = sorted(path.name for path in run.path.iterdir())
    assert clean(run, delete=True, dry=True) == [f"the record {run.path}"]
    assert sorted(path.name for path in run.path.iterdir()) == before
    clean(run, delete=False, dry=False)
    assert not run.stop_flag.exists()
    assert not (run.path / "trees").exists()
    assert run.journal.exists()
    clean(run, delete=True, dry=False)
    assert not run.path.exists()
    assert idle_runs() == []


def test_a_run_at_work_is_not_cleaned(run: RunFolder) -> None:
    with run.take_lock():
        assert idle_runs() == []
        with pytest.raises(RefusedError) as caught:
            clean(run, delete=True, dry=False)
    assert "rsi stop staged" in caught.value.next_step
    assert run.path.exists()


def test_a_plan_says_everything_and_closes_its_folder(stage: Stage) -> None:
    planned = stage.plan(FakeAgent(), submissions=2, hours=0.5)
    plan = planned.read_plan()
    assert (plan.submissions, plan.hours, plan.seed, plan.judge_base, plan.level) == (2, 0.5, SEED, "clean", "fake")
    assert plan.contract is not None
    assert plan.contract["metric"]["name"] == "loss"
    created = list(read_events(planned.journal))
    assert [event["kind"] for event in created] == [Kind.RUN_CREATED]
    modes = {name: stat.S_IMODE((planned.path / name).stat().st_mode) for name in ("plan.json", "journal.jsonl")}
    assert set(modes.values()) == {0o600}
    for closed in ("tests", "solution", "judgings", "snapshots"):
        assert stat.S_IMODE((planned.path / closed).stat().st_mode) == 0o700
    assert stat.S_IMODE(planned.path.stat().st_mode) == 0o700
    assert str(judge_seed(SEED, 1)) not in json.dumps(plan.as_json())


def test_a_name_is_taken_once(stage: Stage) -> None:
    stage.plan(FakeAgent())
    with pytest.raises(InputError, match="there is a run staged already"):
        stage.plan(FakeAgent())


def test_nothing_is_left_of_a_run_that_could_not_be_planned(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.sandbox.inject("tiny", Fault.BUILD_FAILS)
    with pytest.raises(RsiError, match="could not be built"):
        stage.plan(FakeAgent())
    monkeypatch.setattr("harness.run.create.host_facts", lambda: {}["gone"])
    with pytest.raises(KeyError):
        stage.plan(FakeAgent())
    assert not paths.runs().exists() or list(paths.runs().iterdir()) == []


def test_what_stands_against_a_run(stage: Stage, tiny_task: Callable[..., Path]) -> None:
    task = load_task(stage.task)
    weak = FakeSandbox()
    weak.level = Level.PROCESS
    with pytest.raises(RefusedError, match="almost no isolation"):
        check_run(task, Script(("true",)), weak, Wishes())
    assert check_run(task, Script(("true",)), weak, Wishes(weak=True))["submissions"] == 3
    assert check_run(task, FakeAgent(), weak, Wishes(hours=2))["hours"] == 2
    listed = tiny_task(
        "listed", change={'network_mode = "no-network"': 'network_mode = "allowlist"\nallowed_hosts = ["a.example"]'}
    )
    with pytest.raises((PrerequisiteError, InputError)):
        check_run(load_task(listed), FakeAgent(), stage.sandbox, Wishes())
    (stage.task / "solution" / "solve.sh").unlink()
    oracle = FakeAgent()
    oracle.needs_solution = True
    with pytest.raises(InputError, match="needs the author's solution"):
        create_run(load_task(stage.task), oracle, (), stage.sandbox, Wishes(), print)


def test_outcomes_are_as_they_were(run: RunFolder) -> None:
    assert outcome(now(run)) == [("scored", 40.0, 1.2), ("violation", None, 0.0), ("invalid", None, None)]
