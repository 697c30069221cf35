"""Block sizes that a grid repeats as numbers: ``[(triton.cdiv(n, 128),)](..., BLOCK=128)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from search_engine.proposers.blocks import Blocks
from search_engine.proposers.sites import LaunchSite, bindings, integer, last_name
from search_engine.proposers.tunable_types import Place
from search_engine.rules._base import Patch


@dataclass(frozen=True, slots=True)
class _Division:
    """``cdiv(dividend, number)`` or ``dividend // number`` in host code."""

    node: ast.AST
    dividend: str
    places: tuple[Place, ...]


def repeated_in_grid(
    patch: Patch, entry: ast.FunctionDef, launches: tuple[LaunchSite, ...], blocks: Blocks,
    parameter: str, number: int,
) -> tuple[Place, ...] | None:  # fmt: skip
    """Where the grids divide by the value of ``parameter``; None if that cannot be told apart.

    A parameter that the kernel never multiplies by a program's index is not in the grid.
    """
    if parameter not in blocks.axes and parameter not in blocks.dividends:
        return ()
    places: list[Place] = []
    in_grids: set[int] = set()
    for launch in launches:
        divisions = list(_divisions(patch, launch.grid, number))
        in_grids.update(id(division.node) for division in divisions)
        mine = _belonging(divisions, entry, launch, blocks, parameter)
        if mine is None:
            return None
        places.extend(place for division in mine for place in division.places)
    elsewhere = [d for d in _divisions(patch, (entry,), number) if id(d.node) not in in_grids]
    if elsewhere and places:
        return None
    if not places and parameter not in blocks.looped:
        return None
    return tuple(dict.fromkeys(places))


def _belonging(
    divisions: list[_Division], entry: ast.FunctionDef, launch: LaunchSite, blocks: Blocks,
    parameter: str,
) -> list[_Division] | None:  # fmt: skip
    """The divisions of one grid that belong to a parameter; None if several might."""
    by_axis = _on_axes(divisions, entry, launch, blocks.axes.get(parameter, set()))
    rivals = _rivals(blocks, launch, parameter)
    if not any(_same_axis(blocks, parameter, rival) for rival in rivals):
        return by_axis
    wanted = {
        ast.unparse(launch.arguments[name])
        for name in blocks.dividends.get(parameter, set())
        if name in launch.arguments
    }
    by_dividend = [division for division in by_axis if division.dividend in wanted]
    return by_dividend if by_dividend or not by_axis else None


def _rivals(blocks: Blocks, launch: LaunchSite, parameter: str) -> list[str]:
    """Other parameters in the grid with the same number."""
    number = integer(launch.arguments.get(parameter))
    if number is None:
        return []
    return [
        name
        for name in {*blocks.axes, *blocks.dividends}
        if name != parameter and integer(launch.arguments.get(name)) == number
    ]


def _same_axis(blocks: Blocks, first: str, second: str) -> bool:
    one, other = blocks.axes.get(first), blocks.axes.get(second)
    return not one or not other or bool(one & other)


def _on_axes(
    divisions: list[_Division], entry: ast.FunctionDef, launch: LaunchSite, axes: set[int]
) -> list[_Division]:
    extents = _extents(entry, launch)
    if extents is None or not axes or any(axis >= len(extents) for axis in axes):
        return divisions
    inside = {id(node) for axis in axes for node in ast.walk(extents[axis])}
    named = {
        node.id for axis in axes for node in ast.walk(extents[axis]) if isinstance(node, ast.Name)
    }
    for name in named:
        for value in bindings(entry, name):
            if value is not None:
                inside.update(id(node) for node in ast.walk(value))
    return [division for division in divisions if id(division.node) in inside]


def _extents(entry: ast.FunctionDef, launch: LaunchSite) -> list[ast.expr] | None:
    """The grid's elements, if it is a tuple, a local that holds one, or a lambda with one."""
    grid = launch.grid[0]
    if isinstance(grid, ast.Name):
        values = bindings(entry, grid.id)
        grid = values[0] if len(values) == 1 and values[0] is not None else grid
    if isinstance(grid, ast.Lambda):
        grid = grid.body
    return list(grid.elts) if isinstance(grid, (ast.Tuple, ast.List)) else None


def _divisions(patch: Patch, parts: tuple[ast.AST, ...], number: int) -> Iterator[_Division]:
    seen: set[int] = set()
    for part in parts:
        for node in ast.walk(part):
            if id(node) in seen:
                continue
            seen.add(id(node))
            found = _division(patch, node, number)
            if found is not None:
                yield found


def _division(patch: Patch, node: ast.AST, number: int) -> _Division | None:
    if isinstance(node, ast.Call) and last_name(node.func) in ("cdiv", "ceil_div"):
        if len(node.args) == 2 and integer(node.args[1]) == number:
            place = Place(*patch.span(node.args[1]))
            return _Division(node, ast.unparse(node.args[0]), (place,))
    elif _is(node, ast.FloorDiv) and integer(node.right) == number:
        return _floor_division(patch, node, number)
    return None


def _is(node: ast.AST, operator: type[ast.operator]) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, operator)


def _floor_division(patch: Patch, node: ast.BinOp, number: int) -> _Division:
    """``n // 128``, ``(n + 127) // 128`` and ``(n + 128 - 1) // 128``."""
    places = [Place(*patch.span(node.right))]
    dividend = node.left
    if _is(dividend, ast.Sub) and integer(dividend.right) == 1 and _is(dividend.left, ast.Add):
        dividend = dividend.left
    if _is(dividend, ast.Add):
        addend = integer(dividend.right)
        if addend in (number, number - 1):
            template = "{}" if addend == number else "({} - 1)"
            places.append(Place(*patch.span(dividend.right), template))
            dividend = dividend.left
    return _Division(node, ast.unparse(dividend), tuple(places))
