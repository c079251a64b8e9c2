"""The workspace as an agent sees it: its box, its mailbox, and the journal's view of its submissions.

Agents run in a thread of their own. They never touch the journal: they hand in through the mailbox like everyone
else, and wait until the engine's loop has answered.
"""

import os
import queue
import secrets
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.agents.base import Stopped, Try
from harness.agents.feedback import Feedback
from harness.run.bring import SHOWN_AT
from harness.run.state import State
from harness.sandbox.base import Box, Process
from harness.task.contract import Contract, FeedbackPart, Start

MAX_READ = 4 << 20
"""Most bytes an agent reads of one file through the host."""


@dataclass(frozen=True)
class AgentStart:
    """What one start of an agent is given."""

    name: str
    """Name of its process in the box."""
    inbox: Path
    """The mailbox's inbox on the host."""
    output: Path
    """Where its output goes."""
    env: Mapping[str, str]
    seed: int
    limit: int
    """Submissions of the budget."""


class EngineWorkspace:
    """Implements `harness.agents.base.Workspace` on a work box."""

    def __init__(self, box: Box, start: AgentStart, contract: Contract | None, state: Callable[[], State]) -> None:
        self.contract = contract
        self.seed = start.seed
        self.baseline: float | None = None
        control = state().control()
        evaluation = contract.evaluation if contract else None
        if (
            control
            and evaluation
            and FeedbackPart.BASELINE in evaluation.feedback
            and evaluation.start is Start.BASELINE
        ):
            self.baseline = control.metric
        self.process: Process | None = None
        self._box = box
        self._start = start
        self._state = state
        self._ending = threading.Event()
        self._answers: dict[str, queue.SimpleQueue[Feedback | None]] = {}

    def end(self) -> None:
        """Make every call of the agent raise Stopped from now on."""
        self._ending.set()

    def answer(self, request: str, feedback: Feedback | None) -> None:
        """Give the agent thread the feedback on its request, if it is waiting for it."""
        waiting = self._answers.pop(request, None)
        if waiting is not None:
            waiting.put(feedback)

    def command(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> int | None:
        """Run a command in the box until it ends, or join the one that an earlier engine started."""
        self._check()
        process = self._box.process(self._start.name)
        if process is None:
            process = self._box.start(
                self._start.name,
                [self._box.path(word) if word.startswith(f"{SHOWN_AT}/") else word for word in argv],
                output=self._start.output,
                env={**self._start.env, **(env or {})},
            )
        self.process = process
        while (end := process.poll()) is None:
            self._check()
            time.sleep(0.02)
        return end.code

    def read(self, path: str) -> bytes:
        """Return a file of the workdir, following no link."""
        self._check()
        parent, name = self._parent(path)
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        finally:
            os.close(parent)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError(f"{path} is no regular file")
            return file.read(MAX_READ)

    def write(self, path: str, content: bytes) -> None:
        """Replace a file of the workdir; its mode and owner are kept, no link is followed."""
        self._check()
        parent, name = self._parent(path)
        try:
            old = os.stat(name, dir_fd=parent, follow_symlinks=False)
            temporary = f".{name}.{secrets.token_hex(4)}"
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=parent)
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                os.fchmod(fd, stat.S_IMODE(old.st_mode))
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
                    os.fchown(fd, old.st_uid, old.st_gid)
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        finally:
            os.close(parent)

    def submit(self, message: str) -> Feedback | None:
        """Hand in through the mailbox and wait for the verdict."""
        self._check()
        request = f"host-{secrets.token_hex(8)}"
        answers: queue.SimpleQueue[Feedback | None] = queue.SimpleQueue()
        self._answers[request] = answers
        temporary = self._start.inbox / f".{request}"
        temporary.write_text(message, "utf-8")
        temporary.replace(self._start.inbox / f"{request}.req")
        while True:
            try:
                return answers.get(timeout=0.1)
            except queue.Empty:
                self._check()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._ending.wait(seconds)
        self._check()

    def history(self) -> list[Try]:
        """Return the closed submissions."""
        return [
            Try(each.number, each.message, each.verdict.value, each.metric)
            for each in self._state().submissions
            if each.verdict is not None
        ]

    def submissions_left(self) -> int:
        """Return how many submissions the budget still holds."""
        self._check()
        return max(0, self._start.limit - self._state().used_submissions)

    def _check(self) -> None:
        if self._ending.is_set():
            raise Stopped

    def _parent(self, path: str) -> tuple[int, str]:
        """Open the folder of a workdir path component by component; the caller closes it."""
        *folders, name = path.split("/")
        fd = self._box.workdir_fd()
        for folder in folders:
            try:
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd, name
