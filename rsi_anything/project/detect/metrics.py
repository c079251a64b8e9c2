"""Finds the metrics that a project prints, logs, plots or writes, and which way each improves."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rsi_anything.project.detect.code import Call, Code, dotted, keyword, text_of
from rsi_anything.project.detect.findings import Metric
from rsi_anything.project.detect.metric_words import SPLITS, Word, recognise, words_of
from rsi_anything.project.detect.scan import unique
from rsi_anything.project.evidence import Evidence

_HOLE = "\x00"
_DEEPEST = 40
_PERCENT_HOLE = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[sdifgeE]")
_PRINTS = frozenset({"print", "info", "debug", "warning", "write", "echo", "secho", "log", "set_description"})
_BOARDS = frozenset({"add_scalar", "log_metric", "scalar", "log_scalar", "record", "track", "report_scalar", "logkv"})
_FILES = frozenset({"dump", "dumps", "append", "writerow", "update"})
_MAPS = _FILES | {"log", "log_metrics", "log_dict", "add_scalars", "set_postfix"}
_MATHS = ("math.", "np.", "torch.", "numpy.", "jnp.", "tf.math.")
_FUNCTIONS = {
    "mean_squared_error": "mse", "root_mean_squared_error": "rmse", "mean_absolute_error": "mae", "r2_score": "r2",
    "accuracy_score": "accuracy", "balanced_accuracy_score": "accuracy", "f1_score": "f1", "roc_auc_score": "auc",
    "log_loss": "nll", "precision_score": "precision", "recall_score": "recall", "ndcg_score": "ndcg",
    "average_precision_score": "auc", "classification_report": "f1", "cross_val_score": "score",
}  # fmt: skip
_PERCENT = re.compile(r"\d%|%%|[%f}\x00]\)?%|percent")
_SURE = {"board": 0.9, "log": 0.85, "print": 0.8, "file": 0.75, "function": 0.6, "sentence": 0.5}
_HELD_OUT = {"test": 1.0, "val": 0.97, "": 0.8, "train": 0.45}


@dataclass(frozen=True)
class _Seen:
    word: Word
    split: str
    how: str
    percent: bool
    evidence: Evidence
    training: bool


def metrics_in(codes: list[Code]) -> list[Metric]:
    """Return the metrics of all files, the most telling first; the same metric seen often is one finding."""
    grouped: dict[tuple[str, str], list[_Seen]] = {}
    for code in codes:
        for seen in _seen_in(code):
            grouped.setdefault((seen.word.kind, seen.split), []).append(seen)
    found = [_metric(kind, split, seen, codes) for (kind, split), seen in grouped.items()]
    return sorted(found, key=lambda metric: (-metric.confidence, metric.name))


def _metric(kind: str, split: str, seen: list[_Seen], codes: list[Code]) -> Metric:
    word = seen[0].word
    best = max(seen, key=lambda item: (_SURE[item.how], item.training))
    percent = word.highest == 1.0 and word.lowest == 0.0 and sum(item.percent for item in seen) * 2 > len(seen)
    confidence = word.weight * _SURE[best.how] * _HELD_OUT[split]
    confidence += min(0.08, 0.02 * (len(seen) - 1)) + (0.05 if any(item.training for item in seen) else 0.0)
    unit, nats = word.unit, kind == "loss" and _is_cross_entropy(codes)
    if percent:
        unit = "%"
    elif nats:
        unit = "nats"
    way = "lower" if word.direction == "minimize" else "higher"
    sources = sorted({item.how for item in seen})
    reason = f"it is in the project's {' and '.join(_PLACES[how] for how in sources)}; {word.kind} is better when {way}"
    return Metric(
        name=f"{split}_{kind}" if split else kind, kind=kind, split=split, direction=word.direction, unit=unit,
        lowest=word.lowest, highest=100.0 if percent or nats else word.highest, how=best.how,
        confidence=round(min(confidence, 0.95), 2), reason=reason,
        evidence=unique([best.evidence, *(item.evidence for item in seen)]),
    )  # fmt: skip


_PLACES = {
    "board": "experiment board",
    "log": "log",
    "print": "printed text",
    "file": "result files",
    "function": "calls",
    "sentence": "printed text",
}


def _is_cross_entropy(codes: list[Code]) -> bool:
    names = {
        "cross_entropy",
        "CrossEntropyLoss",
        "nll_loss",
        "NLLLoss",
        "SparseCategoricalCrossentropy",
        "CategoricalCrossentropy",
    }
    return any(call.last in names for code in codes for call in code.calls)


def _seen_in(code: Code) -> Iterator[_Seen]:
    training = any(call.last in {"backward", "fit", "minimize", "train", "SGD"} for call in code.calls)
    for call in code.calls:
        for how, phrase, percent in _phrases(call):
            known = recognise(phrase)
            if known is not None:
                line = call.node.lineno
                fact = f"{call.last or 'the call'} gives {' '.join(words_of(phrase)[-4:])}"
                yield _Seen(
                    known[0], known[1], how, percent, code.file.evidence(line, fact, call.node.end_lineno), training
                )


def _phrases(call: Call) -> Iterator[tuple[str, str, bool]]:
    """Yield the words in front of each number that a call gives, with the way it is given."""
    if call.last in _PRINTS and not call.name.startswith(_MATHS):
        for argument in call.node.args[:12]:
            text = _template(argument)
            if text is not None:
                # Loggers take the values as further arguments.
                text = _PERCENT_HOLE.sub(_HOLE, text) if len(call.node.args) > 1 else text
                yield from _holes("log" if call.last in {"info", "debug"} else "print", text)
        yield from _pairs(call)
    yield from _boards(call)
    if call.last in _FUNCTIONS:
        yield "function", _FUNCTIONS[call.last], False
    if call.last == "compile":
        listed = keyword(call.node, "metrics")
        for item in listed.elts if isinstance(listed, ast.List) else []:
            yield "function", text_of(item) or dotted(item), False


def _boards(call: Call) -> Iterator[tuple[str, str, bool]]:
    """Yield what a call gives to an experiment board or writes to a file under a name."""
    arguments = call.node.args
    if arguments and (call.last in _BOARDS or (call.last == "log" and len(arguments) > 1)):
        name = _template(arguments[0])
        if name and not call.name.startswith(_MATHS):
            yield "board", name.replace(_HOLE, " ").replace("/", " "), False
    if call.last not in _MAPS:
        return
    how = "file" if call.last in _FILES else "board"
    for argument in [
        *arguments[:2],
        *(item.value for item in call.node.keywords if item.arg in {None, "ordered_dict"}),
    ]:
        names = argument.keys if isinstance(argument, ast.Dict) else []
        yield from ((how, name.replace("/", " "), False) for key in names if (name := text_of(key)))


def _pairs(call: Call) -> Iterator[tuple[str, str, bool]]:
    """Yield the labels of `print("test loss", value)`."""
    for label, value in zip(call.node.args, call.node.args[1:], strict=False):
        text = text_of(label)
        if text and text_of(value) is None and len(text) < 80:
            yield "print", text, bool(_PERCENT.search(text))


def _template(node: ast.expr, depth: int = _DEEPEST) -> str | None:
    """Return a printed text with a hole for each value: of an f-string, `%`, `.format` or a sum."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and (text := text_of(node.left)) is not None:
        return _PERCENT_HOLE.sub(_HOLE, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth:
        left, right = _template(node.left, depth - 1), _template(node.right, depth - 1)
        return None if left is None and right is None else f"{left or _HOLE}{right or _HOLE}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        text = text_of(node.func.value)
        return None if text is None else re.sub(r"\{[^{}]*\}", _HOLE, text)
    return text_of(node)


def _piece(part: ast.expr) -> str:
    text = text_of(part)
    if text is not None:
        return text
    value = part.value if isinstance(part, ast.FormattedValue) else None
    words = words_of(_name_of(value)) if value is not None else []
    # A held-out split is often named only in the value, as in losses['val'].
    named = [word for word in words if SPLITS.get(word) in {"test", "val"}]
    return f" {named[0]} {_HOLE}" if named and len(words) <= 3 else _HOLE


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return f"{dotted(node.value).replace('.', ' ')} {text_of(node.slice) or ''}"
    return dotted(node).replace(".", " ")


def _holes(how: str, text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield for each hole the words before it, back to the last one, with a split named at the text's beginning."""
    pieces = text.split(_HOLE)
    opening = next((word for word in words_of(pieces[0]) if word in SPLITS), "")
    for index, piece in enumerate(pieces[:-1]):
        phrase = re.split(r"[|,;\n]|\. ", piece)[-1]
        if not words_of(phrase):
            continue
        own = any(word in SPLITS for word in words_of(phrase))
        after = pieces[index + 1][:3] + (_HOLE if index + 2 < len(pieces) else "")
        named = phrase if own or not opening else f"{opening} {phrase}"
        percent = (
            bool(re.match(r"\)?\s*%", after))
            or "%" in phrase
            or bool(re.search(r"\(\x00%|\x00%\)", text[: text.find(")") + 1]))
        )
        yield how, named, percent
    for match in re.finditer(r"\b([A-Za-z]+) on ([a-z]+)(?: data| set)?:? *\x00", text):
        yield how, f"{match[2]} {match[1]}", False
