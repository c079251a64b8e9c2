"""What lies where in a run's folder, and whether an engine works in it."""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from harness.errors import InputError, RefusedError
from harness.run.plan import Plan, plan_from_json


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run; the folder's name is the run's name."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.name

    @property
    def plan(self) -> Path:
        """The immutable plan."""
        return self.path / "plan.json"

    @property
    def journal(self) -> Path:
        """The append-only journal."""
        return self.path / "journal.jsonl"

    @property
    def mailbox(self) -> Path:
        """Folder shared with the work box."""
        return self.path / "mailbox"

    @property
    def store(self) -> Path:
        """Snapshots by content."""
        return self.path / "snapshots"

    @property
    def tests(self) -> Path:
        """The task's tests as they were when the run was planned."""
        return self.path / "tests"

    @property
    def solution(self) -> Path:
        """The author's solution as it was when the run was planned."""
        return self.path / "solution"

    @property
    def image_files(self) -> Path:
        """Which files of the untouched image matter to the boundary."""
        return self.path / "image-files.json"

    @property
    def brought(self) -> Path:
        """What a script agent brought along; there only where it did."""
        return self.path / "agent"

    @property
    def candidates(self) -> Path:
        """Bare git repository of the candidates' text."""
        return self.path / "candidates.git"

    @property
    def agent_log(self) -> Path:
        """What the agent printed."""
        return self.path / "agent.log"

    @property
    def report(self) -> Path:
        """The report as one HTML file."""
        return self.path / "report.html"

    @property
    def stop_flag(self) -> Path:
        """Its presence asks the engine to stop."""
        return self.path / "stop"

    @property
    def lock(self) -> Path:
        """Held (flock) by the engine that works on the run."""
        return self.path / "engine.lock"

    def judging(self, label: str) -> Path:
        """Folder of one judging's output; `label` names submission and attempt."""
        return self.path / "judgings" / label

    def tree(self, digest: str) -> Path:
        """Folder into which a snapshot is laid out for a judge."""
        return self.path / "trees" / digest

    def read_plan(self) -> Plan:
        """Return the plan.

        Raises:
            InputError: when there is none or it cannot be read.
        """
        try:
            return plan_from_json(json.loads(self.plan.read_text("utf-8")))
        except PermissionError as error:
            raise InputError(
                f"the plan of run {self.name} may not be read by this user",
                where=str(self.plan),
                next_step="act as the user who made the run",
            ) from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"run {self.name} has no readable plan", where=str(self.plan), next_step="rsi runs"
            ) from error

    def write_plan(self, plan: Plan) -> bytes:
        """Write the plan once and return its bytes."""
        raw = (json.dumps(plan.as_json(), indent=2, ensure_ascii=False, sort_keys=True) + "\n").encode()
        write_atomic(self.plan, raw, mode=0o600)
        return raw

    def engine_alive(self) -> bool:
        """Say whether an engine holds the run's lock now."""
        try:
            with self.lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def take_lock(self) -> IO[bytes]:
        """Take the run for this engine until the file is closed or the process ends.

        Raises:
            RefusedError: when another engine has it.
        """
        # Another user of the host could hold it too, if it were open to them.
        file = os.fdopen(os.open(self.lock, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise RefusedError(
                f"another engine is working on run {self.name}",
                where=str(self.path),
                next_step=f"rsi stop {self.name}, or rsi show {self.name}",
            ) from error
        return file


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a whole file or nothing: temporary neighbour, flush, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically."""
    write_atomic(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())
