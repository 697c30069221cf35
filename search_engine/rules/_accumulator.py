"""The one value that a reduction loop carries, and what becomes of it after the loop."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.rules._index import call_name
from search_engine.rules._lift import carried_names
from search_engine.rules._syntax import (
    argument,
    assigned_name,
    body,
    language_call,
    literal_value,
    names_assigned,
    names_read,
)

_NEUTRAL = {"sum": 0.0, "maximum": float("-inf"), "minimum": float("inf")}
_ACROSS = {"sum": "sum", "maximum": "max", "minimum": "min"}


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A loop ``for ... in range(0, stop, step)`` that only carries ``name``.

    ``combine`` is ``sum``, ``maximum`` or ``minimum``; ``dtype`` the accumulator's type as Triton
    names it. ``store`` is the only store, ``output`` the pointer parameter that it writes through.
    """

    name: str
    combine: str
    dtype: str
    loop: ast.For
    stop: str
    step: str | None
    store: ast.Call
    output: str


def find_accumulator(kernel: ast.FunctionDef, tl: str) -> Accumulator | None:
    """The accumulator of a kernel with one loop and one store; None for anything else."""
    statements = body(kernel)
    loops = [node for node in ast.walk(kernel) if isinstance(node, (ast.For, ast.While))]
    if len(loops) != 1 or loops[0] not in statements or not isinstance(loops[0], ast.For):
        return None
    loop = loops[0]
    place = statements.index(loop)
    before, after = statements[:place], statements[place + 1 :]
    carried = carried_names(kernel)
    bounds, update = _bounds(loop, kernel), _update(loop, tl, carried)
    if bounds is None or update is None or carried != {update[0]}:
        return None
    dtype = _dtype(before, update[0], update[1], tl)
    store = _only_store(kernel, after, tl)
    if dtype is None or store is None or _leaks(loop, update[0], after):
        return None
    output = _written(kernel, store, tl)
    if output is None:
        return None
    chain = _Chain({update[0]}, update[1], dtype, f"{output}.dtype.element_ty", tl)
    if not chain.covers(store.args[1], after):
        return None
    return Accumulator(update[0], update[1], dtype, loop, bounds[0], bounds[1], store, output)


def _bounds(loop: ast.For, kernel: ast.FunctionDef) -> tuple[str, str | None] | None:
    """``(stop, step)`` of a loop from zero; both are names that the kernel never changes."""
    call = loop.iter
    if call_name(call) != "range" or not isinstance(call, ast.Call) or loop.orelse:
        return None
    if call.keywords or not isinstance(loop.target, ast.Name):
        return None
    arguments = call.args
    if len(arguments) >= 2:
        if not isinstance(arguments[0], ast.Constant) or arguments[0].value != 0:
            return None
        arguments = arguments[1:]
    changed = names_assigned(ast.Module(kernel.body, []))
    names = [node.id for node in arguments if isinstance(node, ast.Name)]
    if len(names) != len(arguments) or changed & set(names):
        return None
    return names[0], names[1] if len(names) == 2 else None


def _update(loop: ast.For, tl: str, carried: set[str]) -> tuple[str, str] | None:
    """``(name, combine)`` of the only statement that changes a carried name."""
    found = [item for item in loop.body if names_assigned(item) & carried]
    if len(found) != 1:
        return None
    statement = found[0]
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        name, parts, combine = statement.target, [statement.value], "sum"
        return _checked(loop, name, parts, combine, statement)
    if assigned_name(statement) is None or not isinstance(statement, ast.Assign):
        return None
    value, target = statement.value, statement.targets[0]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        sides = [value.left, value.right]
        return _checked(loop, target, _others(sides, target), "sum", statement)
    combine = language_call(value, tl)
    if combine in ("maximum", "minimum") and isinstance(value, ast.Call) and len(value.args) == 2:
        if value.keywords:
            return None
        return _checked(loop, target, _others(value.args, target), combine, statement)
    return None


def _others(sides: list[ast.expr], target: ast.expr) -> list[ast.expr]:
    name = target.id if isinstance(target, ast.Name) else ""
    return [side for side in sides if not (isinstance(side, ast.Name) and side.id == name)]


def _checked(
    loop: ast.For, target: ast.expr, parts: list[ast.expr], combine: str, update: ast.stmt
) -> tuple[str, str] | None:
    if not isinstance(target, ast.Name) or len(parts) != 1 or target.id in names_read(parts[0]):
        return None
    others = [item for item in loop.body if item is not update]
    if any(target.id in names_read(item) for item in others):
        return None
    if any(isinstance(node, (ast.Break, ast.Continue)) for node in ast.walk(loop)):
        return None
    return target.id, combine


