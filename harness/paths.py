"""Where things live, as functions: nothing is read or made at import, and one variable moves them all."""

import os
from pathlib import Path


def home() -> Path:
    """Return our data folder: $RSI_HOME, else rsi-anything below $XDG_DATA_HOME."""
    named = os.environ.get("RSI_HOME")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base).absolute() / "rsi-anything"


def runs() -> Path:
    """Return the folder that holds one folder a run."""
    return home() / "runs"


def sessions() -> Path:
    """Return the folder that holds unfinished interviews."""
    return home() / "sessions"


def cache() -> Path:
    """Return the folder for what can be made again: image layers, checkouts."""
    return home() / "cache"


def logs() -> Path:
    """Return the folder for the tracebacks of our own bugs."""
    return home() / "logs"
