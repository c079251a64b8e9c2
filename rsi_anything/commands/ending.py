"""What `rsi run` and `rsi resume` say when a run has ended: the result, and a report that is there already."""

import argparse

from harness.run.folder import RunFolder, write_atomic


def print_ending(folder: RunFolder, args: argparse.Namespace) -> None:
    """Write the report, print the result."""
    from harness.report.data import record_json
    from harness.report.html import page
    from harness.report.record import load
    from harness.report.screen import closing
    from rsi_anything.commands.output import emit, emit_json

    record = load(folder)
    write_atomic(folder.report, page(record).encode("utf-8", "replace"))
    if args.json:
        emit_json(record_json(record))
        return
    emit(closing(record.summary))
    emit(f"report: {folder.report}")
