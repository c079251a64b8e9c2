"""The protocol of an agent, and of the workspace that an agent is given.

An agent either runs a command in the workspace's box (it goes on while the engine is dead, and is found again), or acts
from the host through `Workspace`, in which case everything it decides must follow from `history` so that a new
engine can go on where a dead one stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.agents.feedback import Feedback
from harness.task.contract import Contract


class Stopped(Exception):
    """The run is ending: the agent's call will not be answered, it should return."""


@dataclass(frozen=True)
class Try:
    """One submission of this agent as it stands in the journal."""

    number: int
    message: str
    verdict: str
    metric: float | None


class Workspace(Protocol):
    """What an agent may do. Every call raises `Stopped` once the run is ending."""

    contract: Contract | None
    seed: int
    """Seed for the agent's own choices; it says nothing about the judge's."""
    baseline: float | None
    """Metric of the author's solution on this host, where the start state is that solution and feedback shows it."""

    def command(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> int | None:
        """Run a command in the box until it ends; after a crash of the engine, join the one that still runs."""

    def read(self, path: str) -> bytes:
        """Return a file of the workdir (at most 4 MiB); FileNotFoundError where there is none."""

    def write(self, path: str, content: bytes) -> None:
        """Replace a file of the workdir."""

    def submit(self, message: str) -> Feedback | None:
        """Hand in, wait for the verdict; None when the request was refused."""

    def wait(self, seconds: float) -> None:
        """Let time pass, such as before handing in again after a refusal."""

    def history(self) -> list[Try]:
        """Return the closed submissions of this run, oldest first."""

    def submissions_left(self) -> int:
        """Return how many submissions the budget still holds."""


class Agent(Protocol):
    """Whoever works in the workspace."""

    name: str
    needs_solution: bool
    """Whether the author's solution is shown in the box at /solution."""

    def check(self, contract: Contract | None) -> None:
        """Raise InputError where this agent cannot work on such a task."""

    def run(self, work: Workspace) -> int | None:
        """Work until done; return an exit status, or None where there is none."""
