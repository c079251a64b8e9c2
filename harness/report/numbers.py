"""How numbers, durations and ages are written, the same in every table and sentence."""

import math

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def decimals(noise: float | None, *values: float | None) -> int | None:
    """Return how many decimals a metric deserves: two digits of its noise, or None where the noise is not known.

    A tiny noise beside large values is not followed beyond seven digits in all.
    """
    if not noise or not math.isfinite(noise):
        return None
    wanted = 1 - math.floor(math.log10(noise))
    largest = max((abs(value) for value in values if value), default=0.0)
    most = 6 - math.floor(math.log10(largest)) if largest else 8
    return max(0, min(wanted, most, 8))


def number(value: float | None, places: int | None = None) -> str:
    """Return a number for people: `places` decimals, or five digits where that is None; `-` for none."""
    if value is None:
        return "-"
    if places is None or (value and not 1e-4 <= abs(value) < 1e7):
        return f"{value:.5g}"
    return f"{value:.{places}f}"


def times(ratio: float) -> str:
    """Return a ratio for people: one digit behind the point below ten, none above."""
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def duration(seconds: float) -> str:
    """Return a duration in its two largest fitting units, such as `3.2 s`, `12 min 05 s` or `2 d 03 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02} h"


def age(seconds: float) -> str:
    """Return how long ago something was, in one unit."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def size(count: int) -> str:
    """Return a number of bytes in binary units."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
