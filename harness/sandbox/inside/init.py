"""Process 1 of a box: reaps, stops, continues and kills by order of the keeper, and ends with it.

It keeps its capabilities, so no process of the box may look into it; and the kernel ends the whole box when it ends.
"""

import os

from harness.sandbox.inside import kernel

_SETTLE = 2000
"""Rounds of a millisecond until every process of a box must have stopped or died."""
_PATIENCE = 20
"""Rounds in which an access to the disk may end."""


def serve(orders: int, answers: int) -> None:
    """Carry out orders, one byte line each, until the keeper is gone."""
    frozen = False
    pending = b""
    while received := os.read(orders, 4096):
        pending += received
        *lines, pending = pending.split(b"\n")
        for line in lines:
            verb, _, argument = line.decode().partition(" ")
            if verb == "freeze":
                frozen = True
                answer = "ok" if stop_all() else "error: a process would not stop"
            elif verb == "thaw":
                frozen = False
                signal_all(kernel.SIGCONT)
                answer = "ok"
            elif verb == "kill":
                answer = "ok" if kill_marked(argument, stay_frozen=frozen) else "error: a process would not die"
            else:
                answer = f"error: no such order: {verb}"
            os.write(answers, answer.encode() + b"\n")


def signal_all(number: int) -> None:
    """Signal every process of the box but this one, in one step that no fork can slip through."""
    try:
        os.kill(-1, number)
    except (ProcessLookupError, PermissionError):
        return  # nobody is there


def others() -> dict[int, str]:
    """Return every other living process and its state letter."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs 5 ms at every box start
        if name.isdigit() and name != "1":
            state = _state(name)
            if state not in {"", "Z", "X"}:
                found[int(name)] = state
    return found


def _state(pid: str) -> str:
    """Return the state letter of a process: of a thread that may still run, if there is one."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib costs 5 ms
    except FileNotFoundError:
        return ""
    states = {_thread_state(pid, thread) for thread in threads} - {""}
    for running in ("R", "D", "S"):
        if running in states:
            return running
    return min(states, default="")


def _thread_state(pid: str, thread: str) -> str:
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as stat:  # noqa: PTH123 - pathlib costs 5 ms at every start
            return stat.read().rpartition(b")")[2].split()[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stop_all() -> bool:
    """Stop every process; return whether none is left that can run."""
    for round_ in range(_SETTLE):
        signal_all(kernel.SIGSTOP)
        # The parent of a vfork waits in state D for its stopped child and cannot stop; nor can it run again before it
        # has taken the signal. An access to the disk looks the same, but ends.
        harmless = "TtID" if round_ > _PATIENCE else "TtI"
        if all(state in harmless for state in others().values()):
            return True
        _pause()
    return False


def kill_marked(mark: str, *, stay_frozen: bool) -> bool:
    """Kill every process in the UTS namespace `mark`, however it was forked; return whether none is left."""
    stopped = {pid for pid, state in others().items() if state in "Tt"}
    own = _space(1, "user")
    try:
        for _ in range(_SETTLE):
            # Stopped first, nothing can fork while its kin are looked up; SIGKILL ends a stopped process all the same.
            signal_all(kernel.SIGSTOP)
            # What made itself namespaces in a judge's box may have changed its mark: it goes too.
            left = [pid for pid in others() if _space(pid, "uts") == mark or _space(pid, "user") not in {own, ""}]
            if not left:
                return True
            for pid in left:
                _kill(pid)
            _pause()
        return False
    finally:
        if not stay_frozen:
            for pid in others():
                if pid not in stopped:
                    _kill(pid, kernel.SIGCONT)


def _kill(pid: int, number: int = kernel.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _space(pid: int, kind: str) -> str:
    """Return what names a namespace of a process, or an empty text where the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - pathlib costs 5 ms at every start
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _pause() -> None:
    import select  # here, as few boxes need it

    select.select([], [], [], 0.001)
