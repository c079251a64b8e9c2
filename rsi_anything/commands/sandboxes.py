"""The two options that choose where work and judge live, the same for every command that makes boxes."""

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.sandbox.base import Sandbox

NAMES = ("local", "docker")
VARIABLE = "RSI_SANDBOX"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare `--sandbox` and `--level`."""
    parser.add_argument("--sandbox", choices=NAMES, help=f"where work and judge live (${VARIABLE}, else local)")
    parser.add_argument(
        "--level",
        choices=("namespaces", "process"),
        help="level of the local sandbox; by default the strongest",
    )


def chosen(args: argparse.Namespace) -> "Sandbox":
    """Return the sandbox that the options name, else the environment, else the local one.

    Raises:
        InputError: the environment names none that there is, or a level goes with another sandbox than `local`.
    """
    from harness.errors import InputError
    from harness.sandbox import get_sandbox

    name = args.sandbox or os.environ.get(VARIABLE) or "local"
    if name not in NAMES:
        raise InputError(
            f"{VARIABLE} is {name!r}: there is no such sandbox", next_step=f"choose one of: {', '.join(NAMES)}"
        )
    if args.level and name != "local":
        raise InputError(
            f"--level belongs to the local sandbox, not to {name}", next_step="leave --level out, or --sandbox local"
        )
    return get_sandbox(name, level=args.level)
