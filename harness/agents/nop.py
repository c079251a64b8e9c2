"""An agent that changes nothing: it shows what the untouched workspace scores."""

from harness.agents.base import Workspace
from harness.task.contract import Contract


class Nop:
    """Submits the start state once."""

    name = "nop"
    needs_solution = False

    def check(self, contract: Contract | None) -> None:
        """Accept every task."""

    def run(self, work: Workspace) -> int | None:
        """Hand in what is there."""
        return work.command(["rsi-submit", "-m", "the untouched workspace"])
