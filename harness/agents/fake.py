"""An agent whose every step is given beforehand, for tests of the whole loop."""

from collections.abc import Callable, Sequence

from harness.agents.base import Workspace
from harness.task.contract import Contract

Step = Callable[[Workspace], None]


class FakeAgent:
    """Does the given steps in order; steps whose submission the journal already holds are not repeated."""

    name = "fake"
    needs_solution = False

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self.steps = list(steps)

    def check(self, contract: Contract | None) -> None:
        """Accept every task."""

    def run(self, work: Workspace) -> int | None:
        """Do the steps that are left; each is expected to submit once."""
        for step in self.steps[len(work.history()) :]:
            step(work)
        return 0
