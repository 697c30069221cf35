"""Straight-line code: the user's loops run once, without repeated loads and without dead code."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from search_engine.rules._base import Patch
from search_engine.rules._lanes import REDUCTIONS, SCANS
from search_engine.rules._row_loops import RowLoop
from search_engine.rules._syntax import (
    argument,
    assigned_name,
    is_literal,
    language_call,
    names_assigned,
    names_read,
    with_changes,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One statement as text, and whether it stood in a row loop."""

    text: str
    in_loop: bool


def unrolled_once(
    text: str, statements: Sequence[ast.stmt], loops: Sequence[RowLoop], size: str, alias: str
) -> tuple[Line, ...] | None:
    """The statements with each loop replaced by its first iteration and ``size`` for its block.

    None if a statement is of a kind that is not understood.
    """
    patch = Patch(text)
    by_node = {id(loop.node): loop for loop in loops}
    lines: list[Line] = []
    for statement in statements:
        loop = by_node.get(id(statement))
        for inner in statement.body if isinstance(statement, ast.For) and loop else [statement]:
            if not isinstance(inner, ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.Pass):
                return None
            if isinstance(inner, ast.If) and not _is_simple_branch(inner):
                return None
            changes = _first_iteration(patch, inner, loops[0].block, loop, size, alias)
            lines.append(Line(_statement_text(patch, inner, changes), loop is not None))
    return tuple(lines)


def simplified(lines: Sequence[Line], alias: str) -> tuple[str, ...]:
    """The same statements without loads that repeat an earlier one, and without dead ones."""
    # What a loop leaves for a next iteration is dead, and would hide that loads are equal.
    alive = set(_without_dead([line.text for line in lines]))
    lines = [line for line in lines if line.text in alive]
    merger = Merger(alias)
    merged = [text for line in lines if (text := merger.add(line.text, lines)) is not None]
    return _without_dead(merged)


def _is_simple_branch(statement: ast.If) -> bool:
    kinds = (ast.If, ast.Assign, ast.AugAssign, ast.Expr, ast.Pass)
    inner = [node for node in ast.walk(statement) if isinstance(node, ast.stmt)]
    return all(isinstance(node, kinds) for node in inner)


def _first_iteration(
    patch: Patch, statement: ast.stmt, block: str, loop: RowLoop | None, size: str, alias: str
) -> dict[ast.AST, str]:
    changes: dict[ast.AST, str] = {}
    index = loop.index if loop else None

    def zero(node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id == index and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return zero(node.left) or zero(node.right)
        if isinstance(node, ast.Call) and language_call(node, alias) == "multiple_of":
            return zero(node.args[0])
        return False

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            visit(child)
        if zero(node):
            changes[node] = "0"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if zero(node.left) or changes.get(node.left) == "0":
                changes[node] = with_changes(patch, node.right, changes)
            elif zero(node.right) or changes.get(node.right) == "0":
                changes[node] = with_changes(patch, node.left, changes)
        elif isinstance(node, ast.Name) and node.id == block:
            changes[node] = size

    visit(statement)
    return changes


def _statement_text(patch: Patch, statement: ast.stmt, changes: dict[ast.AST, str]) -> str:
    text = with_changes(patch, statement, changes)
    if "\n" in text:
        text = ast.unparse(ast.parse(_dedented(text, statement.col_offset)))
    # Dropping a zero can leave a name alone in parentheses: ``x_ptr + (cols)``.
    return re.sub(r"(?<![\w\])])\((\w+)\)", r"\1", text)


def _dedented(text: str, columns: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(re.sub(rf"^ {{0,{columns}}}", "", line) for line in rest)])


