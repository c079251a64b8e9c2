"""A sandbox for tests: files on disk, commands played by Python callables in threads, faults on demand.

    def judge(box, env, workdir, logs):
        (logs / "reward.json").write_text('{"reward": 1}')
        return 0

    sandbox = FakeSandbox({"test.sh": judge})

A callable that wants to be stopped like a process calls `box.checkpoint()`: it waits while the box is frozen and ends
the thread when the process was killed.
"""

import fnmatch
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import RsiError
from harness.sandbox import boxfolder, layers
from harness.sandbox.base import Box, BoxSpec, Exit, Image, Lack, Level, Process, Progress
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.tree import BoxTree, build_tree

Behaviour = Callable[["FakeBox", Mapping[str, str], Path, Path], int]
"""Plays a command: given box, environment, workdir and the host's folder of /logs/verifier, returns an exit code."""

_PATH = "/usr/local/bin:/usr/bin:/bin"


class Fault(StrEnum):
    """What can be made to go wrong."""

    BUILD_FAILS = "build_fails"
    CREATE_FAILS = "create_fails"
    START_FAILS = "start_fails"
    HANGS = "hangs"
    OUT_OF_MEMORY = "out_of_memory"
    BOX_VANISHES = "box_vanishes"
    FREEZE_FAILS = "freeze_fails"


@dataclass
class _Injected:
    pattern: str
    fault: Fault
    times: int


class FakeKilled(BaseException):
    """Ends the thread of a command whose process was killed."""


class FakeProcess:
    """A command played by a thread."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.name = name
        self.command = tuple(command)
        self.env = dict(env)
        self.killed = threading.Event()
        self.done = threading.Event()
        self._exit: Exit | None = None

    def end(self, found: Exit) -> None:
        """Record how it ended; the first record stays."""
        if self._exit is None:
            self._exit = found
            self.done.set()

    def poll(self) -> Exit | None:
        """Return how it ended, or None while it runs."""
        return self._exit

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait; at the timeout kill the process and return `timed_out`."""
        if not self.done.wait(timeout):
            self.killed.set()
            self.end(Exit(137, timed_out=True))
        assert self._exit is not None
        return self._exit

    def kill(self) -> None:
        """Kill the process."""
        self.killed.set()
        self.end(Exit(137))


