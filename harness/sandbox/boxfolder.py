"""A box's folder on disk, from which alone any later engine finds the box again.

<home>/boxes/<run>/<name>/
  lease.json    what the box shall be; written before anything of it exists
  lock          held by the box's own processes as long as one of them lives
  keeper, init  number and start time of each, so that a number used again is never trusted
  upper/        what the box has written
  processes/    one folder a process: request, started, ended, timed_out
  frozen        there while the box is frozen
"""

import fcntl
import json
import marshal
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import paths
from harness.errors import InputError, RsiError
from harness.sandbox import subids
from harness.sandbox.base import BoxSpec, Image, Limits, Mount, Network, Placement, Reach, Role
from harness.sandbox.inside.clearing import delete

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


def boxes() -> Path:
    """Return the folder of all boxes."""
    return paths.home() / "boxes"


def checked_name(name: str) -> str:
    """Return a name that can be a folder, or raise an InputError."""
    if not _NAME.match(name):
        raise InputError(
            f"the name {name!r} cannot be used", next_step="use letters, digits, dots, dashes and underscores only"
        )
    return name


def folder_of(run: str, name: str) -> Path:
    """Return the folder of a box, which need not exist."""
    return boxes() / checked_name(run) / checked_name(name)


def boot() -> str:
    """Return what names the present boot of this host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return _said("sysctl", "-n", "kern.boottime")


def start_time(pid: int) -> str | None:
    """Return when a living process started, or None where it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _start_time_elsewhere(pid)
    return None if fields[0] in {b"Z", b"X"} else fields[19].decode()


def _start_time_elsewhere(pid: int) -> str | None:
    """Return the start time on a system without /proc, as one word."""
    state, _, started = _said("ps", "-o", "stat=,lstart=", "-p", str(pid)).partition(" ")
    return None if not state or state.startswith("Z") else "-".join(started.split())


def _said(*command: str) -> str:
    import subprocess  # here, as Linux needs none of it

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    return done.stdout.strip()


def me() -> list[str]:
    """Return what names this process for good: number and start time."""
    return [str(os.getpid()), start_time(os.getpid()) or ""]


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file so that it is whole or absent, and on disk."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")  # two builders may write one image
    with new.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def spec_to_json(spec: BoxSpec) -> dict[str, Any]:
    """Return a spec as plain values; the box that it starts from is kept as its layers."""
    limits = spec.limits
    return {
        "run": spec.run,
        "name": spec.name,
        "role": spec.role.value,
        "image": {
            "digest": spec.image.digest,
            "workdir": spec.image.workdir,
            "env": dict(spec.image.env),
            "notes": list(spec.image.notes),
            "user": spec.image.user,
        },
        "network": [spec.network.reach.value, *spec.network.hosts],
        "gpus": list(spec.gpus),
        "limits": [limits.cpus, limits.memory_mb, limits.pids, limits.storage_mb, limits.shm_mb],
        "mounts": [[str(mount.source), mount.target, mount.read_only] for mount in spec.mounts],
        "env": dict(spec.env),
        "placement": [str(spec.placement.tree), list(spec.placement.remove)] if spec.placement else None,
    }


def spec_from_json(value: Mapping[str, Any]) -> BoxSpec:
    """Return the spec that `spec_to_json` wrote; `over` is not restored, its layers are in the lease."""
    image = value["image"]
    placement = value["placement"]
    return BoxSpec(
        run=value["run"],
        name=value["name"],
        role=Role(value["role"]),
        image=Image(image["digest"], image["workdir"], image["env"], tuple(image["notes"]), image["user"]),
        network=Network(Reach(value["network"][0]), tuple(value["network"][1:])),
        gpus=tuple(value["gpus"]),
        limits=Limits(*value["limits"]),
        mounts=tuple(Mount(Path(source), target, read_only) for source, target, read_only in value["mounts"]),
        env=value["env"],
        placement=Placement(Path(placement[0]), tuple(placement[1])) if placement else None,
    )


