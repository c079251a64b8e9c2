"""The numbers that options take: refused while the command line is read, before anything is done or said."""

import argparse
import math

LARGEST_SEED = 2**63 - 1
MOST = 1_000_000
"""Bound of counts and hours; what is larger is a slip of the finger, and timers do not hold it."""


def count(text: str) -> int:
    """Return how many of something: a whole number from 1."""
    return _whole(text, 1, MOST)


def seed(text: str) -> int:
    """Return a seed: a whole number from 0 that fits 63 bits."""
    return _whole(text, 0, LARGEST_SEED)


def hours(text: str) -> float:
    """Return a finite number of hours above 0."""
    return _above_zero(text)


def seconds(text: str) -> float:
    """Return a finite number of seconds above 0."""
    return _above_zero(text)


def _whole(text: str, lowest: int, highest: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = lowest - 1
    if not lowest <= value <= highest:
        raise _wrong(f"a whole number from {lowest} to {highest}", text)
    return value


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST:  # false for what is no number, too
        raise _wrong(f"a number above 0 and at most {MOST}", text)
    return value


def _wrong(wanted: str, text: str) -> argparse.ArgumentTypeError:
    shown = text if len(text) <= 40 else text[:40] + "…"
    return argparse.ArgumentTypeError(f"must be {wanted}, not {shown!r}")