class FakeBox:
    """A box whose files are real and whose processes are threads."""

    def __init__(self, sandbox: "FakeSandbox", spec: BoxSpec, folder: BoxFolder) -> None:
        self.spec = spec
        self.sandbox = sandbox
        self.folder = folder
        self.tree = BoxTree(folder.path / "root", spec, spec.mounts)
        self.processes: dict[str, FakeProcess] = {}
        self.calls: list[str] = []
        """Every start, freeze, thaw and remove, in order."""
        self.gone = False
        self._running = threading.Event()
        self._running.set()

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
        """Play a command, or return the process of that name that is there already."""
        if name in self.processes:
            return self.processes[name]
        if self.gone:
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        self.calls.append(f"start {name}" + (f" as {user}" if user else ""))
        if self.sandbox.strikes(name, Fault.START_FAILS):
            raise RsiError(f"the process {name!r} could not be started")
        own = {"PATH": _PATH, "RSI_LEVEL": Level.FAKE.value, "RSI_WORKDIR": self.path(cwd or self.spec.image.workdir)}
        process = FakeProcess(name, command, {**own, **self.spec.image.env, **self.spec.env, **(env or {})})
        self.processes[name] = process
        output.parent.mkdir(parents=True, exist_ok=True)
        output.touch()
        thread = threading.Thread(target=self._play, args=(process, output, max_output), daemon=True)
        thread.start()
        return process

    def _play(self, process: FakeProcess, output: Path, max_output: int) -> None:
        _CURRENT.process = process
        try:
            if self.sandbox.strikes(process.name, Fault.HANGS):
                process.killed.wait()
            elif self.sandbox.strikes(process.name, Fault.OUT_OF_MEMORY):
                process.end(Exit(137, out_of_memory=True))
            elif self.sandbox.strikes(process.name, Fault.BOX_VANISHES):
                self.vanish()
            else:
                process.end(Exit(self._behave(process)))
        except FakeKilled:
            process.end(Exit(137))
        except Exception as error:  # noqa: BLE001 - a command that crashes is an exit code, as anywhere
            with output.open("a", encoding="utf-8") as file:
                file.write(f"{type(error).__name__}: {error}\n"[:max_output])
            process.end(Exit(1))

    def _behave(self, process: FakeProcess) -> int:
        behaviour = self.sandbox.behaviour_of(process)
        if behaviour is None:
            return 127
        return behaviour(self, process.env, Path(self.path(self.spec.image.workdir)), Path(self.path("/logs/verifier")))

    def checkpoint(self) -> None:
        """Wait while the box is frozen; end this thread if its process was killed."""
        process: FakeProcess = _CURRENT.process
        while not self._running.wait(0.01):
            if process.killed.is_set():
                break
        if process.killed.is_set():
            raise FakeKilled

    def sleep(self, seconds: float) -> None:
        """Sleep like a process: frozen with the box, ended by a kill."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.checkpoint()
            time.sleep(min(0.005, seconds))

    def vanish(self) -> None:
        """Let the box disappear as if the host had restarted: its files stay, its processes have no known end."""
        self.gone = True
        for process in self.processes.values():
            process.killed.set()
            process.end(Exit(None))

    def process(self, name: str) -> Process | None:
        """Return the process started under that name."""
        return self.processes.get(name)

    def alive(self) -> bool:
        """Say whether the box can still run processes."""
        return not self.gone and self.folder.path.exists()

    def freeze(self) -> None:
        """Hold every command at its next checkpoint."""
        self.calls.append("freeze")
        if self.gone:
            raise RsiError(f"the box {self.spec.name!r} is gone", next_step="make it again")
        if self.sandbox.strikes(self.spec.name, Fault.FREEZE_FAILS):
            raise RsiError(f"the box {self.spec.name!r} could not be frozen")
        self._running.clear()

    def thaw(self) -> None:
        """Let them go on."""
        self.calls.append("thaw")
        self._running.set()

    def frozen(self) -> bool:
        """Say whether the box is frozen."""
        return not self._running.is_set()

    def workdir_fd(self) -> int:
        """Open the box's workdir as a directory descriptor."""
        return self.tree.workdir_fd()

    def path(self, inside: str) -> str:
        """Return the real path of a path in the box."""
        return self.tree.path(inside)

    def usage_mb(self) -> float:
        """Return the disk space of the box's files, in MiB."""
        return sum(path.lstat().st_size for path in self.tree.root.rglob("*")) / (1 << 20)

    def end(self) -> None:
        """End everything and leave the files; harmless when it is gone already."""
        self.calls.append("end")
        self._running.set()
        for process in self.processes.values():
            process.kill()
        self.gone = True

    def remove(self) -> None:
        """End everything and delete the files; harmless when it is gone already."""
        self.end()
        self.calls.append("remove")
        if self.folder.path.exists():
            self.folder.delete()
        self.sandbox.boxes.pop((self.spec.run, self.spec.name), None)


class _Current(threading.local):
    process: FakeProcess


_CURRENT = _Current()


