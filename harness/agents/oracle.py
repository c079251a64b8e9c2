"""The author's own solution, handed in through the candidate's path."""

from harness.agents.base import Workspace
from harness.task.contract import Contract

SOLVE = 'dir="${RSI_SOLUTION:-/solution}"; "$dir/solve.sh" && rsi-submit -m "the author\'s solution"'


class Oracle:
    """Runs solution/solve.sh in the workspace and submits once."""

    name = "oracle"
    needs_solution = True

    def check(self, contract: Contract | None) -> None:
        """Accept every task; a missing solution is found by the engine."""

    def run(self, work: Workspace) -> int | None:
        """Run the solution and hand in."""
        return work.command(["sh", "-c", SOLVE])
