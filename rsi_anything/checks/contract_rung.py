"""The first rung: the task can be read, and its contract makes sense to somebody who has to keep it."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError
from harness.task.contract import Contract, Direction, FeedbackPart, Mode
from harness.task.digest import digest_tree
from harness.task.globs import any_matches, overlap
from harness.task.harbor import NetworkMode, unsupported
from harness.task.load import CONTRACT, FILE, load_task, read_task_file
from harness.task.positions import KeyPath, Positions
from harness.task.problems import Kind, Problem, TaskError
from harness.task.task import Task
from rsi_anything.checks.agreement import disagreements
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.ladder import Context, Outcome
from rsi_anything.checks.rules import raised

LOOPS = 10
"""Rounds of work and judging below which a run teaches little."""
WIDEST = 1e9
"""Width of a domain above which it catches no broken number."""
_DOWN = re.compile(r"loss|error|nll|perplexity|ppl|rmse|mse|mae|latency|seconds|regret|bits", re.IGNORECASE)
_UP = re.compile(r"accuracy|f1|auc|precision|recall|reward|throughput|r2|bleu|win_?rate", re.IGNORECASE)
_RATIO = re.compile(r"(?:^|_)r2(?:_|$)", re.IGNORECASE)
_ENDS = (".", "?", "\u3002", "\uff1f")
"""Marks that end a sentence; the last two are their wide forms."""
_SEVERAL = re.compile(r"\w{3,}[.?!]\s+[A-Z]|[\u3002\uff1f\uff01]\s*\w")
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_RULE = {
    Kind.SYNTAX: "contract/syntax",
    Kind.UNKNOWN_KEY: "contract/unknown-key",
    Kind.MISSING_KEY: "contract/missing-key",
    Kind.WRONG_VALUE: "contract/wrong-value",
    Kind.CONTRADICTION: "contract/contradiction",
    Kind.FILE: "contract/file",
    Kind.LINK: "contract/link",
}


def climb(folder: Path, _context: Context) -> Outcome:
    """Return what is wrong with the task's files and contract."""
    try:
        task = load_task(folder)
    except TaskError as error:
        return Outcome([of_problem(problem) for problem in error.problems])
    except InputError as error:
        return Outcome([raised("contract/file", error.what, file=error.where, fix=error.next_step)])
    findings = list(_harbor(task))
    if task.contract is None:
        reason = "no [metadata.rsi]: the task runs with Harbor's own meaning, without baseline, boundary and budget"
        findings.append(raised("contract/none", reason, file=FILE, fix="make a contract with `rsi new`"))
    else:
        findings += _Sense(task, task.contract).findings()
    measured = {"digest": task.digest, "tests_digest": task.tests_digest, "environment_digest": task.environment_digest}
    return Outcome(findings, measured)


def of_problem(problem: Problem) -> Finding:
    """Return a problem of the loader as a finding."""
    reason = f"{problem.key}: {problem.reason}" if problem.key else problem.reason
    return raised(_RULE[problem.kind], reason, file=problem.file, line=problem.line, fix=problem.fix)


def _harbor(task: Task) -> Iterator[Finding]:
    # A contract promises that the task runs here; a Harbor task may well be meant for other harnesses.
    weight = Severity.ERROR if task.contract is not None else Severity.WARNING
    for reason in unsupported(task.config, task.folder):
        fix = "leave it out, or run the task in a harness that has it"
        yield raised("contract/unsupported", reason, file=FILE, fix=fix, severity=weight)


