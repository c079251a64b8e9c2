"""Looks at this machine and says what works, what does not and what to do about it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness import paths
from harness.sandbox import abilities, cgroups, subids
from harness.sandbox.base import Level

_LOW_DISK_MB = 5 * 1024


@dataclass(frozen=True)
class DoctorLine:
    """One thing looked at: `ok` is None where it is neither needed nor there."""

    what: str
    ok: bool | None
    detail: str
    fix: str = ""


def doctor() -> list[DoctorLine]:
    """Return every line, in the order in which a person reads them."""
    return [
        _python(),
        _harness(),
        _git(),
        _pip(),
        *_namespaces(),
        _control_groups(),
        _ids(),
        _disk(),
    ]


def _python() -> DoctorLine:
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return DoctorLine("python", ok, f"{version} at {sys.executable}", "" if ok else "install Python 3.11 or newer")


def _harness() -> DoctorLine:
    """Say whether `harness` is ours: another distribution installs a package of that name."""
    ours = Path(__file__).resolve().parents[1]
    found = importlib.util.find_spec("harness")
    origin = Path(found.origin).resolve().parent if found is not None and found.origin else None
    ok = origin == ours and (ours / "sandbox" / "base.py").is_file()
    fix = "" if ok else "uninstall the other distribution that brings a package named harness"
    return DoctorLine("harness package", ok, str(origin), fix)


def _tool(name: str, *arguments: str) -> str | None:
    path = shutil.which(name)
    if path is None:
        return None
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _git() -> DoctorLine:
    found = _tool("git", "--version")
    return DoctorLine("git", found is not None, found or "not found", "" if found else "install git")


def _pip() -> DoctorLine:
    ok = importlib.util.find_spec("pip") is not None or shutil.which("pip") is not None
    fix = "" if ok else "python -m ensurepip, or the system's python3-pip and python3-venv"
    return DoctorLine("pip", ok, "found" if ok else "not found: RUN pip install in a Dockerfile will fail", fix)


def _namespaces() -> list[DoctorLine]:
    from harness.sandbox.namespaces import NamespaceSandbox  # here, as other systems than Linux need it no further

    lacks = NamespaceSandbox().lacks()
    who = "as root" if os.geteuid() == 0 else "without root"
    if not lacks:
        kind = abilities.file_system_of(paths.home())
        return [DoctorLine(f"{Level.NAMESPACES} {who}", True, f"a box was made; overlays on {kind or 'this disk'}")]
    return [DoctorLine(f"{Level.NAMESPACES} {who}", False, lack.what, lack.fix) for lack in lacks]


def _control_groups() -> DoctorLine:
    groups = cgroups.plan("probe")
    missing = [name for name in ("memory", "pids", "freezer") if name not in groups.folders]
    version = "version 2" if groups.unified else "version 1"
    if not missing:
        return DoctorLine("control groups", True, f"{version}, this user may make them")
    fix = "run as root, or under `systemd-run --user --scope -p Delegate=yes`; boxes work without, with weaker bounds"
    return DoctorLine("control groups", None, f"not to be made by this user: {', '.join(missing)}", fix)


def _ids() -> DoctorLine:
    if os.geteuid() == 0:
        return DoctorLine("users in a box", True, "as root: all of them")
    if subids.mapping() is not None:
        return DoctorLine("users in a box", True, "a range of ids is lent in /etc/subuid")
    ids = "100000-165535"
    fix = f"install the package uidmap, then: sudo usermod --add-subuids {ids} --add-subgids {ids} USER"
    return DoctorLine("users in a box", None, "one: a judge cannot run candidate code as another user", fix)


def _disk() -> DoctorLine:
    place = paths.home()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free >> 20
    ok = free >= _LOW_DISK_MB
    fix = "" if ok else "free some space, or set RSI_HOME to a larger disk"
    return DoctorLine("disk space", ok, f"{free / 1024:.1f} GiB free for {paths.home()}", fix)