class Merger:
    """Numbers values: a statement that computes what a variable already holds is dropped.

    A value is what its expression says once the names in it are replaced by their own values.
    """

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._numbers: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._loads: dict[str, int] = {}
        self._stores = 0
        self._position = 0

    def add(self, text: str, lines: Sequence[Line]) -> str | None:
        """The statement to write, or None if it is not needed."""
        self._position += 1
        statement = ast.parse(text).body[0]
        target = assigned_name(statement)
        if isinstance(statement, ast.Assign) and target and self._pure(statement.value):
            return self._assign(target, statement.value, text, lines)
        for name in names_assigned(statement):
            self._names[name] = self._number(f"{name} of line {self._position}")
        if not isinstance(statement, ast.AugAssign):
            # A store may have changed what an earlier load returned.
            self._stores += 1
            self._loads.clear()
        return text

    def _assign(self, target: str, value: ast.expr, text: str, lines: Sequence[Line]) -> str | None:
        if is_literal(value):
            # Two accumulators that begin alike are still two.
            self._names[target] = self._number(f"{target} of line {self._position}")
            return text
        number = self._value(value)
        load = self._load(value)
        if (known := self._holder(number, target)) is None and load is not None:
            earlier = self._holder(self._loads.get(load[0], -1), target)
            known = None if earlier is None else self._filled(earlier, load, lines)
        if known == target:
            return None
        if load is not None:
            self._loads.setdefault(load[0], number)
        self._names[target] = number
        return text if known is None else f"{target} = {known}"

    def _filled(
        self, earlier: str, load: tuple[str, str, str | None], lines: Sequence[Line]
    ) -> str:
        """An earlier load as if its dead lanes had been filled like those of this one."""
        _, mask, other = load
        rest = [ast.parse(line.text) for line in lines[self._position :]]
        calls = (language_call(node, self._alias) for tree in rest for node in ast.walk(tree))
        if other is None or not any(name in REDUCTIONS | SCANS for name in calls):
            # Only masked stores follow: what the dead lanes hold does not matter.
            return earlier
        return f"{self._alias}.where({mask}, {earlier}, {other})"

    def _holder(self, number: int, preferred: str) -> str | None:
        holders = [name for name, held in self._names.items() if held == number]
        return preferred if preferred in holders else next(iter(holders), None)

    def _number(self, written: str) -> int:
        return self._numbers.setdefault(written, len(self._numbers))

    def _value(self, node: ast.AST) -> int:
        """The number of what a node computes: equal numbers are equal values."""
        if isinstance(node, ast.Name):
            held = self._names.get(node.id)
            return self._number(f"given {node.id}") if held is None else held
        parts: list[str] = [type(node).__name__]
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                parts.append(str(self._value(value)))
            elif isinstance(value, list):
                items = cast("list[ast.AST]", value)
                parts.append(str([self._value(item) for item in items]))
            elif field not in ("kind", "type_comment"):
                parts.append(repr(value))
        if language_call(node, self._alias) == "load":
            parts.append(f"after {self._stores} stores")
        return self._number(" ".join(parts))

    def _load(self, value: ast.expr) -> tuple[str, str, str | None] | None:
        """``(key without other, mask, other)`` of a masked load, behind casts at most."""
        casts: list[int] = []
        node = value
        while isinstance(node, ast.Call) and language_call(node, self._alias) is None:
            if not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
                return None
            casts += [self._value(item) for item in node.args]
            node = node.func.value
        if not isinstance(node, ast.Call) or language_call(node, self._alias) != "load":
            return None
        mask, other = argument(node, 1, "mask"), argument(node, 2, "other")
        hints = {"mask", "other", "eviction_policy", "cache_modifier"}
        if mask is None or {item.arg for item in node.keywords} - hints or len(node.args) > 3:
            return None
        key = f"{self._value(node.args[0])} {self._value(mask)} {casts}"
        return key, ast.unparse(mask), None if other is None else ast.unparse(other)

    def _pure(self, node: ast.expr) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                name = language_call(part, self._alias)
                is_cast = isinstance(part.func, ast.Attribute) and part.func.attr == "to"
                is_float = isinstance(part.func, ast.Name) and part.func.id == "float"
                if name is None and not is_cast and not is_float:
                    return False
                if name is not None and (name.startswith("atomic") or "asm" in name):
                    return False
        return True


def _without_dead(lines: Sequence[str]) -> tuple[str, ...]:
    wanted: set[str] = set()
    kept: list[str] = []
    for text in reversed(lines):
        statement = ast.parse(text).body[0]
        name = assigned_name(statement)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
        if name is not None and name not in wanted and _removable(statement):
            continue
        if assigned_name(statement) is not None:
            wanted.discard(name or "")
        wanted |= names_read(statement)
        kept.append(text)
    return tuple(reversed(kept))


def _removable(statement: ast.stmt) -> bool:
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    names = [node.func.attr for node in calls if isinstance(node.func, ast.Attribute)]
    return not any(name.startswith("atomic") or name == "store" for name in names)
