"""`rsi runs`: every run of this machine, newest first."""

import argparse
from typing import TYPE_CHECKING, Any

from harness.errors import ExitCode

if TYPE_CHECKING:
    from harness.report.summary import Summary
    from harness.run.folder import RunFolder

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
    from harness.report.data import summary_json
    from harness.report.numbers import age, number
    from harness.report.tables import Column, plain
    from rsi_anything.commands.output import emit, emit_json, talk

    records = _records(args)
    if args.json:
        emit_json({"runs": [summary_json(summary) | {"created": created} for created, summary in records]})
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
    for created, summary in records:
        best = summary.best
        found = (summary.shown(best.metric), number(best.score, 3)) if best else ("-", "-")
        used = f"{summary.used} of {summary.budget}"
        old = age(time.time() - created)
        rows.append((summary.run, summary.task, summary.agent, summary.status, *found, used, old))
    emit(plain(columns, rows))
    return ExitCode.DONE


def _records(args: argparse.Namespace) -> list[tuple[float, "Summary"]]:
    """Return when each run was made and what it found, newest first; what cannot be read is said in a line."""
    from harness import paths
    from harness.errors import RsiError
    from harness.report.record import load
    from harness.run.folder import RunFolder
    from rsi_anything.commands.output import talk

    found: list[tuple[float, Summary]] = []
    closed: list[str] = []
    for path in paths.runs().glob("[!.]*/plan.json"):  # a dot stands before a run that is being made
        folder = RunFolder(path.parent)
        try:
            record = load(folder)
            found.append((record.plan.created, record.summary))
        except (RsiError, OSError) as error:  # one run must not hide the others
            if isinstance(error, PermissionError) or isinstance(error.__cause__, PermissionError):
                closed.append(folder.name)
                continue
            what = error.what if isinstance(error, RsiError) else str(error)
            talk(args, f"note: run {folder.name} is damaged: {what}")
            found += _damaged(folder, what)
    if closed:
        shown = ", ".join(sorted(closed)[:5]) + (", …" if len(closed) > 5 else "")
        runs = "1 run" if len(closed) == 1 else f"{len(closed)} runs"
        talk(args, f"note: {runs} may not be read (permission denied; another user's?): {shown}")
    return sorted(found, key=lambda one: one[0], reverse=True)


def _damaged(folder: "RunFolder", what: str) -> list[tuple[float, "Summary"]]:
    """Return a damaged run as its plan alone knows it; nothing where that cannot be read either."""
    from dataclasses import replace

    from harness.errors import RsiError
    from harness.report.summary import summarize
    from harness.run.state import State

    try:
        plan = folder.read_plan()
    except RsiError:
        return []
    return [(plan.created, replace(summarize(plan, State()), status="damaged", reason=what))]
