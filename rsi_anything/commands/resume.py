"""`rsi resume`: go on with a run after a stop, a crash or a reboot."""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "resume",
        help="go on with a run after a stop, a crash or a reboot",
        description="Go on where the journal ends: the workspace is there, a half-judged submission is judged again.",
    )
    parser.add_argument("run", metavar="RUN", help="name of the run, or its unique beginning")


def run(args: argparse.Namespace) -> int:
    """Take the run to its end."""
    from harness.run.folder import RunFolder
    from harness.run.names import resolve_run
    from rsi_anything.commands.ending import take_to_its_end

    return take_to_its_end(RunFolder(resolve_run(args.run)), args)
