"""Everything one engine holds while it works on one run."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.agents.feedback import Feedback
from harness.run.budget import Limits
from harness.run.capture import ImageFiles
from harness.run.disk import HostDisk
from harness.run.folder import RunFolder
from harness.run.judging import Court, StopRequested
from harness.run.mailbox import Mailbox
from harness.run.plan import Plan
from harness.run.recorder import Recorder
from harness.run.state import Kind, State, Submission
from harness.run.store.candidates import CandidateRepo
from harness.run.store.frozen import FrozenWatch
from harness.run.store.snapshot import SnapshotStore
from harness.run.verdict import Finding
from harness.run.workspace import EngineWorkspace
from harness.sandbox.base import Box
from harness.task.contract import Boundary, Contract

TICK_SEC = 30.0
"""A crash loses at most this much of the ledger."""

WHOLE_WORKDIR = Boundary(editable=("**",), deliver=("**",), max_mb=65536, max_files=500_000)
"""The boundary of a plain Harbor task: everything may be changed and everything is handed in."""


@dataclass
class Scene:
    """The parts of a run that the loop and a round share."""

    folder: RunFolder
    plan: Plan
    contract: Contract | None
    court: Court
    store: SnapshotStore
    recorder: Recorder
    tell: Callable[[str], None]
    mailbox: Mailbox
    box: Box
    image_files: ImageFiles
    frozen_watch: FrozenWatch | None
    """Finds changes of frozen files; None for a plain Harbor task."""
    stop: threading.Event
    disk: HostDisk
    workspace: EngineWorkspace | None = None
    now: Callable[[], float] = time.time
    """The journal's own clock, so that both agree on what a stretch of work costs."""
    last_tick: float = field(default_factory=time.monotonic)

    @property
    def state(self) -> State:
        """What the journal says."""
        return self.recorder.state

    @property
    def limits(self) -> Limits:
        """The run's bounds."""
        return Limits(self.plan.submissions, self.plan.hours, self.plan.cooldown_sec)

    @property
    def strict(self) -> bool:
        """Whether there is a boundary that a candidate can cross."""
        return self.contract is not None

    @property
    def boundary(self) -> Boundary:
        """What a candidate consists of."""
        return self.contract.boundary if self.contract else WHOLE_WORKDIR

    @property
    def agent_may_run(self) -> bool:
        """Whether the workspace is given back to the agent after a round."""
        return self.state.agent_running

    def record(self, kind: Kind, **fields: Any) -> State:
        """Write an event to the journal."""
        return self.recorder.record(kind, **fields)

    def submission(self, number: int) -> Submission:
        """Return one submission as it stands."""
        return self.state.submissions[number - 1]

    def reply(self, request: str, code: int, feedback: Feedback) -> None:
        """Answer a request in the mailbox, and the agent thread if it was the one that asked."""
        self.mailbox.reply(request, code, feedback.text())
        if self.workspace is not None:
            self.workspace.answer(request, feedback)

    def keep_text(self, one: Submission, finding: Finding) -> None:
        """Commit the candidate's text to the run's repository, once."""
        CandidateRepo(self.folder.candidates).commit(
            one.number,
            self.store,
            self.store.load(one.snapshot) if one.snapshot else None,
            message=one.message,
            verdict=finding.verdict,
            metric=finding.metric,
            when=one.opened,
        )

    def watch(self) -> None:
        """Look for a wish to stop and let the journal know that time passes."""
        if self.stop.is_set() or self.folder.stop_flag.exists():
            raise StopRequested("the run was asked to stop", next_step=f"rsi resume {self.folder.name}")
        self.disk.check()
        if time.monotonic() - self.last_tick >= TICK_SEC:
            self.last_tick = time.monotonic()
            self.record(Kind.TICK)
