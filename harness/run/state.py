"""The state of a run as a pure fold over its journal.

The engine, the live screen, the report and recovery read this and nothing else. Times are seconds; `t` is Unix time.

Every stretch between two events belongs to exactly one phase of the ledger, so the phases add up to the wall time:
`setup` before the agent starts, `working` while it may run (also beside a judge), `judging` while a judge works and it
may not, `paused` while it is frozen and nothing judges, `down` while no engine was there, `closing` after it ended.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from harness.run.verdict import Verdict

Event = Mapping[str, Any]


class Kind(StrEnum):
    """Every kind of journal event, with the fields it carries."""

    RUN_CREATED = "run_created"
    """plan: digest of plan.json"""
    ENGINE_STARTED = "engine_started"
    """pid, resumed"""
    IMAGE_READY = "image_ready"
    """digest, notes (what of the Dockerfile was not carried out literally)"""
    CONTROL_STARTED = "control_started"
    """role (baseline or floor), seed: a judging of the author's solution or floor on this host begins"""
    CONTROL_JUDGED = "control_judged"
    """role, verdict, metric, values, message, evidence, seconds, reused_from (words, empty for a fresh one)"""
    AGENT_STARTED = "agent_started"
    """agent, start (from 1: how often it was started in this workspace), box (name of the workspace's box)"""
    SUBMISSION_OPENED = "submission_opened"
    """number, id (of the mailbox request), message"""
    WORK_FROZEN = "work_frozen"
    """number"""
    SNAPSHOT_TAKEN = "snapshot_taken"
    """number, snapshot (digest, or empty where none could be taken), files, bytes, frozen_sec"""
    JUDGING_STARTED = "judging_started"
    """number, attempt (from 1), seed"""
    JUDGING_ENDED = "judging_ended"
    """number, attempt, verdict, metric, values, message, evidence, details, seconds"""
    SUBMISSION_CLOSED = "submission_closed"
    """number, verdict, metric, score"""
    WORK_THAWED = "work_thawed"
    """number"""
    REQUEST_REFUSED = "request_refused"
    """id, reason"""
    TICK = "tick"
    """nothing: only that time has passed"""
    NOTE = "note"
    """text"""
    REJUDGED = "rejudged"
    """number, verdict, metric, score, values, message, evidence, tests (digest), reason"""
    AGENT_ENDED = "agent_ended"
    """code, reason"""
    RUN_ENDED = "run_ended"
    """status, reason"""


PHASES = ("setup", "working", "paused", "judging", "down", "closing")


