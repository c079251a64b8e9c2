"""What a command says: data goes to stdout, talk to stderr, and control characters of others go nowhere."""

import argparse
import os
import sys
from typing import Any

from harness.errors import RsiError
from harness.report.text import printable


class OutputError(RsiError):
    """What the command says cannot be written to stdout: it is closed, or its disk is full."""


def emit(text: str) -> None:
    """Write a line or a block of data to stdout.

    Raises:
        BrokenPipeError: the reader has left.
        OutputError: it cannot be written.
    """
    try:
        sys.stdout.write(text.rstrip("\n") + "\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error
    flush()


def flush() -> None:
    """Bring everything that was said to its reader; fails as `emit` does."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error


def forget(fd: int) -> None:
    """Send what is still to come to a standard stream nowhere; Python would complain of it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, fd)
    if nowhere != fd:
        os.close(nowhere)


def _unwritable(error: OSError) -> OutputError:
    return OutputError(f"stdout could not be written: {(error.strerror or 'unknown error').lower()}")


def emit_json(value: Any) -> None:
    """Write one JSON document to stdout; a number that JSON does not know is a ValueError."""
    import json  # 3 ms, needed by `--json` alone

    emit(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))


def talk(args: argparse.Namespace, text: str) -> None:
    """Write a line to stderr, unless the person asked for quiet."""
    if not getattr(args, "quiet", False):
        complain(text)


def complain(text: str) -> None:
    """Write to stderr whatever a person must see; where it cannot be written there is nobody left to tell."""
    try:
        sys.stderr.write(printable(text, keep="\n\t") + "\n")
        sys.stderr.flush()
    except OSError:
        forget(2)
