"""One judging: a fresh box, the private tests, one result file, one finding.

Whatever goes wrong on our side is `no_measurement`; only what the judge itself wrote can be a score, an invalid
candidate or a violation.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import RsiError
from harness.run.disk import JudgeDisk, OverUse
from harness.run.reward import read_result
from harness.run.verdict import Finding, Verdict
from harness.sandbox.base import (
    NO_NETWORK,
    Box,
    BoxSpec,
    Exit,
    Image,
    Limits,
    Mount,
    Network,
    Placement,
    Process,
    Role,
    Sandbox,
    Unavailable,
)
from harness.task.contract import Contract
from harness.task.digest import digest_tree

Watch = Callable[[], None]
"""Is called many times a second while a judge works; raising ends the judging."""

MAX_OUTPUT = 16 << 20
"""Most bytes kept of what a judge prints; it is for the operator only."""


class StopRequested(RsiError):
    """The operator asked the run to stop; it can be resumed."""


@dataclass(frozen=True)
class Court:
    """Everything that stays the same from one judging of a run to the next."""

    run: str
    sandbox: Sandbox
    image: Image
    contract: Contract | None
    tests: Path
    tests_digest: str
    timeout: float
    limits: Limits
    network: Network = NO_NETWORK
    """Only a plain Harbor task may ask for it."""

    @property
    def repeats(self) -> int:
        """How often each candidate is judged."""
        return self.contract.evaluation.repeats if self.contract else 1


@dataclass(frozen=True)
class Candidate:
    """What is judged: files over the clean image, or a frozen box as it stands (Harbor's `work`)."""

    placement: Placement | None = None
    over: Box | None = None


def judge(court: Court, candidate: Candidate, *, label: str, logs: Path, seed: int, watch: Watch) -> Finding:
    """Judge a candidate `repeats` times on fresh seeds; the metric is their mean, anything but a score ends it."""
    findings = []
    for index in range(court.repeats):
        finding = judge_once(
            court, candidate, label=f"{label}-{index + 1}", logs=logs / str(index + 1), seed=seed + index, watch=watch
        )
        if finding.verdict is not Verdict.SCORED or finding.metric is None:
            return finding
        findings.append(finding)
    values = tuple(finding.metric for finding in findings if finding.metric is not None)
    last = findings[-1]
    return Finding(
        Verdict.SCORED,
        statistics.fmean(values),
        message=last.message,
        evidence=last.evidence,
        details=last.details,
        values=values,
    )


def judge_once(court: Court, candidate: Candidate, *, label: str, logs: Path, seed: int, watch: Watch) -> Finding:
    """Judge a candidate once."""
    if digest_tree(court.tests) != court.tests_digest:
        return _no_measurement("the tests are no longer those of the plan", f"{court.tests} was changed")
    result = logs / "verifier"
    result.mkdir(parents=True)
    result.chmod(0o700)
    try:
        with _box(court, candidate, label, result) as box:
            process = box.start(
                "test",
                [box.path("/tests/test.sh")],
                output=logs / "output.log",
                env=_environment(court, box, seed),
                max_output=MAX_OUTPUT,
            )
            end = wait(process, court.timeout, JudgeDisk(box, court.limits.storage_mb).guard(watch))
    except (StopRequested, Unavailable):  # no word about this candidate: the judging is repeated after a resume
        raise
    except OverUse:
        return Finding(
            Verdict.INVALID, message=f"the judge's disk was filled: {court.limits.storage_mb} MiB are allowed"
        )
    except (RsiError, OSError) as error:
        return _no_measurement("the judge could not be run", str(error))
    # The box is gone with every process in it: nothing can change the result any more.
    if end.timed_out:
        return _no_measurement(f"the judge exceeded its limit of {court.timeout:g} s", "")
    finding = read_result(result, court.contract)
    if finding.verdict is Verdict.NO_MEASUREMENT:
        evidence = f"{finding.evidence} {_ending(end)}\n{_tail(logs / 'output.log')}"
        return _no_measurement(finding.message, evidence.strip())
    return finding


def wait(process: Process, timeout: float, watch: Watch) -> Exit:
    """Wait for a process, calling `watch` meanwhile; at the timeout it is killed."""
    deadline = time.monotonic() + timeout
    pause = 0.002
    while (end := process.poll()) is None:
        if time.monotonic() >= deadline:
            process.kill()
            return Exit(None, timed_out=True)
        watch()
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    return end


@contextmanager
def _box(court: Court, candidate: Candidate, label: str, result: Path) -> Iterator[Box]:
    name = f"judge-{label}"
    left = court.sandbox.attach(court.run, name)
    if left is not None:  # an engine died while this very judging ran
        left.remove()
    box = court.sandbox.create(
        BoxSpec(
            run=court.run,
            name=name,
            role=Role.JUDGE,
            image=court.image,
            network=court.network,
            limits=court.limits,
            mounts=(Mount(court.tests, "/tests"), Mount(result, "/logs/verifier", read_only=False)),
            placement=candidate.placement,
            over=candidate.over,
        )
    )
    try:
        yield box
    finally:
        box.remove()


def _environment(court: Court, box: Box, seed: int) -> dict[str, str]:
    return {
        "RSI_SEED": str(seed),
        "RSI_LEVEL": str(court.sandbox.level),
        "RSI_TESTS": box.path("/tests"),
        "RSI_LOGS": box.path("/logs/verifier"),
        "RSI_WORKDIR": box.path(court.image.workdir),
        # Scores must not depend on the host's locale, time zone or hash seed.
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0",
    }


def _tail(log: Path) -> str:
    """Return the end of what the judge printed; evidence is for the operator alone."""
    try:
        return log.read_bytes()[-2000:].decode("utf-8", "replace")
    except OSError:
        return ""


def _ending(end: Exit) -> str:
    if end.out_of_memory:
        return "(the judge ran out of memory)"
    return f"(the judge's test.sh ended with status {end.code})"


def _no_measurement(message: str, evidence: str) -> Finding:
    return Finding(Verdict.NO_MEASUREMENT, message=message, evidence=evidence)
