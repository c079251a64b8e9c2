"""`rsi check`: is a task leaky, noisy, unpinned or unrunnable?"""

import argparse
from pathlib import Path
from typing import Any

from rsi_anything.commands import numbers, sandboxes

RUNGS = ("contract", "lint", "build", "baseline", "floor", "attacks", "headroom")


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "check",
        help="climb the ladder of checks on a task",
        description="Climb the ladder up to the first rung that fails. What is measured goes into task.toml.",
    )
    parser.add_argument("task", metavar="TASK", help="folder of a task")
    parser.add_argument("--only", metavar="RUNG", help=f"climb this rung alone: {', '.join(RUNGS)}")
    parser.add_argument("--repeats", type=numbers.count, metavar="N", help="judgings of the solution for the noise (3)")
    parser.add_argument("--tries", type=numbers.count, metavar="N", help="submissions of the short search (4)")
    parser.add_argument("--no-record", action="store_true", help="do not write what was measured into task.toml")
    sandboxes.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Climb and print."""
    from harness.errors import ExitCode
    from rsi_anything.checks.ladder import Context, check
    from rsi_anything.commands.output import emit, emit_json, talk

    options = {"repeats": args.repeats, "tries": args.tries, "record": not args.no_record}
    options["sandbox"] = sandboxes.chosen(args)
    context = Context(progress=lambda line: talk(args, line), options=options)
    report = check(Path(args.task), args.only, context)
    if args.json:
        emit_json(report.as_json())
    else:
        for rung in report.rungs:
            emit(_rung(rung))
    return ExitCode.DONE if report.ok else ExitCode.FAILED


def _rung(rung: Any) -> str:
    seconds = f" in {rung.seconds:.1f} s" if rung.seconds is not None else ""
    reason = f": {rung.reason}" if rung.reason else ""
    lines = [f"{rung.name:<9} {rung.status.value}{seconds}{reason}"]
    lines += [f"    {name}: {_value(value)}" for name, value in rung.measurements.items() if name != "notes"]
    lines += [f"    {line}" for finding in rung.findings for line in finding.lines()]
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(_value(each) for each in value)
    if isinstance(value, dict):
        return " ".join(_value(each) for each in value.values() if each is not None)
    return str(value)
