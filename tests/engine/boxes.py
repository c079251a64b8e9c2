"""Looking at a real run from the host: its verdicts, and what it left behind."""

from pathlib import Path

from harness import paths
from harness.run.state import State
from harness.sandbox import get_sandbox
from harness.sandbox.base import Sandbox


def sandbox_at(level: str) -> Sandbox:
    """Return the sandbox of a level."""
    return get_sandbox("docker") if level == "container" else get_sandbox("local", level=level)


def verdicts(state: State) -> list[tuple[str, float | None, float | None]]:
    """Return verdict, metric and score of each submission."""
    return [(str(one.verdict), one.metric, one.score) for one in state.submissions]


def processes_of(word: str) -> list[str]:
    """Return the command lines of this machine's processes that hold a word."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if word in words and "pytest" not in words:
            found.append(words)
    return found


def leftovers(run: str) -> list[str]:
    """Return what is left of a run on this machine besides its folder."""
    boxes = [str(path) for path in (paths.home() / "boxes").glob(f"{run}/*")]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if run in line]
    return boxes + mounts + processes_of(f"/boxes/{run}")
