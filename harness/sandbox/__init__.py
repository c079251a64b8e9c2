"""Where work and judge live: one protocol, several ways to keep a box apart from the host."""

from __future__ import annotations

TYPE_CHECKING = False  # the box's own processes import this package, and `typing` costs them 10 ms
if TYPE_CHECKING:
    from harness.sandbox.base import Lack, Sandbox

__all__ = ["best_local", "get_sandbox"]


def get_sandbox(name: str, *, level: str | None = None) -> Sandbox:
    """Return a sandbox by name; `level` asks `local` for `namespaces` or `process`. Unknown names are an InputError."""
    # here, so that a cheap command loads no sandbox at all
    from harness.sandbox.catalogue import find

    return find(name, level=level)


def best_local() -> tuple[Sandbox, list[Lack]]:
    """Return the strongest local sandbox that this machine allows, and what it lacks for a stronger one."""
    from harness.sandbox.catalogue import strongest_local

    return strongest_local()
