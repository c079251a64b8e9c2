"""Looks whether boxes can be made with the engine of this machine, and what to do where they cannot."""

import os

from harness.errors import RsiError
from harness.sandbox.base import Lack
from harness.sandbox.docker.client import engine, socket_path

_INSTALL = "install Docker (Debian: sudo apt install docker.io) and start it"
_RIGHTS = "sudo usermod --append --groups docker $USER, then log in again"
_ROOT = "run rsi as root (sudo), or use --sandbox local"


def lacks() -> list[Lack]:
    """Return what stands in the way; empty means that the engine can be used."""
    try:
        path = socket_path()
        if not path.exists():
            return [Lack(f"no engine listens at {path}", _INSTALL)]
        if not os.access(path, os.R_OK | os.W_OK):
            return [Lack(f"this user may not use the engine at {path}", _RIGHTS)]
        engine()
    except RsiError as error:
        return [Lack(error.what, error.next_step)]
    if os.geteuid() != 0:
        return [Lack("the workdir of a box belongs to its root, and this user may not read all of it", _ROOT)]
    return []
