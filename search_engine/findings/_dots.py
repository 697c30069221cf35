"""Where the operands of products come from, as the kernel's text says it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from search_engine.domain.code import ArgumentKind, LaunchCode
from search_engine.findings._base import Subject
from search_engine.findings._source import called_name, function_of
from search_engine.findings._vectors import element_bytes
from search_engine.rules._syntax import argument

_TRANSPARENT = frozenset({"trans", "permute", "reshape", "view", "broadcast_to"})
_FLOAT = ("float32", "fp32")


@dataclass(frozen=True, slots=True)
class CastUp:
    """Operands that a kernel casts to fp32 before a dot: their type in memory, and the lines."""

    stored: str
    lines: frozenset[int]


def cast_up(subject: Subject, launch: LaunchCode, line: int) -> CastUp | None:
    """The operands of the dot on a line, if both are cast to fp32 from a smaller type.

    None unless that is certain: each operand is a load of a parameter, cast and at most scaled.
    """
    kernel = function_of(subject, subject.unit.kernel)
    call = _dot_at(kernel, line) if kernel is not None else None
    if kernel is None or call is None or len(call.args) < 2:
        return None
    types: list[str] = []
    lines: set[int] = {line}
    for operand in call.args[:2]:
        origin = _Origin(_assignments(kernel))
        if not origin.follow(operand) or not origin.cast:
            return None
        lines |= origin.lines
        types += [kind for name in sorted(origin.pointers) if (kind := _pointee(launch, name))]
    sizes = [element_bytes(name) for name in types]
    if not types or not all(0 < size < 4 for size in sizes):
        return None
    return CastUp(max(types, key=element_bytes), frozenset(lines))


def broadcast_products(subject: Subject) -> Iterator[ast.Call]:
    """``tl.sum(a[:, :, None] * b[None, :, :], axis=1)``: matrix products spelled as sums."""
    for kernel in (subject.unit.kernel, *subject.unit.helpers):
        function = function_of(subject, kernel)
        for node in ast.walk(function) if function is not None else ():
            if isinstance(node, ast.Call) and called_name(node) == "sum" and _is_product(node):
                yield node


@dataclass(slots=True)
class _Origin:
    """Follows an operand back to the loads it is made of."""

    assignments: dict[str, list[ast.expr]]
    cast: bool = False
    pointers: set[str] = field(default_factory=set[str])
    lines: set[int] = field(default_factory=set[int])
    _seen: set[str] = field(default_factory=set[str])

    def follow(self, node: ast.expr) -> bool:
        """False as soon as something else than loads, casts, scales and views is met."""
        self.lines.add(node.lineno - 1)
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            return self.follow(node.left)
        if not isinstance(node, ast.Call):
            return False
        name = called_name(node)
        if name in ("to", "cast"):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            inner = node.args[0] if name == "cast" and node.args else owner
            self.cast = self.cast or any(
                part in ast.unparse(item) for item in node.args for part in _FLOAT
            )
            return inner is not None and self.follow(inner)
        if name == "load" and node.args:
            self.pointers |= _roots(node.args[0], self.assignments)
            return True
        return name in _TRANSPARENT and bool(node.args) and self.follow(node.args[0])

    def _name(self, name: str) -> bool:
        if name in self._seen:
            return True
        self._seen.add(name)
        values = self.assignments.get(name, [])
        return bool(values) and all(self.follow(value) for value in values)


def _dot_at(kernel: ast.FunctionDef, line: int) -> ast.Call | None:
    found = [
        node
        for node in ast.walk(kernel)
        if isinstance(node, ast.Call)
        and called_name(node) == "dot"
        and node.lineno - 1 <= line <= (node.end_lineno or node.lineno) - 1
    ]
    return found[0] if len(found) == 1 else None


def _assignments(kernel: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """Every value that a name is given, in order."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.value)
    return found


def _roots(node: ast.expr, assignments: dict[str, list[ast.expr]]) -> set[str]:
    """Names without an assignment, parameters that is, that an address is made of."""
    open_names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    seen: set[str] = set()
    while open_names:
        name = open_names.pop()
        if name not in seen:
            seen.add(name)
            values = assignments.get(name, [])
            open_names += [p.id for v in values for p in ast.walk(v) if isinstance(p, ast.Name)]
    return seen


def _pointee(launch: LaunchCode, name: str) -> str:
    """The element type of a pointer parameter; empty for every other name."""
    for item in launch.arguments:
        if item.name == name and item.kind is ArgumentKind.POINTER:
            return item.dtype.removeprefix("*").removeprefix("k")
    return ""


def _is_product(call: ast.Call) -> bool:
    product = call.args[0] if call.args else None
    axis = argument(call, 1, "axis")
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return False
    left, right = _new_axes(product.left), _new_axes(product.right)
    if len(left) != 1 or len(right) != 1 or left == right:
        return False
    summed = {0, 1, 2} - left - right
    return isinstance(axis, ast.Constant) and axis.value in summed


def _new_axes(node: ast.expr) -> set[int]:
    """Positions of ``None`` in a subscript with three parts."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return set()
    parts: Sequence[ast.expr] = node.slice.elts
    if len(parts) != 3:
        return set()
    return {
        i for i, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is None
    }
