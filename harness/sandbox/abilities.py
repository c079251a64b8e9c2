"""What this machine allows of the local sandboxes and what it lacks, in words and with the names of its settings."""

import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from harness import paths
from harness.errors import RsiError
from harness.sandbox import cgroups, hostroot, subids
from harness.sandbox.base import BoxSpec, Lack, Role

if TYPE_CHECKING:
    from harness.sandbox.namespaces import NamespaceSandbox

_SYSCTLS = (
    ("user.max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=15000"),
    ("kernel.unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for Python",
    ),
)
_WORKING: set[str] = set()
"""Data folders for which this process has seen a box of namespaces work."""
_OVERLAY_REFUSERS = ("overlay", "aufs", "nfs", "nfs4", "fuse", "9p", "vfat", "lustre")


def sysctl(name: str) -> str | None:
    """Return a kernel setting, or None where the kernel has none of that name."""
    try:
        return Path("/proc/sys", *name.split(".")).read_text("ascii").strip()
    except OSError:
        return None


def forbidding_settings() -> list[Lack]:
    """Return the kernel settings that forbid user namespaces to ordinary users."""
    found = []
    for name, forbidding, fix in _SYSCTLS:
        value = sysctl(name)
        if value == forbidding:
            found.append(Lack(f"{name} = {value} forbids user namespaces", fix))
    return found


def file_system_of(path: Path) -> str:
    """Return the type of the file system that holds a path, or an empty text."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    real = str(path.resolve())
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split(" ")[4]
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, after.split(" ")[0]
    return kind


def namespace_lacks(sandbox: "NamespaceSandbox") -> list[Lack]:
    """Return what keeps this machine from boxes of namespaces, found out by making one."""
    if sys.platform != "linux":
        return [Lack("namespaces exist on Linux only", "use the docker sandbox, or plain processes (level process)")]
    if str(paths.home()) in _WORKING:
        return []
    spec = BoxSpec("probe", f"probe-{uuid.uuid4().hex[:12]}", Role.BUILD, sandbox.bare_image())
    try:
        sandbox.create(spec).remove()
    except (RsiError, OSError) as error:
        return _reasons(str(error))
    _WORKING.add(str(paths.home()))
    return []


def _reasons(error: str) -> list[Lack]:
    found = forbidding_settings() if os.geteuid() != 0 else []
    home = paths.home()
    kind = file_system_of(home)
    if kind in _OVERLAY_REFUSERS or kind.startswith("fuse"):
        found.append(Lack(f"an overlay cannot write to the file system of {home} ({kind})",
                          "set RSI_HOME to a folder on a local disk (ext4, xfs, btrfs)"))  # fmt: skip
    if not found:
        found.append(Lack(error, "allow namespaces (a container needs --privileged), or use the docker sandbox"))
    return found


def describe_namespaces() -> list[str]:
    """Return what boxes of namespaces isolate on this machine, and what they do not."""
    groups = cgroups.plan("probe")
    root = os.geteuid() == 0
    who = "root" if root else "this user"
    folders = ", ".join(one.path for one in hostroot.shown())
    lines = [
        "local, namespaces: own processes, files, network, host name and IPC",
        "weaker than a container: the kernel and the host's own programs are shared",
        f"shown of the host, read-only in effect: {folders}",
        f"readable there is whatever {who} may read; in /etc only what everybody may read",
        "not shown: homes, mounted disks, /run, /srv, our own data and the task",
        "no network unless the box asks for it; capabilities dropped, no gain by set-uid, break-out calls refused",
        "with a network a box shares the host's: what listens on localhost, before Linux 6.12 also abstract sockets",
        "GPUs of the host are visible to every box",
    ]
    if not root:
        lines.append("made by an ordinary user: root of the box is this user and nothing more")
        if subids.mapping() is None:
            lines.append("one user only in a box (no range in /etc/subuid, or no newuidmap)")
    bounds = " and ".join(name for name in ("memory", "pids") if name not in groups.folders)
    if bounds:
        lines.append(f"no control group for {bounds}: bounded by rlimits, for each process alone")
        lines.append("running out of memory is not recognised")
    if not groups.can_freeze():
        lines.append("no control group to freeze: processes are stopped by signals")
    lines.append("disk space is watched, not enforced; one file cannot exceed the bound")
    return lines


def describe_processes() -> list[str]:
    """Return what plain processes isolate, and what they do not."""
    lines = [
        "local, plain processes: NOT isolated; own folder, own session and rlimits, killed with all descendants",
        "candidate code can read the host's files and use its network; do not run what you do not trust",
        "the judge's tests and a candidate run as the same user; a score made here is no proof",
        "memory is bounded for each process alone; running out of it is not recognised",
        "disk space is watched, not enforced; one file cannot exceed the bound",
    ]
    if os.geteuid() == 0:
        lines.append("as root, processes become users of their own where others may pass the folders of RSI_HOME")
        lines.append("elsewhere they stay root")
    return lines
