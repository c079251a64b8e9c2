"""What a number was measured on: enough to know the same kind of machine again, nothing that names a person."""

import os
import platform
from pathlib import Path
from typing import Any


def host_facts() -> dict[str, Any]:
    """Return processor, cores, memory in GiB, system and Python; no host name, user or path."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def host_words(facts: dict[str, Any]) -> str:
    """Return the facts as one line."""
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GiB, {facts['system']}"


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        return platform.processor() or platform.machine()
    return platform.processor() or platform.machine()


def _memory_gb() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30))
    except (ValueError, OSError):
        return 0
