"""`rsi show RUN`: what a run found, with noise, and where its time went."""

import argparse
from typing import Any

from harness.errors import ExitCode

_EXAMPLES = """\
examples:
  rsi show calm-otter
  rsi show calm-otter --json
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser("show", help="show what a run found", description=__doc__, epilog=_EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="name of the run, or its unique beginning")


def run(args: argparse.Namespace) -> int:
    """Show a run."""
    # Loaded here so that `rsi --help` stays quick.
    from harness.report.data import record_json
    from harness.report.record import load
    from harness.report.screen import overview
    from harness.run.folder import RunFolder
    from harness.run.names import resolve_run
    from rsi_anything.commands.output import emit, emit_json

    record = load(RunFolder(resolve_run(args.run)))
    if args.json:
        emit_json(record_json(record))
    else:
        emit(overview(record))
    return ExitCode.DONE
