"""Loops of a kernel that walk a row in blocks: ``for start in range(0, n, BLOCK)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search_engine.rules._base import Subject
from search_engine.rules._syntax import (
    argument,
    assigned_name,
    body,
    constexpr_parameters,
    language_alias,
    language_call,
    names_assigned,
    parameters,
)


@dataclass(frozen=True, slots=True)
class RowLoop:
    """A loop whose iterations together cover the elements 0 to ``bound`` - 1.

    ``index`` is the loop variable: the first element of the block, or with ``by_block`` the number
    of the block. ``bound`` and ``block`` are kernel parameters.
    """

    node: ast.For
    index: str
    bound: str
    block: str
    by_block: bool


def row_loops(subject: Subject, statements: Sequence[ast.stmt]) -> tuple[RowLoop, ...]:
    """The row loops that stand directly among the statements, in order."""
    names = set(parameters(subject.kernel_node))
    sizes = constexpr_parameters(subject.kernel_node)
    alias = language_alias(subject.tree)
    if alias is None:
        return ()
    changed = names_assigned(subject.kernel_node)
    counts = _block_counts(subject, alias)
    found: list[RowLoop] = []
    for node in statements:
        loop = _row_loop(node, alias, counts) if isinstance(node, ast.For) else None
        if loop is None or {loop.bound, loop.block} & changed:
            continue
        if loop.bound in names and loop.block in sizes and loop.bound != loop.block:
            found.append(loop)
    return tuple(found)


def step_uses_are_plain(subject: Subject, loops: Sequence[RowLoop]) -> bool:
    """True if the kernel's result cannot depend on the block size.

    Every use of the size is one of: a step of the loops or a number of blocks, ``arange``, the
    shape of ``zeros`` or ``full``, the start of a block, or the advance of a pointer in a loop.
    """
    alias = language_alias(subject.tree) or ""
    size = loops[0].block
    checker = _StepUses(size, alias, loops)
    for statement in body(subject.kernel_node):
        checker.visit(statement)
    return checker.plain


class _StepUses(ast.NodeVisitor):
    """Visits a kernel and skips the places in which the block size may stand."""

    def __init__(self, size: str, alias: str, loops: Sequence[RowLoop]) -> None:
        self.plain = True
        self._size = size
        self._alias = alias
        self._loops = {id(loop.node): loop for loop in loops}
        self._by_block = {loop.index for loop in loops if loop.by_block}
        self._starts = {loop.index for loop in loops if not loop.by_block}
        self._inside = 0

    def visit_Name(self, node: ast.Name) -> None:
        if node.id == self._size:
            self.plain = False

    def visit_For(self, node: ast.For) -> None:
        if id(node) not in self._loops:
            self.generic_visit(node)
            return
        self._inside += 1
        for statement in node.body:
            self.visit(statement)
        self._inside -= 1

    def visit_Assign(self, node: ast.Assign) -> None:
        if block_count(node.value, self._alias) is None:
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        advance = isinstance(node.op, ast.Add) and self._inside and self._is_advance(node.value)
        if not advance:
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        sides = {part.id for part in (node.left, node.right) if isinstance(part, ast.Name)}
        is_start = isinstance(node.op, ast.Mult) and self._size in sides and sides & self._by_block
        if not is_start:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = language_call(node, self._alias)
        if name == "arange" or (name in ("zeros", "full") and self._is_shape(node)):
            return
        if name == "multiple_of" and is_name(argument(node, 0, "input"), self._starts):
            return
        self.generic_visit(node)

    def _is_advance(self, value: ast.expr) -> bool:
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            return is_name(value.left, {self._size}) or is_name(value.right, {self._size})
        return is_name(value, {self._size})

    def _is_shape(self, node: ast.Call) -> bool:
        shape = argument(node, 0, "shape")
        if not isinstance(shape, ast.List | ast.Tuple) or len(shape.elts) != 1:
            return False
        return is_name(shape.elts[0], {self._size})


def is_name(node: ast.expr | None, names: set[str]) -> bool:
    """True for a plain name out of ``names``."""
    return isinstance(node, ast.Name) and node.id in names


def block_count(node: ast.expr, alias: str) -> tuple[str, str] | None:
    """``(n, BLOCK)`` for ``cdiv(n, BLOCK)`` or ``(n + BLOCK - 1) // BLOCK``."""
    if isinstance(node, ast.Call) and len(node.args) == 2:
        left, right = node.args
        is_count = isinstance(node.func, ast.Attribute) and node.func.attr == "cdiv"
        if is_count and isinstance(left, ast.Name) and isinstance(right, ast.Name):
            return left.id, right.id
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        size = node.right
        if isinstance(size, ast.Name):
            text = ast.unparse(node.left).replace(" ", "")
            for part in ast.walk(node.left):
                if isinstance(part, ast.Name) and part.id != size.id:
                    shapes = {f"{part.id}+{size.id}-1", f"{part.id}+({size.id}-1)"}
                    return (part.id, size.id) if text in shapes else None
    return None


def _block_counts(subject: Subject, alias: str) -> dict[str, tuple[str, str]]:
    counts: dict[str, tuple[str, str]] = {}
    assigned: list[str] = []
    for node in ast.walk(subject.kernel_node):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            assigned.append(node.id)
        if isinstance(node, ast.Assign):
            name, count = assigned_name(node), block_count(node.value, alias)
            if name is not None and count is not None:
                counts[name] = count
    return {name: count for name, count in counts.items() if assigned.count(name) == 1}


def _row_loop(node: ast.For, alias: str, counts: Mapping[str, tuple[str, str]]) -> RowLoop | None:
    if node.orelse or not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call):
        return None
    is_range = isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
    if not is_range and language_call(node.iter, alias) not in ("range", "static_range"):
        return None
    arguments = node.iter.args
    if len(arguments) > 1:
        first, *arguments = arguments
        if not isinstance(first, ast.Constant) or first.value != 0:
            return None
    index = node.target.id
    if len(arguments) == 2:
        bound, size = arguments
        if isinstance(bound, ast.Name) and isinstance(size, ast.Name):
            return RowLoop(node, index, bound.id, size.id, by_block=False)
    if len(arguments) == 1:
        limit = arguments[0]
        named = counts.get(limit.id) if isinstance(limit, ast.Name) else None
        count = named or block_count(limit, alias)
        if count is not None:
            return RowLoop(node, index, count[0], count[1], by_block=True)
    return None
