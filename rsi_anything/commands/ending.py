"""What `rsi run` and `rsi resume` share: the work, the result, and a report that is there already."""

import argparse

from harness.errors import ExitCode, Interrupted
from harness.run.folder import RunFolder


def take_to_its_end(folder: RunFolder, args: argparse.Namespace) -> int:
    """Take a run to its end, print its result, and return the exit code.

    Raises:
        Interrupted: when it was stopped; it names the command that goes on.
        RsiError: when it failed.
    """
    from harness.run.launch import work_on
    from rsi_anything.commands.output import talk

    following = f"rsi resume {folder.name}"
    try:
        work_on(folder, lambda line: talk(args, line))
        following = f"rsi report {folder.name}"
        return _print_ending(folder, args)
    except KeyboardInterrupt as error:  # the second Ctrl-C, or one while the report is drawn
        what = f"run {folder.name} was left at once; what was accepted is on disk"
        raise Interrupted(what, next_step=following) from error


def _print_ending(folder: RunFolder, args: argparse.Namespace) -> int:
    """Write the report and print the result; an agent that could not be run at all is a failure."""
    from harness.report.data import record_json
    from harness.report.html import write_report
    from harness.report.record import load
    from harness.report.rows import agent_fault
    from harness.report.screen import closing
    from rsi_anything.commands.output import emit, emit_json

    record = load(folder)
    path = write_report(record)
    if args.json:
        emit_json(record_json(record))
    else:
        emit(closing(record))
        emit(f"report: {path}")
    return ExitCode.FAILED if agent_fault(record) else ExitCode.DONE
