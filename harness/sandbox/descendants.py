"""Finds, stops and kills all descendants of a supervisor from outside, on Linux and on systems without /proc."""

import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from harness.errors import RsiError

_PATIENCE_SEC = 0.02


def table() -> dict[int, tuple[int, str, int]]:
    """Return parent, state letter and user of every process."""
    return _linux() if Path("/proc/self/stat").exists() else _posix()


def _linux() -> dict[int, tuple[int, str, int]]:
    found = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            fields = (path / "stat").read_bytes().rpartition(b")")[2].split()
            found[int(path.name)] = (int(fields[1]), _state(path, fields[0].decode()), path.stat().st_uid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def _state(path: Path, first: str) -> str:
    """Return the state of a process: of a thread that can still run if there is one."""
    if first not in "TtZ":
        return first
    for thread in (path / "task").iterdir():
        state = (thread / "stat").read_bytes().rpartition(b")")[2].split()[0].decode()
        if state not in f"{first}ZX":
            return state
    return first


def _posix() -> dict[int, tuple[int, str, int]]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,stat=,uid="], check=True, capture_output=True, text=True, timeout=30
    ).stdout
    found = {}
    for line in listing.splitlines():
        pid, parent, state, uid = line.split()[:4]
        found[int(pid)] = (int(parent), state[0], int(uid))
    return found


def below(tops: Iterable[int]) -> dict[int, str]:
    """Return number and state of every living descendant of these processes, without them."""
    whole = table()
    children = defaultdict(list)
    for pid, (parent, _, _) in whole.items():
        children[parent].append(pid)
    found: dict[int, str] = {}
    waiting = list(tops)
    while waiting:
        for child in children[waiting.pop()]:
            if child not in found:
                waiting.append(child)
                found[child] = whole[child][1]
    return {pid: state for pid, state in found.items() if state not in "ZX"}


def count_of_user(uid: int) -> int:
    """Return how many processes a user has."""
    return sum(owner == uid for _, _, owner in table().values())


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def signal_below(top: int, number: int) -> None:
    """Signal every descendant once."""
    _send(below([top]), number)


def stop_below(tops: list[int], *, timeout: float) -> None:
    """Stop every descendant; return when none is left that can run, also none forked meanwhile."""
    began = time.monotonic()
    harmless = "TtI"
    while running := {pid for pid, state in below(tops).items() if state not in harmless}:
        waited = time.monotonic() - began
        if waited > timeout:
            raise RsiError("a process of the box would not stop")
        # The parent of a vfork waits in state D (U elsewhere) for its stopped child: it cannot stop, nor run before it
        # has taken the signal. An access to the disk looks the same, but ends.
        harmless = "TtIDU" if waited > _PATIENCE_SEC else "TtI"
        _send(running, signal.SIGSTOP)
        time.sleep(0.0005)


def kill_below(top: int, *, timeout: float) -> None:
    """Kill every descendant, also those forked meanwhile."""
    deadline = time.monotonic() + timeout
    while found := below([top]):
        if time.monotonic() > deadline:
            raise RsiError("a process of the box would not die")
        _send(found, signal.SIGSTOP)  # stopped first, so that a crowd of forks cannot outrun the next look
        _send(below([top]), signal.SIGKILL)
        time.sleep(0.0005)
