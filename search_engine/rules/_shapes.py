"""Which values of a straight-line kernel have lanes, and which depend on one grid axis."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from search_engine.rules._lanes import REDUCTIONS, SCANS
from search_engine.rules._syntax import language_call

LANES = "lanes"
PROGRAM = "program"

Axes = frozenset[str]
"""Of ``LANES`` (the value differs between lanes) and ``PROGRAM`` (between programs of the axis)."""

NOTHING: Axes = frozenset()

ELEMENTWISE = frozenset({
    "exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos",
    "tanh", "abs", "maximum", "minimum", "where", "sigmoid", "fma", "erf", "floor", "ceil",
    "cast", "clamp", "div_rn", "fdiv", "cdiv", "umulhi", "static_assert",
})  # fmt: skip


class NotUnderstoodError(Exception):
    """A construct whose shape is not known."""


class Shapes:
    """Infers axes in order of execution and remembers them for the calls on the way.

    ``program_axis`` is the grid axis that counts as ``PROGRAM``. ``helpers`` are functions of the
    file that work elementwise. Raises NotUnderstoodError on anything else.
    """

    def __init__(self, alias: str, program_axis: int, helpers: frozenset[str]) -> None:
        self.calls: list[tuple[ast.Call, str]] = []
        self._alias = alias
        self._program_axis = program_axis
        self._helpers = helpers
        self._names: dict[str, Axes] = {}
        self._seen: dict[int, Axes] = {}

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Follow the statements."""
        for statement in statements:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self._names[statement.targets[0].id] = self.axes(statement.value)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                added = self.axes(statement.value)
                self._names[name] = self._names.get(name, NOTHING) | added
            elif isinstance(statement, ast.Expr):
                self.axes(statement.value)
            elif isinstance(statement, ast.If):
                self._branch(statement)
            elif not isinstance(statement, ast.Pass):
                raise NotUnderstoodError

    def axes(self, node: ast.expr) -> Axes:
        """The axes of an expression at this point."""
        found = self._axes(node)
        self._seen[id(node)] = found
        return found

    def known(self, node: ast.expr) -> Axes:
        """The axes that an expression had where it stands."""
        return self._seen.get(id(node), NOTHING)

    def _branch(self, statement: ast.If) -> None:
        if self.axes(statement.test):
            raise NotUnderstoodError
        before = dict(self._names)
        self.run(statement.body)
        after, self._names = self._names, before
        self.run(statement.orelse)
        self._names = _joined(after, self._names)

    def _axes(self, node: ast.expr) -> Axes:
        if isinstance(node, ast.Name):
            return self._names.get(node.id, NOTHING)
        if isinstance(node, ast.Call):
            return self._call(node)
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        found = NOTHING.union(*(self.axes(part) for part in parts))
        plain = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Attribute)
        chained = isinstance(node, ast.Compare) and len(node.ops) > 1
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if found and (not isinstance(node, plain) or chained or negated):
            raise NotUnderstoodError
        return found

    def _call(self, node: ast.Call) -> Axes:
        name = language_call(node, self._alias)
        if any(keyword.arg is None for keyword in node.keywords):
            raise NotUnderstoodError
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        found = NOTHING.union(*(self.axes(part) for part in given))
        if name is None:
            return self._other_call(node, found)
        self.calls.append((node, name))
        if name == "program_id":
            return self._program_id(node)
        if name == "arange":
            return frozenset({LANES})
        if name in ("zeros", "full"):
            return frozenset({LANES})
        if name == "load":
            return self.known(node.args[0]) if node.args else self._fail()
        if name in REDUCTIONS:
            return found - {LANES}
        if name == "store" or name in SCANS or name in ELEMENTWISE:
            return found
        return self._fail()

    def _other_call(self, node: ast.Call, found: Axes) -> Axes:
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr == "to":
                return self.axes(owner) | found
            if isinstance(owner, ast.Name) and owner.id == "libdevice":
                return found
        if isinstance(node.func, ast.Name) and (not found or node.func.id in self._helpers):
            return found
        return self._fail()

    def _program_id(self, node: ast.Call) -> Axes:
        axis = program_axis(node)
        if axis is None:
            raise NotUnderstoodError
        return frozenset({PROGRAM}) if axis == self._program_axis else NOTHING

    def _fail(self) -> Axes:
        raise NotUnderstoodError


def program_axis(node: ast.Call) -> int | None:
    """The grid axis that a call of ``program_id`` asks for."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if len(given) == 1 and isinstance(given[0], ast.Constant) and isinstance(given[0].value, int):
        return given[0].value
    return None


def elementwise_helpers(tree: ast.Module, alias: str) -> frozenset[str]:
    """Functions of the file that do nothing but elementwise arithmetic."""
    found: set[str] = set()
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        inner = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        inner = [part for part in inner if part not in node.decorator_list]
        plain = all(
            language_call(part, alias) in ELEMENTWISE
            or (isinstance(part.func, ast.Attribute) and part.func.attr == "to")
            for part in inner
        )
        controls = (ast.For, ast.While, ast.If, ast.Subscript, ast.IfExp, ast.BoolOp)
        if plain and not any(isinstance(part, controls) for part in ast.walk(node)):
            found.add(node.name)
    return frozenset(found)


def _joined(left: Mapping[str, Axes], right: Mapping[str, Axes]) -> dict[str, Axes]:
    joined = dict(left)
    for name, axes in right.items():
        if name in left and left[name] != axes:
            raise NotUnderstoodError
        joined[name] = axes
    return joined
