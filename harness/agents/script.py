"""Any command in the workspace as an agent, so that every other agent fits."""

from harness.agents.base import Workspace
from harness.task.contract import Contract


class Script:
    """Runs one command in the box; it finds rsi-submit and rsi-status on its PATH."""

    name = "script"
    needs_solution = False

    def __init__(self, command: tuple[str, ...]) -> None:
        self.argv = command

    def check(self, contract: Contract | None) -> None:
        """Accept every task."""

    def run(self, work: Workspace) -> int | None:
        """Run the command until it ends."""
        return work.command(self.argv)
