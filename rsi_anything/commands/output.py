"""What a command says: data goes to stdout, talk to stderr, and control characters of others go nowhere."""

import argparse
import sys
from typing import Any

from harness.report.text import printable


def emit(text: str) -> None:
    """Write a line or a block of data to stdout."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


def emit_json(value: Any) -> None:
    """Write one JSON document to stdout; a number that JSON does not know is a ValueError."""
    import json  # 3 ms, needed by `--json` alone

    emit(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))


def talk(args: argparse.Namespace, text: str) -> None:
    """Write a line to stderr, unless the person asked for quiet."""
    if not getattr(args, "quiet", False):
        complain(text)


def complain(text: str) -> None:
    """Write to stderr whatever a person must see."""
    sys.stderr.write(printable(text, keep="\n\t") + "\n")
    sys.stderr.flush()
