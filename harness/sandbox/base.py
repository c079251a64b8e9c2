"""The protocol of a sandbox: where work and judge live.

A `Sandbox` builds images and makes boxes; a `Box` is one isolated machine in which processes run.
Processes write to files of the host, never to a pipe of the engine, so that they outlive it: an engine that died is
followed by one that calls `attach` and finds box and processes as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from harness.errors import RsiError

Progress = Callable[[str], None]
"""Is told one line of what goes on."""


class Unavailable(RsiError):
    """The sandbox as a whole cannot work: a run stops and can be resumed, and nobody gets a verdict for it."""


class Level(StrEnum):
    """How strongly a box is isolated, strongest first."""

    CONTAINER = "container"
    NAMESPACES = "namespaces"
    PROCESS = "process"
    FAKE = "fake"


class Role(StrEnum):
    """What a box is for."""

    WORK = "work"
    JUDGE = "judge"
    BUILD = "build"


class Reach(StrEnum):
    """What a box may reach over the network; the words are Harbor's."""

    NONE = "no-network"
    PUBLIC = "public"
    LISTED = "allowlist"


@dataclass(frozen=True)
class Network:
    """The network of a box; `hosts` are the entries of an allow-list: names, wildcards such as *.pypi.org, CIDRs."""

    reach: Reach = Reach.NONE
    hosts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything at all can be reached."""
        return self.reach is not Reach.NONE


NO_NETWORK = Network()
"""The network of a box that reaches nothing."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one box; None means the sandbox's own default."""

    cpus: float | None = None
    memory_mb: int | None = None
    pids: int = 512
    storage_mb: int | None = None
    shm_mb: int | None = None
    """Size of /dev/shm."""


@dataclass(frozen=True)
class Image:
    """A built environment, named by its content."""

    digest: str
    workdir: str
    """Absolute path of the workdir as code in the box sees it."""
    env: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was not carried out literally, in words for a person."""
    user: str = ""
    """User that commands run as where none is named; empty is root."""


@dataclass(frozen=True)
class Mount:
    """A folder of the host shown in a box."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Placement:
    """Files laid over the image's workdir before the box starts.

    `tree` is a folder of regular files; `remove` are paths, relative to the workdir, that the image has and the box
    must not have. A box never changes the files of `tree`.
    """

    tree: Path
    remove: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoxSpec:
    """What a box shall be. `name` is unique within its run; `run` and `name` find it again."""

    run: str
    name: str
    role: Role
    image: Image
    network: Network = NO_NETWORK
    limits: Limits = Limits()
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    placement: Placement | None = None
    over: "Box | None" = None
    """Frozen box whose file system this one starts from (Harbor's `work` judge) instead of the image's."""
    gpus: tuple[str, ...] = ()
    """Ids of the devices that the box may use."""


@dataclass(frozen=True)
class Exit:
    """How a process ended. `code` is None where it is unknown (box gone, host restarted)."""

    code: int | None
    timed_out: bool = False
    out_of_memory: bool = False


class Process(Protocol):
    """A process in a box; it outlives the engine."""

    name: str

    def poll(self) -> Exit | None:
        """Return how it ended, or None while it runs."""

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait; at the timeout kill the process and all its children and return `timed_out`."""

    def kill(self) -> None:
        """Kill the process and all its children."""


class Box(Protocol):
    """One isolated machine."""

    spec: BoxSpec

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
        """Start a command as `user`, by default as the image's own; `output` gets what it prints, `max_output` bytes.

        Starting a name that this box already started returns the process that is there.
        """

    def process(self, name: str) -> Process | None:
        """Return the process started under that name, also by an engine that died since."""

    def alive(self) -> bool:
        """Say whether the box can still run processes."""

    def freeze(self) -> None:
        """Stop every process of the box; return only when none can run."""

    def thaw(self) -> None:
        """Let them run again."""

    def workdir_fd(self) -> int:
        """Open the workdir as a directory descriptor of the host; the caller closes it and follows no link below."""

    def path(self, inside: str) -> str:
        """Return the path under which code in the box sees `inside`; differs only at the process level."""

    def usage_mb(self) -> float:
        """Return the disk space the box has taken so far, in MiB."""

    def end(self) -> None:
        """Kill everything and leave the files, from which another box can start; harmless when it is gone."""

    def remove(self) -> None:
        """Kill everything and delete all that belongs to the box; harmless when it is gone already."""


@dataclass(frozen=True)
class Lack:
    """Something the machine lacks, and how to get it."""

    what: str
    fix: str


@runtime_checkable
class Sandbox(Protocol):
    """A maker of boxes."""

    level: Level

    def lacks(self) -> list[Lack]:
        """Return what this machine lacks for this sandbox; empty means it can be used."""

    def describe(self) -> list[str]:
        """Return in plain words what is isolated and what is not, for the plan, the screen and the report."""

    def build(self, environment: Path, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
        """Build the image of an `environment/` folder, or find it in the cache; an error names file and line."""

    def pull(self, reference: str, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
        """Return a ready-made image by its reference, fetching it if needed; an InputError where it cannot be had."""

    def create(self, spec: BoxSpec) -> Box:
        """Make a box; what it will own is written to disk before it exists, so `sweep` finds it."""

    def attach(self, run: str, name: str) -> Box | None:
        """Return a box made by an earlier engine, or None when it is gone."""

    def sweep(self, run: str) -> list[str]:
        """Remove every box, mount, process and folder of a run that is left; return what was removed, in words."""
