"""A box of namespaces and the processes in it, as any engine finds them on disk."""

import marshal
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError, RsiError
from harness.sandbox import hostroot
from harness.sandbox.base import BoxSpec, Exit, Level, Process
from harness.sandbox.boxfolder import BoxFolder, checked_name, start_time
from harness.sandbox.cgroups import Groups

_ANSWER_SEC = 30.0
_END_SEC = 30.0


class NamespaceProcess:
    """A process in a box; what is known of it lies in its folder."""

    def __init__(self, box: "NamespaceBox", name: str) -> None:
        self.box = box
        self.name = name
        self.folder = box.folder.path / "processes" / name

    def poll(self) -> Exit | None:
        """Return how it ended, or None while it runs."""
        alive = self.box.alive()  # asked first: an end written just before the keeper's own end is not overlooked
        try:
            code, oom = (self.folder / "ended").read_text("ascii").split()
        except (FileNotFoundError, NotADirectoryError):
            return None if alive else Exit(None, timed_out=self._timed_out())
        return Exit(int(code), timed_out=self._timed_out(), out_of_memory=oom == "1")

    def _timed_out(self) -> bool:
        return (self.folder / "timed_out").exists()

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait; at the timeout kill the process and all its children and return `timed_out`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (found := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                (self.folder / "timed_out").touch()
                self.kill()
                return self._dead()
            self._sleep(left)
        return found

    def _sleep(self, left: float | None) -> None:
        """Sleep until the process may have ended, for a second at most."""
        bound = 1.0 if left is None else min(1.0, left)
        pid = self._pid()
        try:
            held = None if pid is None else os.pidfd_open(pid)
        except ProcessLookupError:
            held = None
        if held is None:
            time.sleep(min(bound, 0.001))  # it ended a moment ago and its end is being written
            return
        poll = select.poll()
        poll.register(held, select.POLLIN)
        poll.poll(bound * 1000)
        os.close(held)

    def _pid(self) -> int | None:
        """Return its number on the host while that very process lives."""
        found = self.box.folder.identity(f"processes/{self.name}/started")
        return found[0] if found is not None and start_time(found[0]) == found[1] else None

    def _dead(self) -> Exit:
        deadline = time.monotonic() + _END_SEC
        while (found := self.poll()) is None:
            if time.monotonic() > deadline:
                raise RsiError(f"the process {self.name!r} would not die", where=str(self.folder))
            time.sleep(0.001)
        return found

    def kill(self) -> None:
        """Kill the process and all its children, also those it left behind in the background."""
        try:
            mark = (self.folder / "started").read_text("ascii").split("\n")[1]
        except FileNotFoundError:
            return
        if mark and self.box.alive():
            self.box.order("kill", mark)


class NamespaceBox:
    """A box of namespaces; it is found again from its folder alone."""

    def __init__(self, spec: BoxSpec, folder: BoxFolder, lease: Mapping[str, Any]) -> None:
        self.spec = spec
        self.folder = folder
        self._lease = lease
        self._groups = Groups(lease["groups"], lease["unified"])

    def stack(self) -> list[Path]:
        """Return the layers that a box over this one starts from, newest first."""
        own = [self.folder.path / "upper"]
        if self.spec.placement is not None:
            own.append(self._placed())
        return [*own, *(Path(path) for path in self._lease["layers"])]

    def _placed(self) -> Path:
        """Return the placed files in the shape of a layer."""
        shape = self.folder.path / "placed"
        shape.mkdir(exist_ok=True)
        link = shape / "workdir"
        if not link.is_symlink():
            assert self.spec.placement is not None
            link.symlink_to(self.spec.placement.tree.resolve())
        return shape

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        output: Path,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        max_output: int = 1 << 30,
        user: str | None = None,
    ) -> Process:
        """Start a command as the box's root, or return the process of that name that is there already."""
        process = NamespaceProcess(self, checked_name(name))
        if (process.folder / "started").exists():
            return process
        only_root(user)
        if self.frozen():
            raise RsiError(f"the box {self.spec.name!r} is frozen", next_step="thaw it before a process is started")
        process.folder.mkdir(parents=True, exist_ok=True)
        request = {
            "command": [str(part) for part in command],
            "env": self._env(env or {}),
            "cwd": cwd or self.spec.image.workdir,
            "output": str(output.absolute()),
            "max_output": max_output,
        }
        with (process.folder / "request").open("wb") as file:
            marshal.dump(request, file)
        self.order("start", name)
        return process

    def _env(self, own: Mapping[str, str]) -> dict[str, str]:
        base = {
            "PATH": hostroot.default_path(),
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "RSI_LEVEL": Level.NAMESPACES.value,
            "RSI_WORKDIR": self.spec.image.workdir,
        }
        env = {**base, **self.spec.image.env, **self.spec.env, **own}
        if "RSI_MAILBOX" in env and "PATH" not in own:
            env["PATH"] = f"{env['RSI_MAILBOX']}/bin:{env['PATH']}"
        return env

    def order(self, verb: str, argument: str = "") -> None:
        """Have the keeper do something and wait for its answer."""
        if not self.alive():
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        token = f"{os.getpid()}-{time.monotonic_ns()}"
        answers = self.folder.path / f"answer-{token}"
        os.mkfifo(answers, 0o600)
        try:
            held = os.open(answers, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(held, "rb", buffering=0) as reader:
                self._send(f"{verb} {token} {argument}\n")
                answer = self._answer(reader.fileno())
        finally:
            answers.unlink(missing_ok=True)
        if answer != "ok":
            raise RsiError(f"the box {self.spec.name!r} could not {verb}: {answer.removeprefix('error: ')}")

    def _send(self, line: str) -> None:
        try:
            held = os.open(self.folder.path / "orders", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again") from error
        os.write(held, line.encode())
        os.close(held)

    def _answer(self, held: int) -> str:
        poll = select.poll()
        poll.register(held, select.POLLIN)
        deadline = time.monotonic() + _ANSWER_SEC
        while time.monotonic() < deadline:
            poll.poll(200)
            answer = _read(held)
            if answer.endswith(b"\n"):
                return answer.decode().strip()
            if not self.alive():
                break
            if not answer:
                time.sleep(0.001)  # the keeper has not opened its end yet
        raise RsiError(f"the box {self.spec.name!r} does not answer", where=str(self.folder.path))

    def process(self, name: str) -> Process | None:
        """Return the process started under that name, also by an engine that died since."""
        process = NamespaceProcess(self, checked_name(name))
        return process if (process.folder / "started").exists() else None

    def alive(self) -> bool:
        """Say whether the box can still run processes."""
        return all(self.folder.running(who, self._lease) is not None for who in ("keeper", "init"))

    def frozen(self) -> bool:
        """Say whether the box was frozen and not thawed since."""
        return (self.folder.path / "frozen").exists()

    def freeze(self) -> None:
        """Stop every process of the box; return only when none can run."""
        if not self.alive():
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        (self.folder.path / "frozen").touch()
        if self._groups.can_freeze():
            self._groups.freeze()
        else:
            self.order("freeze")

    def thaw(self) -> None:
        """Let them run again."""
        if self._groups.can_freeze():
            self._groups.thaw()
        elif self.alive():
            self.order("thaw")
        (self.folder.path / "frozen").unlink(missing_ok=True)

    def root_fd(self) -> int:
        """Open the box's root as a directory descriptor of the host."""
        init = self.folder.running("init", self._lease)
        if init is None:
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        held = os.open(f"/proc/{init}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if self.folder.running("init", self._lease) is None:
            os.close(held)
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        return held

    def workdir_fd(self) -> int:
        """Open the box's workdir as a directory descriptor of the host, following no link on the way."""
        place = self.root_fd()
        for name in self.spec.image.workdir.strip("/").split("/"):
            if not name:
                continue
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            except OSError as error:
                raise RsiError(f"the workdir of the box is no folder any more: {error.strerror}",
                               where=self.spec.image.workdir) from error  # fmt: skip
            finally:
                os.close(place)
            place = inner
        return place

    def path(self, inside: str) -> str:
        """Return the path under which code in the box sees `inside`: the same."""
        return inside

    def usage_mb(self) -> float:
        """Return the disk space the box has taken so far, in MiB."""
        return disk_usage_mb(self.folder.path / "upper")

    def end(self) -> None:
        """Kill everything in the box and leave its files; harmless when it is gone already."""
        for who in ("init", "keeper"):
            self.folder.signal(who, self._lease, signal.SIGKILL)
        if self._groups.can_freeze() and Path(self._groups.folders["freezer"]).exists():
            self._groups.thaw()  # version 1 keeps even a killed process until it is thawed
        with self.folder.locked(_END_SEC) as free:
            if not free:
                self._kill_late_ones()

    def _kill_late_ones(self) -> None:
        for who in ("init", "keeper"):
            self.folder.signal(who, self._lease, signal.SIGKILL)
        with self.folder.locked(_END_SEC) as free:
            if not free:
                raise RsiError("the processes of a box would not die", where=str(self.folder.path))

    def remove(self) -> None:
        """Kill everything and delete all that belongs to the box; harmless when it is gone already."""
        if not self.folder.path.exists():
            return
        self.end()
        self._groups.remove()
        self.folder.delete()


def only_root(user: str | None) -> None:
    """Refuse a user that boxes of the local sandbox cannot run commands as."""
    if user not in {None, "", "root", "0"}:
        raise InputError(f"a local box runs commands as its root, not as {user}", next_step="use --sandbox docker")


def _read(held: int) -> bytes:
    try:
        return os.read(held, 4096)
    except BlockingIOError:
        return b""


def disk_usage_mb(folder: Path) -> float:
    """Return the space that a tree takes on disk, in MiB; what vanishes meanwhile counts nothing.

    `du` counts trees that are deeper than a path can be long, which an agent can make.
    """
    done = subprocess.run(["du", "-skx", "--", str(folder)], capture_output=True, check=False, env={"PATH": os.defpath})
    counted = done.stdout.split(b"\t", 1)[0]
    if not counted.isdigit():
        said = done.stderr.decode(errors="replace").strip()
        raise RsiError(f"the disk space of a box cannot be counted: {said}", where=str(folder))
    return int(counted) / 1024
