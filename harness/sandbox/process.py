"""Boxes of plain processes: for systems without namespaces, such as macOS or a container without privileges.

It keeps runs and judges in order, not apart: what describe() says of it is part of every plan and report.
"""

import marshal
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError, RsiError
from harness.sandbox import boxfolder, descendants, hostroot
from harness.sandbox.base import Box, BoxSpec, Exit, Image, Lack, Level, Mount, Process, Progress, Role
from harness.sandbox.boxfolder import BoxFolder, checked_name
from harness.sandbox.namespacebox import disk_usage_mb, only_root
from harness.sandbox.tree import BoxTree, build_tree, copy_tree

_UIDS = {Role.WORK: 64301, Role.JUDGE: 64302, Role.BUILD: 64303}
"""Users that own nothing on any usual system; work and judge are different ones."""
_COPIED_MB = 256
_END_SEC = 30.0


def usable_path() -> str:
    """Return the PATH of a box: the interpreter first, unless the users that boxes become may not reach it."""
    path = hostroot.default_path()
    if os.geteuid() == 0 and not passable(Path(hostroot.prefix())):
        return ":".join(part for part in path.split(":") if not part.startswith(hostroot.prefix()))
    return path


def passable(path: Path) -> bool:
    """Say whether other users may pass every folder on the way to a path."""
    real = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in (real, *real.parents) if folder.is_dir())


class PlainProcess:
    """A process without namespaces; its supervisor is the parent that none of its descendants can leave."""

    def __init__(self, box: "ProcessBox", name: str) -> None:
        self.box = box
        self.name = name
        self.folder = box.folder.path / "processes" / name

    def supervisor(self) -> int | None:
        """Return the number of the supervisor while it lives."""
        return self.box.folder.running(f"processes/{self.name}/supervisor", self.box.lease)

    def poll(self) -> Exit | None:
        """Return how it ended, or None while it runs."""
        alive = self.supervisor() is not None
        timed_out = (self.folder / "timed_out").exists()
        try:
            code = (self.folder / "ended").read_text("ascii").split()[0]
        except FileNotFoundError:
            return None if alive else Exit(None, timed_out=timed_out)
        return Exit(int(code), timed_out=timed_out)

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait; at the timeout kill the process and all its children and return `timed_out`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.001
        while (found := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                (self.folder / "timed_out").touch()
                self.kill()
                deadline = None
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)
        return found

    def kill(self) -> None:
        """Kill the process and all its descendants."""
        supervisor = self.supervisor()
        if supervisor is not None:
            descendants.kill_below(supervisor, timeout=_END_SEC)


