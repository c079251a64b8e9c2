"""`rsi doctor`: what this machine can do, and what it lacks and how to get it."""

import argparse
from typing import Any

from harness.errors import ExitCode

_EXAMPLES = """\
example:
  rsi doctor

Exit code 3 says that something is missing; built-in agents may run all the same, with weaker isolation.
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    subparsers.add_parser("doctor", help="say what this machine can do", description=__doc__, epilog=_EXAMPLES)


def run(args: argparse.Namespace) -> int:
    """Look at the machine."""
    # Loaded here so that `rsi --help` stays quick.
    from dataclasses import asdict

    from harness.sandbox.doctor import doctor
    from rsi_anything.commands.output import emit, emit_json

    lines = doctor()
    lacking = any(line.ok is False for line in lines)
    if args.json:
        emit_json({"ok": not lacking, "lines": [asdict(line) for line in lines]})
    else:
        words = {True: "ok", False: "lacking", None: "without"}
        for line in lines:
            emit(
                f"{words[line.ok]:<8} {line.what}: {line.detail}" + (f"\n{'':<8} next: {line.fix}" if line.fix else "")
            )
    return ExitCode.MISSING_PREREQUISITE if lacking else ExitCode.DONE
