"""Ranges of ids that the system lends an ordinary user, with which a rootless box has more than one user."""

import os
import pwd
import shutil
from pathlib import Path
from typing import Any


def mapping() -> dict[str, Any] | None:
    """Return the arguments of newuidmap and newgidmap for a box, or None where the system lends no range."""
    tools = shutil.which("newuidmap"), shutil.which("newgidmap")
    uids, gids = _range("/etc/subuid"), _range("/etc/subgid")
    if not (tools[0] and tools[1] and uids and gids):
        return None
    return {
        "uid_map_tool": tools[0],
        "gid_map_tool": tools[1],
        "uid_map": ["0", str(os.getuid()), "1", "1", *uids],
        "gid_map": ["0", str(os.getgid()), "1", "1", *gids],
    }


def _range(file: str) -> list[str]:
    """Return first id and count of this user's first range."""
    try:
        lines = Path(file).read_text("utf-8").splitlines()
        names = {pwd.getpwuid(os.getuid()).pw_name, str(os.getuid())}
    except (OSError, KeyError):
        return []
    for line in lines:
        fields = line.split(":")
        if len(fields) == 3 and fields[0] in names:
            return fields[1:]
    return []
