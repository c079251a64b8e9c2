"""Control groups of a box, version 1 or 2, where this user may make them.

A box without them is still bounded by rlimits and frozen by signals; what is lost is said in `lacks`.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import RsiError
from harness.sandbox.base import Limits

_SETTLE_SEC = 10.0


@dataclass(frozen=True)
class Groups:
    """The folders that a box's processes join, by controller; version 2 has one folder for all."""

    folders: dict[str, str] = field(default_factory=dict)
    unified: bool = False

    def joins(self) -> list[str]:
        """Return the files through which a process joins."""
        return sorted({f"{folder}/cgroup.procs" for folder in self.folders.values()})

    def oom_file(self) -> str:
        """Return the file that counts kills for want of memory, or an empty text."""
        memory = self.folders.get("memory")
        if not memory:
            return ""
        return f"{memory}/memory.events" if self.unified else f"{memory}/memory.oom_control"

    def can_freeze(self) -> bool:
        """Say whether processes can be frozen here."""
        return "freezer" in self.folders

    def freeze(self) -> None:
        """Freeze, and return only when every process is frozen."""
        if self.unified:
            self._settle("cgroup.freeze", "1", "cgroup.events", "frozen 1")
        else:
            self._settle("freezer.state", "FROZEN", "freezer.state", "FROZEN")

    def thaw(self) -> None:
        """Let the processes run again."""
        if self.unified:
            self._settle("cgroup.freeze", "0", "cgroup.events", "frozen 0")
        else:
            self._settle("freezer.state", "THAWED", "freezer.state", "THAWED")

    def _settle(self, order: str, wanted: str, state: str, expected: str) -> None:
        folder = Path(self.folders["freezer"])
        deadline = time.monotonic() + _SETTLE_SEC
        while time.monotonic() < deadline:
            # Version 1 was seen to stay FREEZING for good after one order in 13 of 200 rounds: order again.
            (folder / order).write_text(wanted)
            until = min(deadline, time.monotonic() + 0.02)
            while time.monotonic() < until:
                if expected in (folder / state).read_text().splitlines():
                    return
                time.sleep(0.0002)
        raise RsiError(f"the processes of a box did not become {wanted}", where=str(folder))

    def apply(self, limits: Limits) -> None:
        """Make the folders and set the bounds."""
        for folder in dict.fromkeys(self.folders.values()):
            Path(folder).mkdir(parents=True, exist_ok=True)
        memory, pids, cpu = (Path(self.folders.get(name, "")) for name in ("memory", "pids", "cpu"))
        if limits.memory_mb is not None and "memory" in self.folders:
            size = str(limits.memory_mb << 20)
            names = ("memory.max",) if self.unified else ("memory.limit_in_bytes",)
            _write(memory, names, size)
            _write_if_there(memory, "memory.swap.max" if self.unified else "memory.memsw.limit_in_bytes",
                            "0" if self.unified else size)  # fmt: skip
        if "pids" in self.folders:
            _write(pids, ("pids.max",), str(limits.pids))
        if limits.cpus is not None and "cpu" in self.folders:
            quota = max(1000, int(limits.cpus * 100_000))
            if self.unified:
                _write(cpu, ("cpu.max",), f"{quota} 100000")
            else:
                _write(cpu, ("cpu.cfs_quota_us",), str(quota))

    def remove(self) -> None:
        """Kill what is left in the folders and delete them; harmless where they are gone."""
        for folder in dict.fromkeys(self.folders.values()):
            _remove(Path(folder))


def _write(folder: Path, names: tuple[str, ...], value: str) -> None:
    for name in names:
        (folder / name).write_text(value)


def _write_if_there(folder: Path, name: str, value: str) -> None:
    if (folder / name).exists():
        (folder / name).write_text(value)


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _SETTLE_SEC
    while folder.exists():
        try:
            folder.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise RsiError("a control group could not be removed", where=str(folder)) from error
            for pid in (folder / "cgroup.procs").read_text().split():
                _kill(int(pid))
            if (folder / "freezer.state").exists():
                (folder / "freezer.state").write_text("THAWED")
            time.sleep(0.002)
        else:
            return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return


# --- where groups may be made ----------------------------------------------------------------------------------------


def _own() -> dict[str, str]:
    """Return this process's path by controller; version 2 under the empty name."""
    found = {}
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _mounted() -> dict[str, tuple[Path, str]]:
    """Return mount point and mounted root by controller; version 2 under the empty name."""
    found: dict[str, tuple[Path, str]] = {}
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split(" ")
        if kind == "cgroup2":
            found[""] = (Path(fields[4]), fields[3])
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, (Path(fields[4]), fields[3]))
    return found


def _place(mount: tuple[Path, str], own: str) -> Path:
    """Return the folder of a path of /proc/self/cgroup, as seen from where the hierarchy is mounted."""
    point, root = mount
    inner = own.removeprefix(root) if root != "/" and own.startswith(root) else own
    return point / inner.strip("/")


def plan(name: str) -> Groups:
    """Return the groups that a box of that name would join; nothing is made yet, and there may be none."""
    own, mounted = _own(), _mounted()
    folders: dict[str, str] = {}
    for controller in ("memory", "pids", "freezer", "cpu"):
        if controller in own and controller in mounted:
            base = _place(mounted[controller], own[controller])
            if os.access(base, os.W_OK):
                folders[controller] = str(base / f"rsi-{name}")
    if folders or "" not in own or "" not in mounted:
        return Groups(folders)
    return _unified(mounted[""], own[""], name)


def _unified(mount: tuple[Path, str], own: str, name: str) -> Groups:
    """Look upwards for a folder in which groups with memory and pids may be made and joined."""
    base = _place(mount, own)
    choices = [base, *base.parents]
    for folder in choices[: len(base.parts) - len(mount[0].parts) + 1]:
        given = folder / "cgroup.subtree_control"
        if not (os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK) and given.exists()):
            continue
        controllers = set(given.read_text().split())
        if {"memory", "pids"} <= controllers:
            inner = str(folder / f"rsi-{name}")
            named: dict[str, str] = {
                controller: inner for controller in ("memory", "pids", "cpu") if controller in controllers
            }
            return Groups({**named, "freezer": inner}, unified=True)
    return Groups({}, unified=True)
