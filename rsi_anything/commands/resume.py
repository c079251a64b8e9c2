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
    from harness.run.launch import work_on
    from harness.run.names import resolve_run
    from rsi_anything.commands.ending import print_ending
    from rsi_anything.commands.output import talk

    folder = RunFolder(resolve_run(args.run))
    work_on(folder, lambda line: talk(args, line))
    print_ending(folder, args)
    return 0