class Status(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Judging:
    """One finished judging of a submission; a submission judged again has several."""

    t: float
    verdict: Verdict
    metric: float | None
    score: float | None
    message: str = ""
    evidence: str = ""
    values: tuple[float, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    attempt: int = 1
    again: bool = False
    """Whether an operator had it judged again after the run had its verdict."""


@dataclass(frozen=True)
class Submission:
    """One act of handing in. `verdict` is None while it is open."""

    number: int
    id: str
    message: str
    opened: float
    working_sec: float
    """Working time of the agent when it handed in."""
    snapshot: str | None = None
    files: int = 0
    bytes: int = 0
    frozen_sec: float = 0.0
    attempts: int = 0
    judgings: tuple[Judging, ...] = ()
    verdict: Verdict | None = None
    metric: float | None = None
    score: float | None = None
    closed: float | None = None


@dataclass(frozen=True)
class Control:
    """The author's solution (role baseline) or floor candidate (role floor) judged on this host."""

    role: str
    verdict: Verdict
    metric: float | None
    seconds: float
    values: tuple[float, ...] = ()
    message: str = ""
    reused_from: str = ""


@dataclass(frozen=True)
class State:
    """Everything a journal says."""

    events: int = 0
    first: float = 0.0
    last: float = 0.0
    ledger: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    status: Status = Status.RUNNING
    reason: str = ""
    image: str | None = None
    notes: tuple[str, ...] = ()
    controls: tuple[Control, ...] = ()
    control_open: bool = False
    agent: str | None = None
    agent_running: bool = False
    agent_ended: bool = False
    agent_starts: int = 0
    """How often the agent was started; a new start follows a stop or a host that went down, not a dead engine."""
    work_box: str = "work"
    """Name of the box that the agent was started in last; a box whose host went down is followed by another."""
    agent_code: int | None = None
    agent_reason: str = ""
    frozen: bool = False
    judging: bool = False
    """Whether a judge is at work on a submission."""
    submissions: tuple[Submission, ...] = ()
    refused: int = 0
    handled: frozenset[str] = frozenset()
    """Ids of the mailbox requests that were refused or opened."""
    engines: int = 0

    @property
    def phase(self) -> str:
        """What the time from here to the next event counts as, unless an engine is missed meanwhile."""
        if self.status is not Status.RUNNING:
            return "down"
        if self.agent_running and not self.frozen:
            return "working"
        if self.judging:
            return "judging"
        if self.frozen:
            return "paused"
        return "setup" if self.agent is None else "closing"

    @property
    def wall_sec(self) -> float:
        """Seconds from the first event to the last; equals the sum of the ledger."""
        return self.last - self.first

    @property
    def open_submission(self) -> Submission | None:
        """The submission without a verdict, if there is one."""
        return next((each for each in reversed(self.submissions) if each.verdict is None), None)

    @property
    def used_submissions(self) -> int:
        """How many submissions of the budget are used up."""
        return sum(1 for each in self.submissions if each.verdict is not None and each.verdict.uses_submission)

    @property
    def last_closed_working_sec(self) -> float | None:
        """Working time at the last submission that counted, for the cooldown."""
        used = [s.working_sec for s in self.submissions if s.verdict is not None and s.verdict.uses_submission]
        return used[-1] if used else None

    def control(self, role: str = "baseline") -> Control | None:
        """Return the last control of that role that was scored."""
        found = (c for c in reversed(self.controls) if c.role == role and c.verdict is Verdict.SCORED)
        return next(found, None)


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """Return the state after all events; pure, and the same whether folded at once or piecewise."""
    state = state if state is not None else State()
    for event in events:
        state = step(state, event)
    return state


def step(state: State, event: Event) -> State:
    """Return the state after one event."""
    kind = Kind(event["kind"])
    state = _spend(state, event, kind)
    handler = _HANDLERS.get(kind)
    return handler(state, event) if handler else state


def _spend(state: State, event: Event, kind: Kind) -> State:
    t = float(event["t"])
    if state.events == 0:
        return replace(state, events=1, first=t, last=t)
    if kind is Kind.REJUDGED:
        # An operator's judging is no part of the run: weeks after its end it must not lengthen it.
        return replace(state, events=state.events + 1)
    t = max(t, state.last)
    ledger = dict(state.ledger)
    resumed = kind is Kind.ENGINE_STARTED and bool(event.get("resumed"))
    ledger["down" if resumed else state.phase] += t - state.last
    return replace(state, events=state.events + 1, last=t, ledger=ledger)


def _engine_started(state: State, _event: Event) -> State:
    # A judge of the engine before is gone; what it judged will be judged again.
    return replace(state, engines=state.engines + 1, status=Status.RUNNING, reason="", judging=False)


def _image_ready(state: State, event: Event) -> State:
    new = (note for note in event.get("notes", ()) if note not in state.notes)
    return replace(state, image=event["digest"], notes=(*state.notes, *new))


def _control_started(state: State, _event: Event) -> State:
    return replace(state, control_open=True)


def _control_judged(state: State, event: Event) -> State:
    control = Control(
        role=event["role"],
        values=tuple(event.get("values", ())),
        verdict=Verdict(event["verdict"]),
        metric=event.get("metric"),
        seconds=event.get("seconds", 0.0),
        message=event.get("message", ""),
        reused_from=event.get("reused_from", ""),
    )
    return replace(state, controls=(*state.controls, control), control_open=False)


def _agent_started(state: State, event: Event) -> State:
    return replace(
        state,
        agent=event["agent"],
        agent_running=True,
        agent_starts=event.get("start", 1),
        work_box=event.get("box", "work"),
    )


def _submission_opened(state: State, event: Event) -> State:
    opened = Submission(
        number=event["number"],
        id=event["id"],
        message=event.get("message", ""),
        opened=float(event["t"]),
        working_sec=state.ledger["working"],
    )
    handled = state.handled | {event["id"]}
    return replace(state, submissions=(*state.submissions, opened), handled=handled)


def _work_frozen(state: State, _event: Event) -> State:
    return replace(state, frozen=True)


def _snapshot_taken(state: State, event: Event) -> State:
    return _change(
        state,
        event["number"],
        snapshot=event["snapshot"],
        files=event["files"],
        bytes=event["bytes"],
        frozen_sec=event["frozen_sec"],
    )


def _judging_started(state: State, event: Event) -> State:
    return replace(_change(state, event["number"], attempts=event["attempt"]), judging=True)


def _judging(event: Event, *, again: bool) -> Judging:
    return Judging(
        t=float(event["t"]),
        verdict=Verdict(event["verdict"]),
        metric=event.get("metric"),
        score=event.get("score"),
        message=event.get("message", ""),
        evidence=event.get("evidence", ""),
        values=tuple(event.get("values", ())),
        details=event.get("details", {}),
        seconds=event.get("seconds", 0.0),
        attempt=event.get("attempt", 1),
        again=again,
    )


def _judging_ended(state: State, event: Event) -> State:
    number = event["number"]
    old = _submission(state, number)
    changed = _change(state, number, judgings=(*old.judgings, _judging(event, again=False)))
    return replace(changed, judging=False)


def _submission_closed(state: State, event: Event) -> State:
    return _change(
        state,
        event["number"],
        verdict=Verdict(event["verdict"]),
        metric=event.get("metric"),
        score=event.get("score"),
        closed=float(event["t"]),
    )


def _rejudged(state: State, event: Event) -> State:
    judging = _judging(event, again=True)
    old = _submission(state, event["number"])
    judgings = (*old.judgings, judging)
    if judging.verdict is Verdict.NO_MEASUREMENT:
        # Our own fault measures nothing, so it takes nothing back.
        return _change(state, event["number"], judgings=judgings)
    return _change(
        state,
        event["number"],
        judgings=judgings,
        verdict=judging.verdict,
        metric=judging.metric,
        score=judging.score,
    )


def _work_thawed(state: State, _event: Event) -> State:
    return replace(state, frozen=False)


def _request_refused(state: State, event: Event) -> State:
    return replace(state, refused=state.refused + 1, handled=state.handled | {event["id"]})


def _note(state: State, event: Event) -> State:
    return replace(state, notes=(*state.notes, event["text"]))


def _agent_ended(state: State, event: Event) -> State:
    return replace(
        state,
        agent_running=False,
        agent_ended=True,
        agent_code=event.get("code"),
        agent_reason=event.get("reason", ""),
    )


def _run_ended(state: State, event: Event) -> State:
    return replace(state, status=Status(event["status"]), reason=event.get("reason", ""))


def _submission(state: State, number: int) -> Submission:
    return state.submissions[number - 1]


def _change(state: State, number: int, **changes: Any) -> State:
    submissions = list(state.submissions)
    submissions[number - 1] = replace(submissions[number - 1], **changes)
    return replace(state, submissions=tuple(submissions))


_HANDLERS = {
    Kind.ENGINE_STARTED: _engine_started,
    Kind.IMAGE_READY: _image_ready,
    Kind.CONTROL_STARTED: _control_started,
    Kind.CONTROL_JUDGED: _control_judged,
    Kind.AGENT_STARTED: _agent_started,
    Kind.SUBMISSION_OPENED: _submission_opened,
    Kind.WORK_FROZEN: _work_frozen,
    Kind.SNAPSHOT_TAKEN: _snapshot_taken,
    Kind.JUDGING_STARTED: _judging_started,
    Kind.JUDGING_ENDED: _judging_ended,
    Kind.SUBMISSION_CLOSED: _submission_closed,
    Kind.WORK_THAWED: _work_thawed,
    Kind.REQUEST_REFUSED: _request_refused,
    Kind.NOTE: _note,
    Kind.REJUDGED: _rejudged,
    Kind.AGENT_ENDED: _agent_ended,
    Kind.RUN_ENDED: _run_ended,
}
