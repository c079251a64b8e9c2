"""`rsi doctor`: what this machine can do, and what it lacks and how to get it."""

import argparse
from typing import Any

from harness.errors import ExitCode

_EXAMPLES = """\
example:
  rsi doctor
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    subparsers.add_parser("doctor", help="say what this machine can do", description=__doc__, epilog=_EXAMPLES)


def run(args: argparse.Namespace) -> int:
    """Look at the machine."""
    from harness.sandbox.doctor import doctor
    from rsi_anything.commands.output import emit, emit_json

    lines = doctor()
    if args.json:
        emit_json({"lines": lines})
    else:
        emit("\n".join(lines))
    return ExitCode.DONE