class BoxFolder:
    """What is known on disk about one box."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lease(self) -> dict[str, Any] | None:
        """Return the lease, or None where there is no such box."""
        try:
            lease = json.loads((self.path / "lease.json").read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise RsiError("the record of a box is damaged", where=str(self.path)) from error
        assert isinstance(lease, dict)
        return lease

    def identity(self, who: str) -> tuple[int, str] | None:
        """Return process number and start time as recorded in a file of this folder."""
        try:
            pid, started = (self.path / who).read_text("ascii").split("\n")[0].split()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return int(pid), started

    def running(self, who: str, lease: Mapping[str, Any]) -> int | None:
        """Return the number of a recorded process if that very process lives, else None."""
        found = self.identity(who)
        if found is None or lease["boot"] != boot() or start_time(found[0]) != found[1]:
            return None
        return found[0]

    def signal(self, who: str, lease: Mapping[str, Any], number: int) -> None:
        """Signal a recorded process if that very process lives; a number used again is never hit."""
        found = self.identity(who)
        if found is None or self.running(who, lease) is None:
            return
        try:
            descriptor = os.pidfd_open(found[0])
        except ProcessLookupError:
            return
        try:
            # Looked at again behind the descriptor, which from now on cannot mean another process.
            if self.running(who, lease) is not None:
                import signal  # here, as few callers need it

                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return
        finally:
            os.close(descriptor)

    @contextmanager
    def locked(self, timeout: float) -> Iterator[bool]:
        """Hold the lock if the box's own processes are all gone within the timeout; yield whether they are."""
        held = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + timeout
            while not (free := _try_lock(held)) and time.monotonic() < deadline:
                time.sleep(0.002)
            yield free
        finally:
            os.close(held)

    def delete(self) -> None:
        """Delete the folder, the lease last, so that a deletion cut short is found and ended by the next sweep."""
        for inner in (self.path / "work").glob("*/work"):
            inner.chmod(0o700)  # an overlay closes its own work folder even to its owner
        for entry in sorted(self.path.iterdir(), key=lambda entry: entry.name == "lease.json"):
            remove_tree(entry)
        self.path.rmdir()
        try:
            self.path.parent.rmdir()
        except OSError:
            return  # other boxes of the run are there


def sweep(
    run: str, level: str, remove: Callable[[BoxFolder, Mapping[str, Any]], None], *, orphans: bool = False
) -> list[str]:
    """Remove the boxes of a run that were made at a level; return what was removed, in words.

    With `orphans`, a box whose maker still lives stays.
    """
    removed = []
    folder = boxes() / checked_name(run)
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        box = BoxFolder(path)
        lease = box.lease()
        if lease is None:
            if not orphans:  # one that is just being made has no lease yet either
                box.delete()
                removed.append(f"unfinished box {path.name}")
        elif lease["level"] == level and not (orphans and owner_lives(lease)):
            remove(box, lease)
            removed.append(f"box {path.name}")
    return removed


def owner_lives(lease: Mapping[str, Any]) -> bool:
    """Say whether the process that made a box still lives."""
    pid, started = lease["owner"]
    return bool(lease["boot"] == boot() and start_time(int(pid)) == started)


def _try_lock(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_tree(path: Path) -> None:
    """Delete a file or tree, however deep and unreadable it was made; harmless where there is none."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    try:
        delete(str(path))
    except PermissionError:
        ids = subids.mapping() if os.geteuid() != 0 else None
        if ids is None:
            raise
        _remove_as_root_of_a_namespace(path, ids)


def _remove_as_root_of_a_namespace(path: Path, ids: Mapping[str, Any]) -> None:
    """Delete what belongs to ids that the system lends this user."""
    import subprocess  # here, as few boxes need it

    package = Path(__file__).resolve().parents[2]
    code = f"import sys; sys.path.append({str(package)!r}); from harness.sandbox.inside.clearing import main; main()"
    command = [sys.executable, "-I", "-S", "-c", code]
    request = marshal.dumps({"ids": dict(ids), "path": str(path)})
    done = subprocess.run(command, input=request, capture_output=True, check=False, env={}, cwd="/")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RsiError(f"a folder could not be deleted: {''.join(said[-1:])}", where=str(path))
