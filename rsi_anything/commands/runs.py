"""`rsi runs`: every run of this machine, newest first."""

import argparse
from typing import Any

from harness.errors import ExitCode

_EXAMPLES = """\
examples:
  rsi runs
  rsi runs --json | python3 -m json.tool
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    subparsers.add_parser("runs", help="list the runs, newest first", description=__doc__, epilog=_EXAMPLES)


def run(args: argparse.Namespace) -> int:
    """List the runs."""
    # Loaded here so that `rsi --help` stays quick.
    import time

    from harness import paths
    from harness.errors import RsiError
    from harness.report.data import summary_json
    from harness.report.numbers import age, number
    from harness.report.record import Record, load
    from harness.report.tables import Column, plain
    from harness.run.folder import RunFolder
    from rsi_anything.commands.output import complain, emit, emit_json, talk

    records: list[Record] = []
    for plan in paths.runs().glob("[!.]*/plan.json"):  # a dot stands before a run that is being made
        try:
            records.append(load(RunFolder(plan.parent)))
        except RsiError as error:  # one damaged run must not hide the others
            complain("\n".join(error.lines()))
    records.sort(key=lambda record: record.plan.created, reverse=True)
    if args.json:
        emit_json({"runs": [summary_json(record.summary) | {"created": record.plan.created} for record in records]})
        return ExitCode.DONE
    if not records:
        talk(args, f"no runs yet in {paths.runs()}\nnext:  rsi run TASK --agent search")
        return ExitCode.DONE
    columns = (
        Column("name"),
        Column("task"),
        Column("agent"),
        Column("status"),
        Column("best", right=True),
        Column("score", right=True),
        Column("submissions", right=True),
        Column("age", right=True),
    )
    rows = []
    for record in records:
        summary = record.summary
        best = summary.best
        found = (summary.shown(best.metric), number(best.score, 3)) if best else ("-", "-")
        used = f"{summary.used} of {summary.budget}"
        old = age(time.time() - record.plan.created)
        rows.append((summary.run, summary.task, summary.agent, summary.status, *found, used, old))
    emit(plain(columns, rows))
    return ExitCode.DONE
