"""A command in a container, as any engine finds it on disk."""

import marshal
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import RsiError
from harness.sandbox import boxfolder
from harness.sandbox.base import Exit
from harness.sandbox.boxfolder import BoxFolder

_END_SEC = 60.0
KILLED = 137


class DockerProcess:
    """A command and its companion on the host; what is known of it lies in its folder."""

    def __init__(self, box: BoxFolder, boot: str, name: str, kill: Callable[[], None]) -> None:
        self.name = name
        self.folder = box.path / "processes" / name
        self._box = box
        self._boot = boot
        self._kill = kill

    def started(self) -> bool:
        """Say whether the command was started at all."""
        return (self.folder / "started").exists()

    def poll(self) -> Exit | None:
        """Return how it ended, or None while it runs."""
        alive = self._supervisor() is not None  # asked first: an end written just before is not overlooked
        timed_out = (self.folder / "timed_out").exists()
        try:
            code, starved = (self.folder / "ended").read_text("ascii").split()
        except FileNotFoundError:
            return None if alive else Exit(KILLED if self._was_killed() else None, timed_out=timed_out)
        return Exit(int(code), timed_out=timed_out, out_of_memory=starved == "1")

    def _was_killed(self) -> bool:
        return (self.folder / "killed").exists()

    def _supervisor(self) -> int | None:
        return self._box.running(f"processes/{self.name}/supervisor", {"boot": self._boot})

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait; at the timeout kill the process and all its children and return `timed_out`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (found := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                (self.folder / "timed_out").touch()
                self.kill()
                return self._dead()
            self._sleep(1.0 if left is None else min(1.0, left))
        return found

    def _sleep(self, seconds: float) -> None:
        """Sleep until the companion has ended, at most so long."""
        pid = self._supervisor()
        try:
            held = None if pid is None else os.pidfd_open(pid)
        except ProcessLookupError:
            held = None
        if held is None:
            return
        try:
            poll = select.poll()
            poll.register(held, select.POLLIN)
            poll.poll(seconds * 1000)
        finally:
            os.close(held)

    def kill(self) -> None:
        """Kill the process and all its children, and with them all else that runs in the box.

        A container knows no group smaller than itself that its processes could not leave.
        """
        # One that has ended by itself may have left children behind, so it is killed as well.
        if self.started() and not self._was_killed():
            (self.folder / "killed").touch()
            self._kill()
            self._dead()

    def _dead(self) -> Exit:
        deadline = time.monotonic() + _END_SEC
        while (found := self.poll()) is None:
            if time.monotonic() > deadline:
                raise RsiError(f"the process {self.name!r} would not die", where=str(self.folder))
            time.sleep(0.005)
        return found

    def supervise(self, request: dict[str, Any]) -> None:
        """Start the companion, which starts the command and outlives this engine."""
        log_path = self._box.path / "supervisors.log"
        with log_path.open("ab") as log:
            starter = subprocess.Popen(
                _command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env={}, cwd="/"
            )
        assert starter.stdin is not None
        assert starter.stdout is not None
        with starter.stdin, starter.stdout:
            supervisor = int(starter.stdout.readline() or b"0")
            starter.wait()  # it went on in a child of its own
            # Written before the request is sent: a companion that is not known here starts nothing.
            started = boxfolder.start_time(supervisor) if supervisor else None
            (self.folder / "supervisor").write_text(f"{supervisor} {started}\n", "ascii")
            starter.stdin.write(marshal.dumps(request))
            starter.stdin.close()
            said = starter.stdout.read()
        if said != b"ready":
            last = log_path.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
            raise RsiError(f"the process {self.name!r} could not be started: {''.join(last)}", where=str(log_path))


def _command() -> list[str]:
    package = Path(__file__).resolve().parents[3]
    code = f"import sys; sys.path.append({str(package)!r}); from harness.sandbox.docker.supervisor import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]