class _Sense:
    """The contract of one task, looked at part by part."""

    def __init__(self, task: Task, contract: Contract) -> None:
        self.task = task
        self.contract = contract
        self.positions: Positions = read_task_file((task.folder / FILE).read_text(encoding="utf-8")).positions

    def findings(self) -> list[Finding]:
        """Return everything that is unwise or wrong."""
        parts = (
            self._reference,
            self._loops,
            self._times,
            self._metric,
            self._feedback,
            self._words,
            self._boundary,
            self._knobs,
            self._floor,
            self._judge,
            self._files,
            self._texts,
        )
        return [finding for part in parts for finding in part()]

    def _raise(self, rule: str, key: KeyPath, reason: str, fix: str, severity: Severity | None = None) -> Finding:
        line = self.positions.line((*CONTRACT, *key))
        return raised(rule, reason, file=FILE, line=line, fix=fix, severity=severity)

    def _reference(self) -> Iterator[Finding]:
        reference = self.contract.reference
        key: KeyPath = ("reference",)
        numbers = (reference.baseline, reference.noise, reference.floor, reference.judge_sec)
        if all(value is None for value in numbers):
            yield self._raise("contract/no-reference", key, "baseline, noise and floor are not measured yet", _MEASURE)
            return
        if reference.tests_digest is None or (reference.baseline is not None and reference.repeats is None):
            reason = "numbers without tests_digest and repeats: they look typed in, not measured"
            yield self._raise("contract/typed-reference", key, reason, _MEASURE)
        elif reference.tests_digest != digest_tree(self.task.tests):
            reason = "tests/ has changed since the numbers were measured"
            yield self._raise("contract/stale-reference", (*key, "tests_digest"), reason, _MEASURE)
        if reference.baseline is None or reference.floor is None:
            return
        if not self.contract.improves(reference.baseline, reference.floor):
            reason = f"the baseline {reference.baseline:g} is no better than the floor {reference.floor:g}"
            yield self._raise(
                "contract/weak-baseline", key, reason, "choose a floor that knows nothing, or a real recipe"
            )
        elif abs(reference.baseline - reference.floor) <= 3 * (reference.noise or 0.0):
            reason = f"baseline and floor lie within three times the noise {reference.noise:g}"
            yield self._raise(
                "contract/weak-baseline", key, reason, "raise evaluation.repeats or choose a finer metric"
            )

    def _loops(self) -> Iterator[Finding]:
        budget, judge_sec = self.contract.budget, self.contract.reference.judge_sec or 0.0
        if budget.submissions < LOOPS:
            reason = f"{budget.submissions} submissions are fewer than {LOOPS} rounds"
            yield self._raise("contract/few-loops", ("budget", "submissions"), reason, f"allow {LOOPS} or more")
        least = max(budget.cooldown_sec, judge_sec * self.contract.evaluation.repeats)
        loops = int(budget.hours * 3600 // least) if least else LOOPS
        if loops < LOOPS:
            reason = f"a round takes {least:g} s at least, so {budget.hours:g} hours hold {loops}, fewer than {LOOPS}"
            yield self._raise("contract/few-loops", ("budget", "hours"), reason, "give more hours or judge faster")

    def _times(self) -> Iterator[Finding]:
        measured, limit = self.contract.reference.judge_sec, self.task.config.verifier.timeout_sec
        line = self.positions.line(("verifier", "timeout_sec")) or self.positions.line(("verifier",))
        if measured is not None and limit < 2 * measured:
            severity = Severity.ERROR if limit <= measured else Severity.WARNING
            reason = f"verifier.timeout_sec is {limit:g} s, yet one judging took {measured:g} s"
            fix = f"allow {4 * measured:.0f} s"
            yield raised("contract/judge-time", reason, file=FILE, line=line, fix=fix, severity=severity)
        agent, hours = self.task.config.agent.timeout_sec, self.contract.budget.hours
        if agent is not None and agent < hours * 3600:
            line = self.positions.line(("agent", "timeout_sec"))
            reason = f"agent.timeout_sec is {agent:g} s, less than the {hours:g} hours of the budget"
            yield raised(
                "contract/agent-time", reason, file=FILE, line=line, fix=f"set it to {hours * 3600:.0f} or more"
            )

    def _metric(self) -> Iterator[Finding]:
        metric, reference = self.contract.metric, self.contract.reference
        key: KeyPath = ("metric",)
        # A ratio has no unit: its domain, or for r2 its name, says that it is one.
        ratio = (metric.lowest >= 0 and metric.highest <= 1) or _RATIO.search(metric.name)
        if not metric.unit.strip() and not ratio:
            fix = "write it as people do; a ratio has none, and a domain from 0 to 1"
            yield self._raise("contract/unit", key, "the metric has no unit", fix)
        against = _UP if metric.direction is Direction.MINIMIZE else _DOWN
        agrees = _DOWN if metric.direction is Direction.MINIMIZE else _UP
        if against.search(metric.name) and not agrees.search(metric.name):
            reason = f"a metric called {metric.name} is to {metric.direction}"
            yield self._raise("contract/direction", (*key, "direction"), reason, "check the direction or the name")
        if metric.highest - metric.lowest > WIDEST:
            reason = f"the domain {metric.lowest:g} to {metric.highest:g} would let any broken number pass"
            yield self._raise("contract/domain", (*key, "highest"), reason, "state the range that is possible at all")
        best = metric.lowest if metric.direction is Direction.MINIMIZE else metric.highest
        if reference.baseline is not None and reference.baseline == best:
            reason = f"the baseline {reference.baseline:g} is the best value there can be, so nothing can beat it"
            yield self._raise("contract/domain", key, reason, "choose a harder evaluation")

    def _feedback(self) -> Iterator[Finding]:
        evaluation, reference = self.contract.evaluation, self.contract.reference
        key: KeyPath = ("evaluation", "feedback")
        told = set(evaluation.feedback)
        if not told & {FeedbackPart.METRIC, FeedbackPart.SCORE, FeedbackPart.MESSAGE}:
            reason = "the agent learns neither metric nor score nor message of a submission"
            yield self._raise("contract/feedback", key, reason, "name metric or score")
        # Where the floor's script is there, the floor rung measures it, and says so itself where it cannot.
        floored = reference.floor is not None or (self.task.solution / "floor.sh").is_file()
        if FeedbackPart.SCORE in told and reference.baseline is not None and not floored:
            reason = "a score is promised, yet there is no floor to compute it from"
            fix = "add solution/floor.sh, or leave score out of evaluation.feedback"
            yield self._raise("contract/feedback", key, reason, fix)
        if isinstance(evaluation.on_invalid, float) and evaluation.on_invalid > 0:
            reason = f"an invalid candidate scores {evaluation.on_invalid:g}, more than one that knows nothing"
            yield self._raise("contract/on-invalid", ("evaluation", "on_invalid"), reason, 'use "unscored" or 0')

    def _words(self) -> Iterator[Finding]:
        question, source = self.contract.question.strip(), self.contract.source
        if _SEVERAL.search(question) or not question.endswith(_ENDS):
            reason = "the question is not one sentence that ends with '?' or '.'"
            yield self._raise("contract/question", ("question",), reason, "ask one thing that a measurement can deny")
        if source.repository != "local" and not _HASH.match(source.commit):
            reason = f"commit {source.commit!r} is no full commit hash"
            yield self._raise("contract/source", ("source", "commit"), reason, "pin the project to a full commit hash")
        if source.license.strip().lower() in {"", "unknown"}:
            reason = "the licence of the project is not known"
            yield self._raise("contract/source", ("source", "license"), reason, "name it by its SPDX identifier")

    def _boundary(self) -> Iterator[Finding]:
        boundary = self.contract.boundary
        for name in ("editable", "frozen", "deliver"):
            for index, glob in enumerate(getattr(boundary, name)):
                if re.search(r"[\[\]{}!]", glob):
                    reason = f"{glob!r} holds characters that are wildcards elsewhere; here they stand for themselves"
                    yield self._raise("contract/odd-glob", ("boundary", name, index), reason, "use * and ** alone")
        if self.contract.evaluation.mode is not Mode.RETRAIN:
            return
        for index, glob in enumerate(boundary.editable):
            if not any(overlap(glob, each) for each in boundary.deliver):
                reason = f"{glob!r} may be edited, yet the judge that trains never gets it"
                fix = "add it to boundary.deliver"
                yield self._raise("contract/edits-not-judged", ("boundary", "editable", index), reason, fix)

    def _knobs(self) -> Iterator[Finding]:
        knobs, boundary = self.contract.search.knobs, self.contract.boundary
        if not knobs:
            reason = "no knobs: the search agent has nothing to vary"
            yield self._raise("contract/no-knobs", (), reason, "add [[metadata.rsi.search.knobs]]")
        for index, knob in enumerate(knobs):
            if self.contract.evaluation.mode is Mode.RETRAIN and not any_matches(boundary.deliver, knob.file):
                reason = f"{knob.file!r} is not delivered, so turning its knob changes nothing"
                fix = "add the file to boundary.deliver"
                yield self._raise("contract/knob-not-delivered", ("search", "knobs", index, "file"), reason, fix)

    def _floor(self) -> Iterator[Finding]:
        """Name what the floor's edits change and the judge that trains never gets."""
        floor = self.task.solution / "floor"
        if self.contract.evaluation.mode is not Mode.RETRAIN or not floor.is_dir():
            return
        paths = sorted(path.relative_to(floor).as_posix() for path in floor.rglob("*") if path.is_file())
        for path in paths:
            if not any_matches(self.contract.boundary.deliver, path):
                reason = f"{path!r} is not delivered, so the judge would train the floor without its edit"
                fix = "add the file to boundary.deliver, or make the floor with a delivered one"
                yield raised("contract/floor-not-delivered", reason, file=f"solution/floor/{path}", fix=fix)

    def _judge(self) -> Iterator[Finding]:
        config, judge = self.task.config, self.contract.judge
        if judge.base == "work":
            reason = "the judge starts from what the agent left behind"
            yield self._raise("contract/judge-base", ("judge", "base"), reason, 'use base = "clean"')
        if judge.gpus > (config.environment.gpus or 0):
            reason = f"the judge needs {judge.gpus} GPUs, environment.gpus gives {config.environment.gpus or 0}"
            yield self._raise("contract/gpus", ("judge", "gpus"), reason, "set environment.gpus to as many")
        if config.judge_network is not NetworkMode.NO_NETWORK:
            reason = "candidate code can reach the network while it is judged"
            fix = 'set network_mode = "no-network" in [verifier] or [environment]'
            line = self.positions.line(("environment", "network_mode")) or self.positions.line(("environment",))
            yield raised("contract/judge-network", reason, file=FILE, line=line, fix=fix)

    def _files(self) -> Iterator[Finding]:
        if not (self.task.solution / "solve.sh").is_file():
            reason = "the author's solution is missing, so there is nothing to measure against"
            fix = "add a script that puts the solution into the workdir"
            yield raised("contract/no-solution", reason, file="solution/solve.sh", fix=fix)
        if not (self.task.solution / "floor.sh").is_file():
            reason = "no candidate that knows nothing: metrics get no score"
            fix = "add a script that puts such a candidate into the workdir"
            yield raised("contract/no-floor", reason, file="solution/floor.sh", fix=fix)

    def _texts(self) -> Iterator[Finding]:
        texts = {"instruction.md": self.task.folder / "instruction.md", "README.md": self.task.folder / "README.md"}
        present = {name: path for name, path in texts.items() if path.is_file() and not path.is_symlink()}
        read = {name: path.read_text(encoding="utf-8", errors="replace") for name, path in present.items()}
        yield from disagreements(self.contract, read)


_MEASURE = "run `rsi check` as far as the baseline rung; it measures and writes them"
