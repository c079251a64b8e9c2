"""Starts the keeper of a box of namespaces from a plan that says everything the box shall be."""

import glob
import marshal
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import paths
from harness.errors import RsiError
from harness.sandbox import hostroot, subids
from harness.sandbox.base import BoxSpec, Limits, Role
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.cgroups import Groups

_GPUS = ("/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/kfd", "/dev/dri/renderD*")
_RESERVED_MB = 1024
WATCH_MS = 60_000
"""How often an idle keeper looks whether its box is still wanted, in milliseconds."""


def host_memory_mb() -> int:
    """Return the memory of this host in MiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def limits_of(spec: BoxSpec) -> Limits:
    """Return the bounds of a box with the defaults filled in: memory leaves a tenth to the host."""
    if spec.limits.memory_mb is not None:
        return spec.limits
    total = host_memory_mb()
    return replace(spec.limits, memory_mb=max(total // 2, total - max(_RESERVED_MB, total // 10)))


def overlays(folder: Path, spec: BoxSpec, stack: list[Path]) -> list[dict[str, Any]]:
    """Return the overlays of a box, outer ones first, and make the folders they write to."""
    places = [hostroot.Shown(hostroot.ROOT_KEY, "/"), *hostroot.shown()]
    found: list[dict[str, Any]] = []
    for one in places:
        lowers = [str(path / one.key) for path in stack if (path / one.key).is_dir()]
        if one.path != "/":
            lowers.append(one.path)
        found.append({"target": one.path, "lowers": lowers})
    keys = [one.key for one in places]
    # The workdir is covered once more where files are laid over it, so that none of them need be copied.
    covers = [str(path / "workdir") for path in stack if (path / "workdir").is_dir()]
    if spec.placement is not None:
        covers.insert(0, str(spec.placement.tree.resolve()))
    if covers:
        found.append({"target": spec.image.workdir, "lowers": covers, "over_itself": True})
        keys.append("workdir")
    for key, overlay in zip(keys, found, strict=True):
        for kind in ("upper", "work"):
            path = folder / kind / key
            path.mkdir(parents=True, exist_ok=True)
            overlay[kind] = str(path)
    (folder / "upper").chmod(0o755)
    return found


def _devices() -> list[str]:
    found = [path for pattern in _GPUS for path in sorted(glob.glob(pattern))]  # noqa: PTH207 - several roots
    return [path for path in found if stat.S_ISCHR(Path(path).stat().st_mode)]


def _files(spec: BoxSpec) -> dict[str, str]:
    """Return files of /run that the box needs: the name servers where the host's setting is a link into /run."""
    settings = Path("/etc/resolv.conf").resolve()
    if spec.network and str(settings).startswith("/run/") and settings.is_file():
        return {str(settings): settings.read_text("utf-8", errors="replace")}
    return {}


def _rlimits(limits: Limits, groups: Groups) -> dict[int, int]:
    found = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 1 << 16}
    if limits.storage_mb is not None:
        found[resource.RLIMIT_FSIZE] = limits.storage_mb << 20
    if "memory" not in groups.folders and limits.memory_mb is not None:
        found[resource.RLIMIT_DATA] = limits.memory_mb << 20
    if "pids" not in groups.folders:
        found[resource.RLIMIT_NPROC] = limits.pids
    return found


def plan_of(spec: BoxSpec, folder: Path, lease: Mapping[str, Any], hide: Sequence[Path]) -> dict[str, Any]:
    """Return the plan of a box as plain values."""
    limits = limits_of(spec)
    groups = Groups(lease["groups"], lease["unified"])
    rootless = os.geteuid() != 0
    assert limits.memory_mb is not None
    mounts = [
        {"source": str(mount.source.resolve()), "target": mount.target, "read_only": mount.read_only}
        for mount in spec.mounts
    ]
    ids = subids.mapping() if rootless else None
    return {
        "folder": str(folder),
        "watch_ms": WATCH_MS,
        "root": str(folder / "root"),
        "overlays": overlays(folder, spec, [Path(path) for path in lease["layers"]]),
        "userxattr": rootless,
        "mounts": mounts,
        "hide": hostroot.hidden(*hide),
        "devices": _devices(),
        "files": _files(spec),
        "shm_mb": max(64, limits.memory_mb // 2),
        "workdir": spec.image.workdir,
        "remove": list(spec.placement.remove) if spec.placement else [],
        "hostname": hostroot.HOSTNAME,
        "network": bool(spec.network),
        "rootless": rootless,
        "ids": ids,
        "set_groups": not rootless or ids is not None,
        "filter": True,
        "nesting": spec.role is Role.JUDGE,
        "groups": groups.joins(),
        "oom_file": groups.oom_file(),
        "rlimits": _rlimits(limits, groups),
    }


def command() -> list[str]:
    """Return the command line of a keeper; it holds nothing but where our code lies."""
    package = Path(__file__).resolve().parents[2]
    code = f"import sys; sys.path.append({str(package)!r}); from harness.sandbox.inside.keeper import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def launch(spec: BoxSpec, folder: BoxFolder, lease: Mapping[str, Any], *, hide: Sequence[Path] = ()) -> None:
    """Start the keeper and wait until the box is ready."""
    (folder.path / "root").mkdir(exist_ok=True)
    (folder.path / "processes").mkdir(exist_ok=True)
    plan = plan_of(spec, folder.path, lease, hide)
    lock = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        import fcntl  # here, as only creation needs it

        fcntl.flock(lock, fcntl.LOCK_EX)
        plan["lock"] = lock
        with (folder.path / "keeper.log").open("ab") as log:
            keeper = subprocess.Popen(
                command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env={}, cwd="/",
                pass_fds=(lock,),
            )  # fmt: skip
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        with keeper.stdin, keeper.stdout:
            keeper.stdin.write(marshal.dumps(plan))
            keeper.stdin.close()
            said = keeper.stdout.read().decode(errors="replace")
        keeper.wait()  # it went on in a child of its own
        if said != "ready":
            log_text = (folder.path / "keeper.log").read_text("utf-8", errors="replace").strip()
            what = said.removeprefix("error: ") or "".join(log_text.splitlines()[-1:]) or "its keeper died"
            raise RsiError(
                f"a box could not be made: {what}", where=str(paths.home()), next_step="run `rsi doctor` to see why"
            )
    finally:
        os.close(lock)
