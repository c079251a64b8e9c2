"""Keeping what judge and candidate printed when a rung fails: the place where they worked is deleted with it."""

import os
import re
import time
from pathlib import Path

from harness import paths
from harness.run.store.hostile import Unreadable, open_folder, read_regular

PRINTED = ("agent.log", "judgings/*.log", "judgings/*/*/output.log")
"""What the harness itself caught, below a bench or a run."""

RESULTS = "judgings/*/*/verifier"
"""Folders that a judge filled; a hostile candidate may have reached them."""

MOST_BYTES = 4 << 20
"""What is kept of one file."""

MOST_FILES = 100
"""How many files of one judge's folder are kept."""


def keep_output(root: Path, task: str) -> Path:
    """Copy the logs of a bench or run to a folder of their own, and return it."""
    name = re.sub(r"[^\w.-]+", "-", task)[:60]
    target = paths.logs() / f"check-{name}-{time.strftime('%Y%m%dT%H%M%S')}"
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in sorted(each for pattern in PRINTED for each in root.glob(pattern)):
        _copy(path.parent, [path.name], target / path.parent.relative_to(root))
    for folder in sorted(root.glob(RESULTS)):
        _copy(folder, None, target / folder.relative_to(root))
    return target


def _copy(source: Path, names: list[str] | None, target: Path) -> None:
    """Copy regular files of one folder, all of them for None; whatever else lies there is left out."""
    try:
        fd = open_folder(source)
    except Unreadable:
        return
    try:
        found = sorted(os.listdir(fd))[:MOST_FILES]  # noqa: PTH208 - a descriptor is no path
        for name in found if names is None else names:
            try:
                content = read_regular(fd, name, MOST_BYTES, cut=True)
            except Unreadable:
                continue
            if content is not None:
                target.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(content)
    finally:
        os.close(fd)
