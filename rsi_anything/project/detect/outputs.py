"""Finds the files that a project's code writes, such as checkpoints, with the settings that their paths depend on."""

import ast
import posixpath
import re

from rsi_anything.project.detect.code import Call, Code, dotted, keyword, mentions, text_of
from rsi_anything.project.detect.findings import Output

_SAVES: dict[str, tuple[int, str]] = {
    "torch.save": (1, "weights"), "save_model": (0, "model"), "save_pretrained": (0, "model"), "imwrite": (0, "figure"),
    "joblib.dump": (1, "model"), "np.save": (0, "array"), "numpy.save": (0, "array"), "np.savez": (0, "array"),
    "np.savez_compressed": (0, "array"), "save_file": (1, "weights"), "to_csv": (0, "table"), "savefig": (0, "figure"),
    "save_weights": (0, "weights"), "to_parquet": (0, "table"), "save": (0, "file"),
}  # fmt: skip
_SETTINGS = re.compile(r"(self\.)?(args|opt|opts|config|cfg|conf|hparams|params|FLAGS|flags)\Z")
_SURE = {"weights": 0.85, "model": 0.8, "array": 0.7, "table": 0.6, "file": 0.55, "text": 0.5, "figure": 0.3}
_HOPS = 8
# Nothing is known of such a path, or it is outside.
_EMPTY = re.compile(r"\.?\Z|[*/.]+\Z|\.\./|/|https?:")


def outputs_in(code: Code) -> list[Output]:
    """Return what a file writes; `{name}` in a path stands for a setting, `*` for what cannot be known."""
    names = {item.name: item.value for item in code.assignments} | code.opened
    found: list[Output] = []
    for call in code.calls:
        node, what = _destination(call)
        path = _path(node, names, _HOPS) if node is not None else None
        folder = posixpath.dirname(code.file.path)
        path = posixpath.normpath((path or "").replace("{__file__}", folder or "."))
        if not _EMPTY.match(path):
            found.append(Output(
                path=path, what=what, file=code.file.path, confidence=_SURE[what],
                reason=f"the code saves {what} there",
                evidence=(code.file.evidence(call.node.lineno, f"{call.last} writes {path}", call.node.end_lineno),),
            ))  # fmt: skip
    return found


def _destination(call: Call) -> tuple[ast.expr | None, str]:
    if call.last == "open":
        mode = text_of(call.node.args[1]) if len(call.node.args) > 1 else text_of(keyword(call.node, "mode"))
        writes = mode is not None and mode[:1] in {"w", "x", "a"} and bool(call.node.args)
        return (call.node.args[0], "file") if writes and not call.name.endswith(".open") else (None, "file")
    place, what = _SAVES.get(call.name) or _SAVES.get(call.last) or (-1, "file")
    if place < 0:
        return None, what
    named = keyword(call.node, "f") or keyword(call.node, "path") or keyword(call.node, "filename")
    return named or (call.node.args[place] if place < len(call.node.args) else None), what


def _path(node: ast.expr, names: dict[str, ast.expr], hops: int) -> str | None:
    """Return a path with holes, or None where nothing of it is known."""
    path = text_of(node)
    if hops <= 0 or path is not None:
        return "*" if path is None else path
    if isinstance(node, ast.Name):
        value = names.get(node.id)
        known = _path(value, names, hops - 1) if value is not None and text_of(value) is None else None
        path = known or (f"{{{node.id}}}" if value is not None else "*")
    elif isinstance(node, ast.Attribute):
        path = f"{{{node.attr}}}" if _SETTINGS.match(dotted(node.value)) else "*"
    elif isinstance(node, ast.JoinedStr):
        parts = [text_of(part) if text_of(part) is not None else _hole(part, names, hops) for part in node.values]
        path = "".join(part or "" for part in parts)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        left, right = _path(node.left, names, hops - 1) or "*", _path(node.right, names, hops - 1) or "*"
        path = left + ("/" if isinstance(node.op, ast.Div) else "") + right
    elif isinstance(node, ast.Call):
        path = _of_call(node, names, hops)
    return path


def _hole(part: ast.expr, names: dict[str, ast.expr], hops: int) -> str:
    value = part.value if isinstance(part, ast.FormattedValue) else None
    path = _path(value, names, hops - 1) if isinstance(value, ast.Name | ast.Attribute) else None
    # A name that no setting can give is a counter or a number of the run.
    return path if path and path != "*" else "*"


def _of_call(node: ast.Call, names: dict[str, ast.expr], hops: int) -> str | None:
    name = dotted(node.func)
    if name.endswith("path.dirname") and node.args and mentions(node.args[0], "__file__"):
        return "{__file__}"
    if name.endswith("path.join"):
        return "/".join(_path(argument, names, hops - 1) or "*" for argument in node.args)
    if (
        name.rpartition(".")[2] in {"Path", "str", "abspath", "expanduser", "PurePath", "fspath", "PosixPath"}
        and node.args
    ):
        return _path(node.args[0], names, hops - 1)
    if name.endswith(".format") and isinstance(node.func, ast.Attribute):
        text = text_of(node.func.value)
        return None if text is None else re.sub(r"\{[^{}]*\}", "*", text)
    return None