class FakeSandbox:
    """Makes fake boxes; `behaviour` is one callable for every command or one per command or process name."""

    level = Level.FAKE

    def __init__(self, behaviour: Behaviour | Mapping[str, Behaviour] | None = None) -> None:
        self.behaviour = behaviour
        self.boxes: dict[tuple[str, str], FakeBox] = {}
        self.made: list[FakeBox] = []
        """Every box ever made, also removed ones."""
        self._faults: list[_Injected] = []

    def inject(self, pattern: str, fault: Fault, *, times: int = 1) -> None:
        """Let a fault strike the next `times` boxes or processes whose name matches a glob."""
        self._faults.append(_Injected(pattern, fault, times))

    def strikes(self, name: str, fault: Fault) -> bool:
        """Say whether a fault strikes now, and use it up."""
        for injected in self._faults:
            if injected.fault is fault and injected.times > 0 and fnmatch.fnmatchcase(name, injected.pattern):
                injected.times -= 1
                return True
        return False

    def behaviour_of(self, process: FakeProcess) -> Behaviour | None:
        """Return what plays a process: looked up by its name, by the command's file name, then by its words."""
        if self.behaviour is None or callable(self.behaviour):
            return self.behaviour
        names = [process.name, *(Path(word).name for word in process.command)]
        return next((self.behaviour[name] for name in names if name in self.behaviour), self.behaviour.get("*"))

    def lacks(self) -> list[Lack]:
        """Return nothing: it runs everywhere."""
        return []

    def describe(self) -> list[str]:
        """Return in plain words what is isolated: nothing."""
        return ["fake: commands are played by test code; nothing is isolated and no score means anything"]

    def bare_image(self) -> Image:
        """Return an empty image with the workdir /app."""
        digest = layers.ensure("fake-empty", lambda folder: (folder / "app").mkdir())
        layers.save_image(digest, {"layers": [digest]})
        return Image(digest, "/app", {"PATH": _PATH})

    def build(self, environment: Path, *, workdir: str | None, timeout: float, progress: Progress) -> Image:  # noqa: ARG002 - copying takes no bound
        """Carry out COPY, ENV and WORKDIR; a RUN is noted and skipped."""
        if self.strikes(environment.parent.name, Fault.BUILD_FAILS):
            raise RsiError("the image could not be built", where=str(environment))
        return build_tree(environment, workdir=workdir, progress=progress, level=self.level.value, default_path=_PATH,
                          skip_run=True)  # fmt: skip

    def pull(self, reference: str, *, workdir: str | None, timeout: float, progress: Progress) -> Image:  # noqa: ARG002 - nothing is fetched
        """Return the empty image under another name."""
        bare = self.bare_image()
        progress(f"pull {reference}")
        return Image(bare.digest, workdir or bare.workdir, bare.env)

    def create(self, spec: BoxSpec) -> Box:
        """Make a box."""
        if self.strikes(spec.name, Fault.CREATE_FAILS):
            raise RsiError(f"the box {spec.name!r} could not be made")
        folder = BoxFolder(boxfolder.folder_of(spec.run, spec.name))
        if folder.lease() is not None:
            raise RsiError(f"there is a box {spec.name!r} of run {spec.run!r} already", where=str(folder.path))
        folder.path.mkdir(parents=True, exist_ok=True)
        lease = {"level": self.level.value, "boot": boxfolder.boot(), "owner": boxfolder.me()}
        boxfolder.write_json(folder.path / "lease.json", {**lease, "spec": boxfolder.spec_to_json(spec)})
        box = FakeBox(self, spec, folder)
        box.tree.fill()
        self.boxes[spec.run, spec.name] = box
        self.made.append(box)
        return box

    def attach(self, run: str, name: str) -> Box | None:
        """Return a box made before: as it is by this object, without its processes by another one."""
        if (run, name) in self.boxes:
            return self.boxes[run, name]
        folder = BoxFolder(boxfolder.folder_of(run, name))
        lease = folder.lease()
        if lease is None or lease["level"] != self.level:
            return None
        box = FakeBox(self, boxfolder.spec_from_json(lease["spec"]), folder)
        box.gone = True
        return box

    def sweep(self, run: str) -> list[str]:
        """Remove every box of a run that is left."""
        left = [box for box in list(self.boxes.values()) if box.spec.run == run]
        for box in left:
            box.remove()
        removed = boxfolder.sweep(run, self.level, lambda folder, _: folder.delete())
        return [*(f"box {box.spec.name}" for box in left), *removed]
