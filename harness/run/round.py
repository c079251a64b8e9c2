"""One submission from the request to the thaw.

Each step first looks at what the journal already holds, so the same code serves a first pass and a pass after a
crash: whatever an earlier engine finished is not done again, whatever it left half done is done anew.
"""

import shutil
import time

from harness.agents.feedback import Feedback
from harness.run.budget import hours_left, submissions_left
from harness.run.capture import capture, lay_out
from harness.run.judging import Candidate, judge
from harness.run.scene import Scene
from harness.run.scoring import feedback_of, score_of
from harness.run.seeds import judge_seed
from harness.run.state import Kind, Submission
from harness.run.verdict import Finding, Verdict

MAX_ATTEMPTS = 3
"""A judging that gave no measurement is repeated at most twice."""


def open_submission(scene: Scene, request: str, message: str) -> Submission:
    """Record that a submission was handed in."""
    number = len(scene.state.submissions) + 1
    return scene.record(Kind.SUBMISSION_OPENED, number=number, id=request, message=message).submissions[-1]


def play(scene: Scene, number: int) -> None:
    """Take a submission from wherever the journal says it stands to its verdict, its feedback and the thaw."""
    if scene.submission(number).verdict is None:
        freeze(scene, number)
        finding = _finding(scene, number)
        _close(scene, number, finding)
    answer(scene, number)
    thaw(scene, number)


def freeze(scene: Scene, number: int) -> None:
    """Stop the workspace; the box is told again after a crash, which does no harm."""
    scene.box.freeze()
    if not scene.state.frozen:
        scene.record(Kind.WORK_FROZEN, number=number)


def thaw(scene: Scene, number: int) -> None:
    """Let the workspace go on."""
    if scene.agent_may_run:
        scene.box.thaw()
    if scene.state.frozen:
        scene.record(Kind.WORK_THAWED, number=number)


def _finding(scene: Scene, number: int) -> Finding:
    """Return the verdict of a submission, judging it as often as it takes."""
    settled = _settled(scene.submission(number))
    if settled is not None:
        return settled
    fault = _snapshot(scene, number)
    if fault is not None:
        _record_judging(scene, number, 0, fault, 0.0)
        return fault
    while True:
        one = scene.submission(number)
        attempt = len(one.judgings) + 1
        finding = _judge(scene, one, attempt)
        if finding.verdict is not Verdict.NO_MEASUREMENT or attempt >= MAX_ATTEMPTS:
            return finding
        scene.tell(f"submission {number}: no measurement ({finding.message}); judging again")


def _settled(one: Submission) -> Finding | None:
    if not one.judgings:
        return None
    last = one.judgings[-1]
    if last.verdict is Verdict.NO_MEASUREMENT and len(one.judgings) < MAX_ATTEMPTS:
        return None
    return Finding(last.verdict, last.metric, last.message, last.evidence, dict(last.details), last.values)


def _snapshot(scene: Scene, number: int) -> Finding | None:
    """Take the snapshot unless the journal has it; return the fault of a candidate that has none."""
    if scene.submission(number).snapshot:
        return None
    taken = capture(scene.store, scene.box, scene.boundary, scene.frozen_watch)
    snapshot = taken.snapshot
    scene.record(
        Kind.SNAPSHOT_TAKEN,
        number=number,
        snapshot=snapshot.digest if snapshot else "",
        files=snapshot.files if snapshot else 0,
        bytes=snapshot.size if snapshot else 0,
        frozen_sec=round(taken.frozen_sec, 6),
    )
    # A plain Harbor task is judged in the workspace as it stands; its snapshot is only kept for later.
    return taken.fault if scene.strict else None


def _judge(scene: Scene, one: Submission, attempt: int) -> Finding:
    label = f"{one.number:04d}-{attempt}"
    logs = scene.folder.judging(label)
    if logs.exists():
        shutil.rmtree(logs)
    seed = judge_seed(scene.plan.seed, one.number)
    scene.record(Kind.JUDGING_STARTED, number=one.number, attempt=attempt, seed=seed)
    begun = time.monotonic()
    candidate = _candidate(scene, one)
    try:
        finding = judge(scene.court, candidate, label=label, logs=logs, seed=seed, watch=scene.watch)
    finally:
        if candidate.placement is not None:
            shutil.rmtree(candidate.placement.tree, ignore_errors=True)
    _record_judging(scene, one.number, attempt, finding, time.monotonic() - begun)
    return finding


def _candidate(scene: Scene, one: Submission) -> Candidate:
    if scene.plan.judge_base == "work":
        return Candidate(over=scene.box)
    assert one.snapshot  # _snapshot saw to it
    snapshot = scene.store.load(one.snapshot)
    return Candidate(lay_out(scene.store, snapshot, scene.image_files, scene.folder.tree(snapshot.digest)))


def _record_judging(scene: Scene, number: int, attempt: int, finding: Finding, seconds: float) -> None:
    scene.record(
        Kind.JUDGING_ENDED,
        number=number,
        attempt=attempt,
        verdict=finding.verdict.value,
        metric=finding.metric,
        values=list(finding.values),
        message=finding.message,
        evidence=finding.evidence,
        details=finding.details,
        seconds=round(seconds, 6),
    )


def _close(scene: Scene, number: int, finding: Finding) -> None:
    score = score_of(scene.contract, scene.state, finding)
    one = scene.submission(number)
    scene.keep_text(one, finding)
    scene.record(
        Kind.SUBMISSION_CLOSED, number=number, verdict=finding.verdict.value, metric=finding.metric, score=score
    )


def answer(scene: Scene, number: int) -> Feedback:
    """Give the agent its feedback; an answer that is there already stays."""
    one = scene.submission(number)
    feedback = feedback_of(
        scene.contract,
        scene.state,
        one,
        submissions_left=submissions_left(scene.limits, scene.state),
        hours_left=hours_left(scene.limits, scene.state, scene.now()),
    )
    code = {Verdict.SCORED: 0, Verdict.NO_MEASUREMENT: 4}.get(one.verdict or Verdict.NO_MEASUREMENT, 1)
    scene.reply(one.id, code, feedback)
    return feedback