def _dtype(before: list[ast.stmt], name: str, combine: str, tl: str) -> str | None:
    """Type of the accumulator, if it starts at the neutral element."""
    first = [item for item in before if name in names_assigned(item)]
    if len(first) != 1 or not isinstance(first[0], ast.Assign):
        return None
    value = first[0].value
    neutral = _NEUTRAL[combine]
    if language_call(value, tl) in ("zeros", "full") and isinstance(value, ast.Call):
        filled = language_call(value, tl) == "full"
        start = argument(value, 1, "value") if filled else ast.Constant(0)
        dtype = argument(value, 2 if filled else 1, "dtype")
        if start is None or literal_value(start) != neutral or not isinstance(dtype, ast.Attribute):
            return None
        return dtype.attr if dtype.attr in ("float32", "float64", "int32", "int64") else None
    if literal_value(value) != neutral:
        return None
    # A number that a loop carries is a float32, or an int32 where it is written as an integer.
    integer = isinstance(value, ast.Constant) and isinstance(value.value, int)
    return "int32" if integer else "float32"


def _only_store(kernel: ast.FunctionDef, after: list[ast.stmt], tl: str) -> ast.Call | None:
    names = [call_name(node) for node in ast.walk(kernel)]
    if any(name.startswith("atomic_") for name in names) or names.count("store") != 1:
        return None
    last = after[-1] if after else None
    if not isinstance(last, ast.Expr) or language_call(last.value, tl) != "store":
        return None
    if any(not isinstance(item, ast.Assign) for item in after[:-1]):
        return None
    call = last.value
    assert isinstance(call, ast.Call)
    return call if len(call.args) >= 2 else None


def _leaks(loop: ast.For, name: str, after: list[ast.stmt]) -> bool:
    """Something that the loop leaves behind, other than the accumulator, is used afterwards."""
    inside = set[str]().union(*(names_assigned(item) for item in loop.body))
    inside |= names_assigned(loop.target)
    fresh: set[str] = set()
    for statement in after:
        if names_read(statement) & (inside - {name} - fresh):
            return True
        fresh |= names_assigned(statement)
    return False


def _written(kernel: ast.FunctionDef, store: ast.Call, tl: str) -> str | None:
    """The pointer of the store: a parameter that is used for this store only."""
    parameters = {item.arg for item in kernel.args.args}
    address = store.args[0]
    while isinstance(address, ast.BinOp) and isinstance(address.op, ast.Add):
        address = address.left
    if not isinstance(address, ast.Name) or address.id not in parameters:
        return None
    name = address.id
    uses = [n for n in ast.walk(kernel) if isinstance(n, ast.Name) and n.id == name]
    typed = [
        node.value
        for node in ast.walk(kernel)
        if isinstance(node, ast.Attribute) and node.attr == "dtype"
    ]
    others = [node for node in uses if node is not address and node not in typed]
    return None if others else name


@dataclass(frozen=True, slots=True)
class _Chain:
    """Names whose value, combined over the splits, is what one program would have had."""

    linear: set[str]
    combine: str
    dtype: str
    output_type: str
    tl: str

    def covers(self, value: ast.expr, after: list[ast.stmt]) -> bool:
        """The stored value of a combination is the combination of the stored values."""
        for statement in after[:-1]:
            target = assigned_name(statement)
            if target is None or not isinstance(statement, ast.Assign):
                return False
            if self._keeps(statement.value):
                self.linear.add(target)
            elif names_read(statement.value) & self.linear:
                return False
        return self._keeps(value)

    def _keeps(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.linear
        if isinstance(node, ast.Subscript):
            return self._keeps(node.value)
        if isinstance(node, ast.Call):
            return self._keeps_call(node)
        if isinstance(node, ast.BinOp) and self.combine == "sum" and "float" in self.dtype:
            scales = isinstance(node.op, (ast.Mult, ast.Div))
            return scales and not names_read(node.right) & self.linear and self._keeps(node.left)
        return False

    def _keeps_call(self, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            # The workspace has the accumulator's type, so these casts change nothing there.
            target = ast.unparse(node.args[0]) if node.args else ""
            neutral = target in (self.output_type, f"{self.tl}.{self.dtype}")
            return neutral and self._keeps(node.func.value)
        across = language_call(node, self.tl) == _ACROSS[self.combine]
        return across and bool(node.args) and self._keeps(node.args[0])
