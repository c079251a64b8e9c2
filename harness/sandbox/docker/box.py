"""A box that is a container: its root, a workdir that the host sees, and the commands in it."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import RsiError
from harness.sandbox import boxfolder
from harness.sandbox.base import BoxSpec, Level, Process
from harness.sandbox.boxfolder import BoxFolder, checked_name, remove_tree
from harness.sandbox.docker import memory, names
from harness.sandbox.docker.client import Conflict, Missing, answers, engine, socket_path
from harness.sandbox.docker.network import BoxNetwork
from harness.sandbox.docker.process import DockerProcess
from harness.sandbox.namespacebox import disk_usage_mb

WORKDIR = "workdir"
"""Name of the folder below a box's own that its workdir lies in."""


class DockerBox:
    """A container and what belongs to it; it is found again from its folder alone."""

    def __init__(self, spec: BoxSpec, folder: BoxFolder, lease: Mapping[str, Any]) -> None:
        self.spec = spec
        self.folder = folder
        self.lease = lease
        self.name = names.thing(spec)

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
        """Start a command, or return the process of that name that is there already."""
        process = self._process(name)
        if process.started():
            return process
        state = self._alive_state()
        if state["Paused"]:
            raise RsiError(f"the box {self.spec.name!r} is frozen", next_step="thaw it before a process is started")
        process.folder.mkdir(parents=True, exist_ok=True)
        # One stream for both, so that lines stay in the order in which they were written.
        words = ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *(str(word) for word in command)]
        with answers(self.name):
            made = engine().api.exec_create(
                self.name,
                words,
                environment=self._env(env or {}),
                workdir=cwd or self.spec.image.workdir,
                user=user or self.spec.image.user or "root",
            )
        process.supervise(
            {
                "folder": str(process.folder),
                "socket": str(socket_path()),
                "exec": made["Id"],
                "output": str(output.absolute()),
                "max_output": max_output,
                "oom": memory.counter(state["Pid"]) or "",
            }
        )
        return process

    def _env(self, own: Mapping[str, str]) -> dict[str, str]:
        base = {"LANG": "C.UTF-8", "RSI_LEVEL": Level.CONTAINER.value, "RSI_WORKDIR": self.spec.image.workdir}
        env = {**base, **self.spec.image.env, **BoxNetwork(self.spec, self.folder).env(), **self.spec.env, **own}
        if "RSI_MAILBOX" in env and "PATH" not in own:
            env["PATH"] = f"{env['RSI_MAILBOX']}/bin:{env['PATH']}"
        return env

    def _process(self, name: str) -> DockerProcess:
        return DockerProcess(self.folder, self.lease["boot"], checked_name(name), self._restart)

    def _restart(self) -> None:
        """Kill all that runs in the container; its files stay."""
        try:
            with answers(self.name):
                engine().api.restart(self.name, timeout=0)
        except Missing:
            return
        # A restart thaws; a box that was frozen stays so.
        if (self.folder.path / "frozen").exists():
            self._pause()

    def process(self, name: str) -> Process | None:
        """Return the process started under that name, also by an engine that died since."""
        process = self._process(name)
        return process if process.started() else None

    def _state(self) -> dict[str, Any] | None:
        try:
            with answers(self.name):
                state: dict[str, Any] = engine().api.inspect_container(self.name)["State"]
        except Missing:
            return None
        return state

    def _alive_state(self) -> dict[str, Any]:
        state = self._state()
        if state is None or not _running(state) or self.lease["boot"] != boxfolder.boot():
            raise RsiError(f"the box {self.spec.name!r} is gone", where=self.name, next_step="make it again")
        return state

    def alive(self) -> bool:
        """Say whether the box can still run processes."""
        state = self._state()
        return state is not None and _running(state) and self.lease["boot"] == boxfolder.boot()

    def freeze(self) -> None:
        """Stop every process of the box; return only when none can run."""
        self._alive_state()
        (self.folder.path / "frozen").touch()
        self._pause()

    def _pause(self) -> None:
        try:
            with answers(self.name):
                engine().api.pause(self.name)
        except (Conflict, RsiError):
            if not (self._state() or {}).get("Paused"):
                raise

    def thaw(self) -> None:
        """Let them run again."""
        state = self._state()
        if state is not None and state["Paused"]:
            with answers(self.name):
                engine().api.unpause(self.name)
        (self.folder.path / "frozen").unlink(missing_ok=True)

    def workdir_fd(self) -> int:
        """Open the workdir as a directory descriptor of the host."""
        if not self.lease["volume"]:
            pid = self._alive_state()["Pid"]
            return os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return os.open(self.folder.path / WORKDIR, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again") from error

    def path(self, inside: str) -> str:
        """Return the path under which code in the box sees `inside`: the same."""
        return inside

    def usage_mb(self) -> float:
        """Return the disk space the box has taken so far, in MiB."""
        with answers(self.name):
            found = engine().api.containers(all=True, size=True, filters={"name": f"^/?{self.name}$"})
        layer = sum(int(one.get("SizeRw") or 0) for one in found) / (1 << 20)
        return layer + (disk_usage_mb(self.folder.path / WORKDIR) if self.lease["volume"] else 0)

    def end(self) -> None:
        """Kill everything in the box and leave its files; harmless when it is gone already."""
        state = self._state()
        if state is None or not (state["Running"] or state["Paused"]):
            return
        try:
            with answers(self.name):
                engine().api.kill(self.name)
                engine().api.wait(self.name, timeout=60)
        except Conflict:
            pass  # it ended by itself a moment ago

    def remove(self) -> None:
        """Kill everything and delete all that belongs to the box; harmless when it is gone already."""
        if not self.folder.path.exists():
            return
        api = engine().api
        with _harmless(self.name):
            api.remove_container(self.name, v=True, force=True)
        with _harmless(self.name):
            api.remove_volume(self.name, force=True)
        if self.lease["commit"]:
            with _harmless(self.name):
                api.remove_image(self.lease["commit"], force=True)
        BoxNetwork(self.spec, self.folder).remove(dict(self.lease))
        self.folder.delete()

    def copy_workdir(self, target: Path) -> None:
        """Copy the workdir as it stands, sharing blocks where the file system can; the box is frozen or dead."""
        if target.exists():
            remove_tree(target)
        import subprocess  # here, as only a box over another needs it

        done = subprocess.run(
            ["cp", "-a", "--reflink=auto", "--", str(self.folder.path / WORKDIR), str(target)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(target, ignore_errors=True)
            raise RsiError(f"the workdir could not be copied: {done.stderr.strip()[-300:]}", where=str(target))


@contextmanager
def _harmless(where: str) -> Iterator[None]:
    """Take it for done where the engine knows no such thing."""
    try:
        with answers(where):
            yield
    except Missing:
        return


def _running(state: Mapping[str, Any]) -> bool:
    # Docker says of a paused container that it runs, Podman does not.
    return bool(state["Running"] or state["Paused"])
