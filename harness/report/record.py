"""A run read from its folder: plan, folded journal, and whether an engine works on it now."""

from dataclasses import dataclass
from functools import cached_property

from harness.report.summary import Summary, summarize
from harness.run.folder import RunFolder
from harness.run.journal import read_events
from harness.run.plan import Plan
from harness.run.state import Kind, State, step

MOST_REFUSALS = 100
"""How many refused requests are kept by their reason; the state counts them all."""


@dataclass(frozen=True)
class Refusal:
    """A mailbox request that was refused."""

    t: float
    """Unix time."""
    reason: str


@dataclass(frozen=True)
class Record:
    """Everything that screen and report draw from."""

    folder: RunFolder
    plan: Plan
    state: State
    alive: bool
    refusals: tuple[Refusal, ...] = ()

    @cached_property
    def summary(self) -> Summary:
        """What the run found."""
        return summarize(self.plan, self.state, alive=self.alive)


def load(folder: RunFolder) -> Record:
    """Read a run; one that died before its first event has an empty state.

    Raises:
        InputError: when there is no readable plan.
        JournalError: when the journal is damaged; the message names the line.
    """
    plan = folder.read_plan()
    # Asked first: a run that ends in between then shows as ended, never as interrupted.
    alive = folder.engine_alive()
    state = State()
    refusals: list[Refusal] = []
    if folder.journal.exists():
        for event in read_events(folder.journal):
            state = step(state, event)
            if event["kind"] == Kind.REQUEST_REFUSED and len(refusals) < MOST_REFUSALS:
                refusals.append(Refusal(float(event["t"]), str(event.get("reason", ""))))
    return Record(folder, plan, state, alive, tuple(refusals))
