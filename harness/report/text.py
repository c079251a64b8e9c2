"""Text of others made fit for a terminal or a table: agents and projects write it, so it may hold anything."""

import re

# Patterns, not compiled ones: every command imports this module, and compiling them takes as long as all of argparse.
_CONTROLS = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_DIRECTION = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
"""Marks that reorder the text around them; without them every script still reads in its own direction."""
_SURROGATES = "[\ud800-\udfff]"


def printable(text: str, *, keep: str = "") -> str:
    """Return the text without terminal controls, direction overrides and lone surrogates; `keep` names exceptions."""
    text = re.sub(_CONTROLS, lambda found: found[0] if found[0] in keep else "\ufffd", text)
    return re.sub(_SURROGATES, "\ufffd", re.sub(_DIRECTION, "", text))


def one_line(text: str, width: int | None = None) -> str:
    """Return the text as one printable line, cut with an ellipsis where it is longer than `width` characters."""
    # The head alone is enough to cut from: a hostile text may be gigabytes of spaces.
    line = printable(" ".join(text[: 4 * width + 64 if width else None].split()))
    return line if width is None or len(line) <= width else line[: width - 1].rstrip() + "…"


def cut(text: str, most_bytes: int) -> str:
    """Return the text, cut to `most_bytes` of UTF-8 and saying so where it was longer."""
    data = text[: most_bytes + 1].encode("utf-8", "replace")
    if len(data) <= most_bytes and len(text) <= most_bytes:
        return text
    return data[:most_bytes].decode("utf-8", "ignore") + f"… (cut; {len(text):,} characters in all)"
