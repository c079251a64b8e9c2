"""From a run's folder to a working engine: sandbox and agent by the plan, and Ctrl-C as a wish to stop."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from harness.agents import get_agent
from harness.errors import Interrupted
from harness.run.engine import Engine
from harness.run.folder import RunFolder
from harness.run.setting import planned_sandbox
from harness.run.state import State, Status


def work_on(folder: RunFolder, tell: Callable[[str], None]) -> State:
    """Take a run to its end.

    Raises:
        Interrupted: when it was stopped; it can be resumed.
        RsiError: when it failed.
    """
    plan = folder.read_plan()
    sandbox = planned_sandbox(plan)
    agent = get_agent(plan.agent, plan.agent_command)
    stop = threading.Event()
    with _signals(stop, tell):
        state = Engine(folder, sandbox, agent, tell=tell, stop=stop).run()
    if state.status is Status.STOPPED:
        raise Interrupted(f"run {folder.name} was stopped", next_step=f"rsi resume {folder.name}")
    return state


@contextlib.contextmanager
def _signals(stop: threading.Event, tell: Callable[[str], None]) -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and a closed terminal into a clean stop; a second Ctrl-C ends at once, to be resumed."""

    def wish(number: int, _frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        tell("stopping cleanly; press Ctrl-C again to leave at once")
        stop.set()

    wishes = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks to outlive the terminal
        wishes.append(signal.SIGHUP)
    before = {number: signal.signal(number, wish) for number in wishes}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
