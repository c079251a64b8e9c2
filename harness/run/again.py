"""Judging outside the loop: a submission of a run again, or any folder as a candidate."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import InputError
from harness.run.bench import open_bench
from harness.run.capture import lay_out
from harness.run.control import Bench, untouched
from harness.run.create import copy_scripts
from harness.run.engine import kept_image_files
from harness.run.folder import RunFolder
from harness.run.judging import Candidate, Court, judge
from harness.run.recorder import Recorder
from harness.run.scoring import score_of
from harness.run.seeds import judge_seed
from harness.run.setting import Setting, planned_sandbox
from harness.run.state import Kind, Submission
from harness.run.store.snapshot import Snapshot
from harness.run.store.walker import CandidateFault
from harness.run.verdict import Finding
from harness.sandbox.base import Sandbox
from harness.task.digest import digest_tree
from harness.task.task import Task

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Again:
    """A submission's verdict before and after it was judged again."""

    number: int
    before: Submission
    after: Submission


def judge_again(folder: RunFolder, numbers: list[int] | None, tell: Tell, *, tests: Path | None = None) -> list[Again]:
    """Judge submissions of a run again, all of them for None, and record the outcome beside the old one.

    The tests are the task's present ones where its folder is still there, so that a mended judge takes effect; else the
    run's own copy.

    Raises:
        InputError: for a number that the run does not have, or a submission without a snapshot.
        RefusedError: while an engine works on the run.
    """
    plan = folder.read_plan()
    with folder.take_lock():
        recorder = Recorder.open(folder.journal, lambda _event, _state: None)
        try:
            chosen = _chosen(recorder, numbers)
            source = tests or Path(plan.task_folder) / "tests"
            setting = Setting.of(folder, plan, planned_sandbox(plan), tell, lambda: None)
            with tempfile.TemporaryDirectory(prefix="rsi-tests-") as temporary:
                court = _court(setting, source if source.is_dir() else folder.tests, Path(temporary), tell)
                return [_again(setting, recorder, court, number) for number in chosen]
        finally:
            recorder.close()


def _chosen(recorder: Recorder, numbers: list[int] | None) -> list[int]:
    submissions = recorder.state.submissions
    kept = [one.number for one in submissions if one.snapshot and one.verdict is not None]
    if numbers is None:
        return kept
    for number in numbers:
        if number not in kept:
            there = "has no snapshot" if 1 <= number <= len(submissions) else "does not exist"
            listed = ", ".join(map(str, kept)) or "none"
            raise InputError(f"submission {number} {there}", next_step=f"these can be judged again: {listed}")
    return numbers


def _court(setting: Setting, source: Path, temporary: Path, tell: Tell) -> Court:
    """Return the run's court with a private copy of the tests, which nobody can change meanwhile."""
    copy = temporary / "tests"
    copy_scripts(source, copy)
    temporary.chmod(0o755)
    digest = digest_tree(copy)
    if digest != setting.plan.tests_digest:
        tell(f"the judge differs from the run's own: tests {digest[:12]} instead of {setting.plan.tests_digest[:12]}")
    return replace(setting.court, tests=copy, tests_digest=digest)


def _again(setting: Setting, recorder: Recorder, court: Court, number: int) -> Again:
    before = recorder.state.submissions[number - 1]
    assert before.snapshot  # _chosen saw to it
    tree = setting.folder.tree(f"again-{number}")
    image_files = kept_image_files(setting.folder)
    label = f"again-{number:04d}-{len(before.judgings) + 1}"
    begun = time.monotonic()
    try:
        placement = lay_out(setting.store, setting.store.load(before.snapshot), image_files, tree)
        logs = setting.folder.judging(label)
        shutil.rmtree(logs, ignore_errors=True)
        seed = judge_seed(setting.plan.seed, number)
        finding = judge(court, Candidate(placement), label=label, logs=logs, seed=seed, watch=lambda: None)
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    score = score_of(setting.contract, recorder.state, finding)
    recorder.record(
        Kind.REJUDGED,
        number=number,
        verdict=finding.verdict.value,
        metric=finding.metric,
        score=score,
        values=list(finding.values),
        message=finding.message,
        evidence=finding.evidence,
        tests=court.tests_digest,
        seconds=round(time.monotonic() - begun, 6),
        reason="judged again by the operator",
    )
    return Again(number, before, recorder.state.submissions[number - 1])


def judge_folder(task: Task, candidate: Path, sandbox: Sandbox, *, seed: int, tell: Tell) -> Finding:
    """Judge a folder of candidate files as if it were the workdir of a submission.

    Raises:
        InputError: when the task has no contract, or the folder is none.
    """
    if not candidate.is_dir():
        raise InputError("the candidate must be a folder", where=str(candidate))
    with open_bench(task, sandbox, tell=tell, seed=seed) as bench:
        image_files = untouched(bench)
        try:
            snapshot = _take(bench, candidate)
        except CandidateFault as fault:
            return Finding(fault.verdict, message=fault.message, evidence=fault.evidence)
        placement = lay_out(bench.store, snapshot, image_files, bench.folder / "tree")
        logs = bench.folder / "judging"
        return judge(bench.court, Candidate(placement), label="folder", logs=logs, seed=seed, watch=bench.watch)


def _take(bench: Bench, candidate: Path) -> Snapshot:
    fd = os.open(candidate, os.O_RDONLY | os.O_DIRECTORY)
    try:
        snapshot = bench.store.take(fd, bench.boundary)
    finally:
        os.close(fd)
    bench.store.settle(snapshot)
    return snapshot
