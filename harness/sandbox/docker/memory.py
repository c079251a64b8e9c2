"""Counts the processes that the kernel killed for want of memory, by control group, without a privilege."""

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def killed(pid: int) -> int | None:
    """Return how many processes of a process's control group were killed so; None where the kernel does not say.

    An engine's own word cannot be relied on: some say it of the first process of a container alone.
    """
    place = counter(pid)
    return None if place is None else count(place)


def counter(pid: int) -> str | None:
    """Return the file that counts for the control group of a process; it can be read while the group is there."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text("ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return str(_ROOT / "memory" / path.lstrip("/") / "memory.oom_control")
        if kinds == "" and (_ROOT / "cgroup.controllers").exists():
            return str(_ROOT / path.lstrip("/") / "memory.events")
    return None


def count(place: str) -> int | None:
    """Return the count that such a file holds."""
    try:
        lines = Path(place).read_text("ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return int(found[0]) if found else None
