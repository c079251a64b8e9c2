"""`rsi stop`: end a run that works elsewhere, cleanly; it can be resumed."""

import argparse
from typing import Any

from rsi_anything.commands import numbers


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "stop",
        help="end a working run cleanly",
        description="Ask the engine of a run to stop: the agent ends, the workspace and every snapshot stay.",
    )
    parser.add_argument("run", metavar="RUN", help="name of the run, or its unique beginning")
    parser.add_argument(
        "--wait", type=numbers.seconds, default=60.0, metavar="SEC", help="how long to wait for it (60)"
    )


def run(args: argparse.Namespace) -> int:
    """Ask, and wait until the engine has let go."""
    import time

    from harness.errors import RsiError
    from harness.run.folder import RunFolder
    from harness.run.names import resolve_run
    from rsi_anything.commands.output import emit, emit_json

    folder = RunFolder(resolve_run(args.run))
    alive = folder.engine_alive()
    if alive:
        folder.stop_flag.touch()
        deadline = time.monotonic() + args.wait
        while folder.engine_alive():
            if time.monotonic() > deadline:
                raise RsiError(
                    f"run {folder.name} has not stopped after {args.wait:g} s",
                    where=str(folder.path),
                    next_step=f"wait, or kill the engine and run: rsi resume {folder.name}",
                )
            time.sleep(0.05)
    text = f"run {folder.name} {'is stopped' if alive else 'was not working'}; go on with: rsi resume {folder.name}"
    emit_json({"run": folder.name, "was_working": alive}) if args.json else emit(text)
    return 0
