"""One walk over a Python file's syntax tree: what all detectors ask for, collected once."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from rsi_anything.project.detect.scan import SourceFile

_NOTED = frozenset(
    {
        ast.Call,
        ast.Import,
        ast.ImportFrom,
        ast.Assign,
        ast.AnnAssign,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.If,
        ast.With,
    }
)
# Most of a tree is made of these; walking around them halves the time.
_LEAVES = frozenset(
    {ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.arg, ast.alias, ast.Pass, ast.Break, ast.Continue}
)


@dataclass(frozen=True)
class Call:
    """A call: its dotted name (`.fit` where the object has no name), the last part, and the function it stands in."""

    name: str
    last: str
    node: ast.Call
    scope: str


@dataclass(frozen=True)
class Assignment:
    """`name = value`; `scope` is the function or class it stands in, empty at module level."""

    name: str
    value: ast.expr
    scope: str
    in_class: bool


@dataclass
class Code:
    """What one Python file holds."""

    file: SourceFile
    docstring: str = ""
    imports: list[tuple[str, int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    functions: list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=list)
    classes: list[ast.ClassDef] = field(default_factory=list)
    dicts: list[tuple[str, ast.Dict, str]] = field(default_factory=list)
    opened: dict[str, ast.expr] = field(default_factory=dict)
    """Path of the file that a name stands for, as in `with open(path) as name`."""
    main_line: int | None = None

    def called(self, *lasts: str) -> Iterator[Call]:
        """Yield the calls whose last name is one of these."""
        return (call for call in self.calls if call.last in lasts)


def parse(file: SourceFile) -> Code | None:
    """Return the code of a file, or None where it is no Python this interpreter can read."""
    if not file.whole:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's strings are not our talk
            tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    code = Code(file, docstring=ast.get_docstring(tree, clean=False) or "")
    stack: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while stack:
        node, scope, in_class = stack.pop()
        if type(node) in _NOTED:
            _note(code, node, scope, in_class)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                scope = f"{scope}.{node.name}" if scope else node.name
                in_class = isinstance(node, ast.ClassDef)
        stack += [(child, scope, in_class) for child in _children(node)]
    return code


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the children that can hold something of interest, the last one first."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST) and type(item) not in _LEAVES]
        elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
            found.append(value)
    found.reverse()
    return found


def _note(code: Code, node: ast.AST, scope: str, in_class: bool) -> None:
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        code.calls.append(Call(name, name.rpartition(".")[2], node, scope))
    elif isinstance(node, ast.Import):
        code.imports += [(alias.name, node.lineno) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        code.imports.append(("." * node.level + (node.module or ""), node.lineno))
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        code.assignments += [Assignment(name, node.value, scope, in_class) for name in names]
        _unpack(code, node, scope, in_class)
        if isinstance(node.value, ast.Dict) and names:
            code.dicts.append((names[0], node.value, scope))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        code.assignments.append(Assignment(node.target.id, node.value, scope, in_class))
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        code.functions.append((scope, node))
    elif isinstance(node, ast.ClassDef):
        code.classes.append(node)
    elif isinstance(node, ast.With):
        _opened(code, node)
    elif isinstance(node, ast.If) and _is_main_guard(node.test):
        code.main_line = node.lineno


def _unpack(code: Code, node: ast.Assign, scope: str, in_class: bool) -> None:
    for target in node.targets:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            pairs = zip(target.elts, node.value.elts, strict=True)
            code.assignments += [Assignment(a.id, b, scope, in_class) for a, b in pairs if isinstance(a, ast.Name)]


def _opened(code: Code, node: ast.With) -> None:
    for item in node.items:
        call = item.context_expr
        if (
            isinstance(item.optional_vars, ast.Name)
            and isinstance(call, ast.Call)
            and dotted(call.func) == "open"
            and call.args
        ):
            code.opened[item.optional_vars.id] = call.args[0]


def _is_main_guard(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
        return False
    sides = (test.left, test.comparators[0])
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    return names == {"__name__"} and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for an attribute chain; a part that is no name is left out, so that the text begins with a dot."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def text_of(node: ast.expr | None) -> str | None:
    """Return the value of a constant text, or None."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword argument, or None."""
    return next((item.value for item in call.keywords if item.arg == name), None)


def mentions(node: ast.expr, *names: str) -> bool:
    """Say whether a name or an attribute of one of these names stands anywhere in an expression."""
    return any(getattr(part, "id", getattr(part, "attr", None)) in names for part in ast.walk(node))


def scalar(node: ast.expr | None) -> str | int | float | bool | None:
    """Return the value of a constant, a negative number included, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = node.operand.value if isinstance(node.operand, ast.Constant) else None
        return -inner if isinstance(inner, int | float) and not isinstance(inner, bool) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool):
        return node.value
    return None
