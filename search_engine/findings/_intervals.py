"""What an index or condition of a kernel can be in one program and one iteration of a loop.

Integers are intervals over all lanes, conditions are true in all lanes, false in all lanes or
neither. Everything that is not understood is unknown (None), so nothing follows from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from search_engine.findings._source import called_name

Interval: TypeAlias = tuple[int, int]
"""Smallest and largest value, both reached or beyond what is reached."""

_TRANSPARENT = frozenset({"to", "cast", "multiple_of", "max_contiguous", "max_constancy"})


class Intervals:
    """Evaluates expressions of one kernel function.

    ``arguments`` are the values of its parameters that are known. ``axes`` collects the grid axes
    whose program id was asked for.
    """

    def __init__(
        self,
        function: ast.FunctionDef,
        arguments: Mapping[str, int],
        grid: tuple[int, int, int],
    ) -> None:
        values = single_assignments(function)
        parameters = {item.arg for item in ast.walk(function.args) if isinstance(item, ast.arg)}
        # A parameter that is assigned, perhaps under a condition, has no one value.
        self._values = {name: node for name, node in values.items() if name not in parameters}
        self._arguments = {
            name: value for name, value in arguments.items() if not _assigned(function, name)
        }
        self._grid = grid
        self._program = (0, 0, 0)
        self._loops: dict[str, int] = {}
        self._known: dict[str, Interval | None] = {}
        self._truths: dict[str, bool | None] = {}
        self.axes: set[int] = set()

    def place(self, program: tuple[int, int, int], loops: Mapping[str, int]) -> None:
        """Evaluate in this program from now on, with these loop variables."""
        self._program = program
        self._loops = dict(loops)
        self._known.clear()
        self._truths.clear()

    def integer(self, node: ast.expr) -> int | None:
        """The value of an expression that is the same in all lanes."""
        found = self.interval(node)
        return found[0] if found is not None and found[0] == found[1] else None

    def interval(self, node: ast.expr) -> Interval | None:
        """The values of an integer expression over all lanes."""
        if isinstance(node, ast.Constant):
            return (node.value, node.value) if isinstance(node.value, int) else None
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Subscript):
            return self.interval(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.interval(node.operand)
            return None if inner is None else (-inner[1], -inner[0])
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        return self._call(node) if isinstance(node, ast.Call) else None

    def truth(self, node: ast.expr) -> bool | None:
        """True or False if a condition is that in every lane."""
        if isinstance(node, ast.Name) and node.id in self._values:
            return self._named_truth(node.id)
        if isinstance(node, ast.Subscript):
            return self.truth(node.value)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compare(node.ops[0], node.left, node.comparators[0])
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(item) for item in node.values]
            return _all(parts) if isinstance(node.op, ast.And) else _any(parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            parts = [self.truth(node.left), self.truth(node.right)]
            return _all(parts) if isinstance(node.op, ast.BitAnd) else _any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            inner = self.truth(node.operand)
            return None if inner is None else not inner
        value = self.integer(node)
        return None if value is None else bool(value)

    def _name(self, name: str) -> Interval | None:
        if name in self._loops:
            return self._loops[name], self._loops[name]
        if name in self._values:
            if name not in self._known:
                self._known[name] = None  # a name that is defined by itself is unknown
                self._known[name] = self.interval(self._values[name])
            return self._known[name]
        value = self._arguments.get(name)
        return None if value is None else (value, value)

    def _named_truth(self, name: str) -> bool | None:
        if name not in self._truths:
            self._truths[name] = None
            self._truths[name] = self.truth(self._values[name])
        return self._truths[name]

    def _binary(self, node: ast.BinOp) -> Interval | None:
        left, right = self.interval(node.left), self.interval(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left[0] + right[0], left[1] + right[1]
        if isinstance(node.op, ast.Sub):
            return left[0] - right[1], left[1] - right[0]
        if isinstance(node.op, ast.Mult):
            products = [one * two for one in left for two in right]
            return min(products), max(products)
        if right[0] != right[1] or right[0] <= 0 or left[0] < 0:
            return None
        if isinstance(node.op, ast.FloorDiv):
            return left[0] // right[0], left[1] // right[0]
        if isinstance(node.op, ast.Mod):
            same = left[0] // right[0] == left[1] // right[0]
            return (left[0] % right[0], left[1] % right[0]) if same else (0, right[0] - 1)
        return None

    def _call(self, node: ast.Call) -> Interval | None:
        name = called_name(node)
        if name in _TRANSPARENT:
            inner = (
                node.func.value if name == "to" and isinstance(node.func, ast.Attribute) else None
            )
            return self.interval(inner or node.args[0]) if inner or node.args else None
        if name in ("program_id", "num_programs"):
            return self._axis(name, node)
        parts = [self.interval(item) for item in node.args]
        known = [item for item in parts if item is not None]
        if len(known) != 2 or len(parts) != 2:
            return None
        (a, b), (c, d) = known
        if name == "arange":
            return (a, d - 1) if a == b and c == d and d > a else None
        if name in ("minimum", "min"):
            return min(a, c), min(b, d)
        if name in ("maximum", "max"):
            return max(a, c), max(b, d)
        return (-(-a // c), -(-b // c)) if name == "cdiv" and c == d and c > 0 else None

    def _axis(self, name: str, node: ast.Call) -> Interval | None:
        given = node.args[0] if node.args else next((k.value for k in node.keywords), None)
        axis = self.integer(given) if given is not None else None
        if axis not in (0, 1, 2):
            return None
        if name == "num_programs":
            return self._grid[axis], self._grid[axis]
        self.axes.add(axis)
        return self._program[axis], self._program[axis]

    def _compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool | None:
        one, two = self.interval(left), self.interval(right)
        holds = _COMPARISONS.get(type(op))
        return None if one is None or two is None or holds is None else holds(one, two)


def single_assignments(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """What each local name is assigned, for names that are bound in one place only."""
    bound: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _bind(bound, node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign):
            _bind(bound, node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.NamedExpr):
            _bind(bound, node.target, None)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(bound, target, None)
    single = {name: values[0] for name, values in bound.items() if len(values) == 1}
    return {name: value for name, value in single.items() if value is not None}


def _assigned(function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(function)
    )


def _bind(
    bound: dict[str, list[ast.expr | None]], target: ast.expr, value: ast.expr | None
) -> None:
    if isinstance(target, ast.Name):
        bound.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple) else []
        for position, item in enumerate(target.elts):
            _bind(bound, item, parts[position] if len(parts) == len(target.elts) else None)


def _less(one: Interval, two: Interval) -> bool | None:
    return True if one[1] < two[0] else False if one[0] >= two[1] else None


def _at_most(one: Interval, two: Interval) -> bool | None:
    return True if one[1] <= two[0] else False if one[0] > two[1] else None


def _equal(one: Interval, two: Interval) -> bool | None:
    if one[1] < two[0] or two[1] < one[0]:
        return False
    return True if one == two and one[0] == one[1] else None


def _different(one: Interval, two: Interval) -> bool | None:
    equal = _equal(one, two)
    return None if equal is None else not equal


_COMPARISONS: dict[type[ast.cmpop], Callable[[Interval, Interval], bool | None]] = {
    ast.Lt: _less,
    ast.LtE: _at_most,
    ast.Gt: lambda one, two: _less(two, one),
    ast.GtE: lambda one, two: _at_most(two, one),
    ast.Eq: _equal,
    ast.NotEq: _different,
}


def _all(parts: list[bool | None]) -> bool | None:
    if any(part is False for part in parts):
        return False
    return True if all(parts) else None


def _any(parts: list[bool | None]) -> bool | None:
    if any(parts):
        return True
    return False if all(part is False for part in parts) else None