class ProcessBox:
    """A folder, and the processes started for it."""

    def __init__(self, spec: BoxSpec, folder: BoxFolder, lease: Mapping[str, Any]) -> None:
        self.spec = spec
        self.folder = folder
        self.lease = lease
        mounts = tuple(Mount(Path(source), target, ro) for source, target, ro in lease["mounts"])
        self.tree = BoxTree(folder.path / "root", spec, mounts)

    def uid(self) -> int | None:
        """Return the user that processes of the box become, or None where they stay this one."""
        places = (self.tree.root, *(mount.source for mount in self.tree.mounts))
        return _UIDS[self.spec.role] if os.geteuid() == 0 and all(passable(path) for path in places) else None

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
        process = PlainProcess(self, checked_name(name))
        if (process.folder / "started").exists():
            return process
        only_root(user)
        if not self.alive():
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        if self.frozen():
            raise RsiError(f"the box {self.spec.name!r} is frozen", next_step="thaw it before a process is started")
        process.folder.mkdir(parents=True, exist_ok=True)
        words = [str(word) for word in command]
        request = {
            "folder": str(process.folder),
            "command": [
                self.path(words[0]) if words[0].startswith("/") and self._has(words[0]) else words[0],
                *words[1:],
            ],
            "env": self._env(env or {}),
            "cwd": self.path(cwd or self.spec.image.workdir),
            "output": str(output.absolute()),
            "max_output": max_output,
            "uid": self.uid(),
            "rlimits": self._rlimits(),
        }
        self._supervise(process, request)
        return process

    def _has(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def _env(self, own: Mapping[str, str]) -> dict[str, str]:
        home = self.folder.path / "home"
        base = {"PATH": usable_path(), "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(self.folder.path / "tmp")}
        given = {**self.spec.image.env, **self.spec.env, **own}
        mapped = {name: self.tree.value(value) for name, value in given.items()}
        env = {**base, "RSI_LEVEL": Level.PROCESS.value, "RSI_WORKDIR": self.path(self.spec.image.workdir), **mapped}
        if "RSI_MAILBOX" in env and "PATH" not in own:
            env["PATH"] = f"{env['RSI_MAILBOX']}/bin:{env['PATH']}"
        return env

    def _rlimits(self) -> dict[int, int]:
        limits = self.spec.limits
        found = {resource.RLIMIT_CORE: 0}
        if limits.storage_mb is not None:
            found[resource.RLIMIT_FSIZE] = limits.storage_mb << 20
        if limits.memory_mb is not None:
            found[resource.RLIMIT_DATA] = limits.memory_mb << 20
        others = 0 if self.uid() is not None else descendants.count_of_user(os.getuid())
        found[resource.RLIMIT_NPROC] = limits.pids + others
        return found

    def _supervise(self, process: PlainProcess, request: dict[str, Any]) -> None:
        package = Path(__file__).resolve().parents[2]
        code = f"import sys; sys.path.append({str(package)!r}); from harness.sandbox.inside.plain import main; main()"
        with (self.folder.path / "supervisors.log").open("ab") as log:
            starter = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={}, cwd="/",
            )  # fmt: skip
        assert starter.stdin is not None
        assert starter.stdout is not None
        with starter.stdin, starter.stdout:
            supervisor = int(starter.stdout.readline() or b"0")
            starter.wait()  # it went on in a child of its own
            # Written before the request is sent: a supervisor that is not known here runs nothing.
            started = boxfolder.start_time(supervisor) if supervisor else None
            (process.folder / "supervisor").write_text(f"{supervisor} {started}\n", "ascii")
            starter.stdin.write(marshal.dumps(request))
            starter.stdin.close()
            said = starter.stdout.read()
        if said != b"ready":
            log_file = self.folder.path / "supervisors.log"
            raise RsiError(f"the process {process.name!r} could not be started", where=str(log_file))

    def process(self, name: str) -> Process | None:
        """Return the process started under that name, also by an engine that died since."""
        process = PlainProcess(self, checked_name(name))
        return process if (process.folder / "started").exists() else None

    def _processes(self) -> list[PlainProcess]:
        folder = self.folder.path / "processes"
        return [PlainProcess(self, path.name) for path in sorted(folder.iterdir())] if folder.is_dir() else []

    def alive(self) -> bool:
        """Say whether the box can still run processes: its folder is there and the host did not restart."""
        return (self.folder.path / "ready").exists() and self.lease["boot"] == boxfolder.boot()

    def frozen(self) -> bool:
        """Say whether the box was frozen and not thawed since."""
        return (self.folder.path / "frozen").exists()

    def freeze(self) -> None:
        """Stop every process of the box; return only when none can run."""
        if not self.alive():
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        (self.folder.path / "frozen").touch()
        descendants.stop_below(self._supervisors(), timeout=_END_SEC)

    def thaw(self) -> None:
        """Let them run again."""
        for supervisor in self._supervisors():
            descendants.signal_below(supervisor, signal.SIGCONT)
        (self.folder.path / "frozen").unlink(missing_ok=True)

    def _supervisors(self) -> list[int]:
        found = [process.supervisor() for process in self._processes()]
        return [pid for pid in found if pid is not None]

    def workdir_fd(self) -> int:
        """Open the box's workdir as a directory descriptor of the host."""
        return self.tree.workdir_fd()

    def path(self, inside: str) -> str:
        """Return the host's path of a path in the box."""
        return self.tree.path(inside)

    def usage_mb(self) -> float:
        """Return the disk space of the box's files, in MiB."""
        return disk_usage_mb(self.tree.root) + disk_usage_mb(self.folder.path / "tmp")

    def end(self) -> None:
        """Kill everything and leave the files; harmless when it is gone already."""
        if not self.folder.path.exists():
            return
        for process in self._processes():
            process.kill()
            self.folder.signal(f"processes/{process.name}/supervisor", self.lease, signal.SIGKILL)
            deadline = time.monotonic() + _END_SEC
            while process.supervisor() is not None and time.monotonic() < deadline:
                time.sleep(0.001)

    def remove(self) -> None:
        """Kill everything and delete the files; harmless when it is gone already."""
        if self.folder.path.exists():
            self.end()
            self.folder.delete()


class ProcessSandbox:
    """Makes boxes of plain processes."""

    level = Level.PROCESS

    def lacks(self) -> list[Lack]:
        """Return nothing: it needs a POSIX system and no more."""
        return []

    def describe(self) -> list[str]:
        """Return in plain words what is isolated and what is not."""
        from harness.sandbox.abilities import (
            describe_processes,
        )  # here, as a later engine that only attaches needs none

        return describe_processes()

    def bare_image(self) -> Image:
        """Return an empty image with the workdir /app."""
        from harness.sandbox import layers  # here, as only tests and checks want it

        digest = layers.ensure("process-empty", lambda folder: (folder / "app").mkdir())
        layers.save_image(digest, {"layers": [digest]})
        return Image(digest, "/app", {"PATH": usable_path()})

    def build(self, environment: Path, *, workdir: str | None, timeout: float, progress: Progress) -> Image:  # noqa: ARG002 - copying takes no bound
        """Carry out COPY, ENV and WORKDIR in a folder of the cache; a RUN is an error that names its line."""
        return build_tree(
            environment, workdir=workdir, progress=progress, level=self.level.value, default_path=usable_path()
        )

    def pull(self, reference: str, *, workdir: str | None, timeout: float, progress: Progress) -> Image:  # noqa: ARG002 - none is fetched
        """Refuse: images are an engine's."""
        raise InputError(f"only an engine can fetch the image {reference}", next_step="use --sandbox docker")

    def create(self, spec: BoxSpec) -> Box:
        """Make a box; what it will own is written to disk before it exists, so `sweep` finds it."""
        folder = BoxFolder(boxfolder.folder_of(spec.run, spec.name))
        if folder.lease() is not None:
            raise RsiError(f"there is a box {spec.name!r} of run {spec.run!r} already", where=str(folder.path))
        folder.path.mkdir(parents=True, exist_ok=True)
        copied = [
            mount for mount in spec.mounts if spec.role is Role.JUDGE and mount.read_only and _small(mount.source)
        ]
        places = {mount.target: folder.path / "mounts" / str(number) for number, mount in enumerate(copied)}
        lease = {
            "level": self.level.value,
            "boot": boxfolder.boot(),
            "owner": boxfolder.me(),
            "spec": boxfolder.spec_to_json(spec),
            "mounts": [[str(places.get(one.target, one.source)), one.target, one.read_only] for one in spec.mounts],
        }
        boxfolder.write_json(folder.path / "lease.json", lease)
        box = ProcessBox(spec, folder, lease)
        try:
            # A judge gets a copy of its tests: nothing else keeps a candidate's hands off the author's own files here.
            for mount in copied:
                copy_tree(mount.source, places[mount.target])
            box.tree.fill()
            for name in ("home", "tmp"):
                (folder.path / name).mkdir()
            self._give(box)
            (folder.path / "ready").touch()
        except BaseException:
            box.remove()
            raise
        return box

    def _give(self, box: ProcessBox) -> None:
        """Let the box's user own what the box may write."""
        uid = box.uid()
        if uid is None:
            return
        writable = [mount.source for mount in box.tree.mounts if not mount.read_only]
        for top in (box.tree.root, box.folder.path / "home", box.folder.path / "tmp", *writable):
            for folder, _, files in os.walk(top):
                os.chown(folder, uid, uid)
                for name in files:
                    os.chown(Path(folder) / name, uid, uid, follow_symlinks=False)

    def attach(self, run: str, name: str) -> Box | None:
        """Return a box made by an earlier engine, or None when it is gone."""
        folder = BoxFolder(boxfolder.folder_of(run, name))
        lease = folder.lease()
        if lease is None or lease["level"] != self.level:
            return None
        return ProcessBox(boxfolder.spec_from_json(lease["spec"]), folder, lease)

    def sweep(self, run: str) -> list[str]:
        """Remove every box of a run that is left; return what was removed, in words."""
        return boxfolder.sweep(run, self.level, _remove)


def _remove(folder: BoxFolder, lease: Mapping[str, Any]) -> None:
    ProcessBox(boxfolder.spec_from_json(lease["spec"]), folder, lease).remove()


def _small(source: Path) -> bool:
    return source.is_dir() and disk_usage_mb(source) <= _COPIED_MB
