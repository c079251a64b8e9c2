"""Finds a value's place in a text, and a regular expression whose single group is this value and nothing else."""

import ast
import re
from itertools import cycle

from rsi_anything.project.detect.scan import SourceFile

NUMBER = r"[-+.\deE_]+"  # loose on purpose: it must match whatever is put in the value's place
_END = r"(?![\w.])"
_KEYWORD = r"True|False|None"
_MOST_BEFORE = 6
_NUMBER_OR_GAP = re.compile(r"([ \t]+|(?<![\w.])[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))")
_LOOSE = {True: r"[ \t]*", False: NUMBER}


def span_of(file: SourceFile, node: ast.expr) -> tuple[int, int] | None:
    """Return the offsets of a node's text; for a text constant, of what stands between its quotes."""
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    start = _offset(file, node.lineno, node.col_offset)
    end = _offset(file, node.end_lineno, node.end_col_offset)
    if start is None or end is None or start >= end:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        inner = file.text[start + 1 : end - 1]
        return (start + 1, end - 1) if inner == node.value and inner.isprintable() else None
    return start, end


def _offset(file: SourceFile, line: int, column: int) -> int | None:
    if line > len(file.starts):
        return None
    start = file.starts[line - 1]
    end = file.starts[line] if line < len(file.starts) else len(file.text)
    text = file.text[start:end]
    if text.isascii():
        return start + column if column <= len(text) else None
    try:
        return start + len(text.encode()[:column].decode())
    except UnicodeDecodeError:
        return None


def value_regex(value: object, text: str) -> str | None:
    """Return what any value of this type looks like, or None where the text is no plain literal of it."""
    if isinstance(value, bool) or value is None:
        return f"({_KEYWORD}){_END}" if re.fullmatch(_KEYWORD, text) else None
    if isinstance(value, int | float):
        return f"({NUMBER}){_END}" if re.fullmatch(NUMBER, text) else None
    if isinstance(value, str):
        return r"([^'\"\n\\]*)" if text and not re.search(r"['\"\n\\]", text) else None
    return None


def literal(text: str) -> str:
    """Return a pattern for a text as it is, without the backslashes that only a set needs."""
    return re.sub(r"\\([-# &~])", r"\1", re.escape(text))


def pattern_for(file: SourceFile, span: tuple[int, int], value: object, anchors: tuple[str, ...]) -> str | None:
    """Return a pattern that finds the value at `span`, the only one in the file, or None where there is none.

    `anchors` are regular expressions for what stands before the value, the most telling first; the literal text from
    the beginning of the line is tried after them. A pattern must still match when the value was replaced.
    """
    start, end = span
    wanted = value_regex(value, file.text[start:end])
    if wanted is None or not (file.exact and file.whole):
        return None
    if isinstance(value, str):
        wanted += f"(?={literal(file.text[end : end + 1])})"
    line_start = file.starts[file.line_at(start) - 1]
    before = _loose(file.text[line_start:start])
    candidates = [*anchors, *([f"^{before}"] if len(before) < 400 else [])]
    for anchor in candidates:
        pattern = f"(?m){anchor}{wanted}"
        found = _spans(pattern, file.text)
        if found == [span]:
            return pattern
        if span in found and found.index(span) < _MOST_BEFORE and len(found) < 1000:
            # Not the only one of its kind: count from the top; atomic groups keep the search linear.
            earlier = f"(?>[\\s\\S]*?{anchor}{wanted.replace('(', '(?:', 1)})"
            skipped = f"{earlier}{{{found.index(span)}}}" if found[0] != span else ""
            nth = f"(?m)\\A{skipped}[\\s\\S]*?{anchor}{wanted}"
            if _spans(nth, file.text) == [span]:
                return nth
    return None


def _spans(pattern: str, text: str) -> list[tuple[int, int]]:
    return [match.span(1) for match in re.finditer(pattern, text)]


def _loose(text: str) -> str:
    """Return a literal text as a pattern that minds neither the width of its gaps nor the numbers in it.

    The numbers may be knobs themselves, and this pattern must hold when they change.
    """
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    pieces = _NUMBER_OR_GAP.split(text[len(indent) :])
    loose = [
        literal(piece) if even else _LOOSE[piece[:1].isspace()]
        for piece, even in zip(pieces, cycle((True, False)), strict=False)
    ]
    return literal(indent) + "".join(loose)
