"""Whether a loop over blocks treats its row as one: no block counts for more than its elements.

A kernel may give each block a meaning of its own, a group of a quantised row for instance: a scale
read or written once per block, or elements divided by the maximum of their block. Such a loop must
keep its block size.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from search_engine.rules._lanes import REDUCTIONS, SCANS, DeadLanes
from search_engine.rules._row_loops import RowLoop
from search_engine.rules._syntax import (
    assigned_name,
    language_call,
    names_assigned,
    names_read,
)


def blocks_mean_nothing(before: Sequence[ast.stmt], loop: RowLoop, alias: str) -> bool:
    """True if the loop's result does not depend on how its row is cut into blocks."""
    lanes = DeadLanes(alias, loop.bound)
    lanes.run([*before, *loop.node.body])
    carried = carried_names(loop)
    return (
        _index_moves_lanes(loop, lanes, alias)
        and _carries_data(loop, carried, alias)
        and _reductions_are_carried(loop, carried, alias)
    )


def carried_names(loop: RowLoop) -> set[str]:
    """Names that an iteration reads from the one before."""
    everywhere = set[str]().union(*(names_assigned(node) for node in loop.node.body))
    assigned: set[str] = set()
    carried: set[str] = set()
    for statement in loop.node.body:
        carried |= (names_read(statement) & everywhere) - assigned
        assigned |= names_assigned(statement)
    return carried - {loop.index}


def _index_moves_lanes(loop: RowLoop, lanes: DeadLanes, alias: str) -> bool:
    """True if the start of a block is only ever added to lanes."""
    parents = {child: node for node in ast.walk(loop.node) for child in ast.iter_child_nodes(node)}
    waiting, seen = [loop.index], {loop.index}
    while waiting:
        name = waiting.pop()
        for node in ast.walk(loop.node):
            if not isinstance(node, ast.Name) or node.id != name or isinstance(node.ctx, ast.Store):
                continue
            first = name == loop.index
            start = _block_start(node, parents, loop) if first and loop.by_block else node
            if start is None:
                return False
            chain = _sum_around(start, parents, alias)
            if lanes.varies(chain):
                continue
            owner = parents[chain]
            target = assigned_name(owner) if isinstance(owner, ast.Assign) else None
            if target is None:
                return False
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return True


def _block_start(node: ast.Name, parents: dict[ast.AST, ast.AST], loop: RowLoop) -> ast.expr | None:
    """``k * BLOCK`` around the number of a block."""
    parent = parents[node]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult):
        other = parent.right if parent.left is node else parent.left
        if isinstance(other, ast.Name) and other.id == loop.block:
            return parent
    return None


def _sum_around(node: ast.expr, parents: dict[ast.AST, ast.AST], alias: str) -> ast.expr:
    """The whole sum of which a node is a term; casts and alignment hints belong to it."""
    while True:
        parent = parents[node]
        hint = isinstance(parent, ast.Call) and language_call(parent, alias) == "multiple_of"
        added = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)
        if not hint and not added:
            return node
        assert isinstance(parent, ast.expr)
        node = parent


def _carries_data(loop: RowLoop, carried: set[str], alias: str) -> bool:
    """True if what is carried comes from the elements, or is a pointer that advances by a block."""
    local = {name for node in loop.node.body for name in names_assigned(node)} - {loop.index}
    for node in loop.node.body:
        name = assigned_name(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        if name not in carried or not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        reads = names_read(node.value)
        calls = {language_call(part, alias) for part in ast.walk(node.value)}
        data = reads & (local - {name}) or calls & ({"load"} | REDUCTIONS | SCANS)
        if not data and loop.block not in reads:
            return False
    return True


def _reductions_are_carried(loop: RowLoop, carried: set[str], alias: str) -> bool:
    """True if the reduction of a block is only ever combined with what came before it."""
    waiting: list[str] = []
    seen: set[str] = set()

    def follows(statement: ast.stmt) -> bool:
        if names_read(statement) & carried:
            return True
        target = assigned_name(statement)
        if target is not None and target not in seen:
            seen.add(target)
            waiting.append(target)
        return target is not None

    for statement in loop.node.body:
        calls = {language_call(part, alias) for part in ast.walk(statement)}
        if calls & (REDUCTIONS | SCANS) and not follows(statement):
            return False
    while waiting:
        name = waiting.pop()
        if not all(follows(node) for node in loop.node.body if name in names_read(node)):
            return False
    return True
