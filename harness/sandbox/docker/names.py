"""What our containers, volumes, networks and images are called and labelled, so that exactly they are found again."""

import hashlib

from harness import paths
from harness.sandbox import boxfolder
from harness.sandbox.base import BoxSpec

HOME = "rsi.home"
RUN = "rsi.run"
BOX = "rsi.box"
ENVIRONMENT = "rsi.environment"
"""Label of an image that was built from a task's environment."""


def home() -> str:
    """Return what names this data folder: two of them on one machine do not touch one another's boxes."""
    return hashlib.sha256(str(paths.home()).encode()).hexdigest()[:16]


def thing(spec: BoxSpec) -> str:
    """Return the name of a box's container and of all else that belongs to it alone."""
    named = str(boxfolder.folder_of(spec.run, spec.name))
    return f"rsi-{spec.run[:40]}-{spec.name[:40]}-{hashlib.sha256(named.encode()).hexdigest()[:12]}".lower()


def labels(spec: BoxSpec) -> dict[str, str]:
    """Return the labels of all that belongs to a box."""
    return {HOME: home(), RUN: spec.run, BOX: spec.name}
