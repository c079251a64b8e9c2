"""`rsi report RUN`: the result as one file that can be published."""

import argparse
from typing import Any

from harness.errors import ExitCode

_EXAMPLES = """\
examples:
  rsi report calm-otter                        writes report.html into the run's folder
  rsi report calm-otter --out result.html
  rsi report calm-otter --format markdown      prints Markdown
  rsi report calm-otter --format svg --out curve.svg
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser("report", help="write the report of a run", description=__doc__, epilog=_EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="name of the run, or its unique beginning")
    parser.add_argument("--format", choices=("html", "markdown", "svg"), default="html", help="default: html")
    parser.add_argument("--out", metavar="FILE", help="where to write; html goes to the run's folder, others to stdout")


def run(args: argparse.Namespace) -> int:
    """Write the report."""
    # Loaded here so that `rsi --help` stays quick.
    from pathlib import Path

    from harness.errors import InputError
    from harness.report.record import load
    from harness.run.folder import RunFolder, write_atomic
    from harness.run.names import resolve_run
    from rsi_anything.commands.output import emit, emit_json

    record = load(RunFolder(resolve_run(args.run)))
    out = Path(args.out) if args.out else record.folder.report if args.format == "html" else None
    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise InputError(
            "the report cannot be written there", where=str(out), next_step="name a file in a folder that exists"
        )
    content = _draw(args.format, record)
    if out is not None:
        write_atomic(out, content.encode("utf-8", "replace"))
    if args.json:
        shown = {"run": record.plan.run, "format": args.format, "path": str(out) if out else None}
        emit_json(shown if out else {**shown, "content": content})
    else:
        emit(str(out) if out else content)
    return ExitCode.DONE


def _draw(form: str, record: Any) -> str:
    if form == "html":
        from harness.report.html import page

        return page(record)
    if form == "svg":
        from harness.report.curve import draw

        return draw(record.summary, record.state.submissions, alone=True)
    from harness.report.screen import as_markdown

    return as_markdown(record)
