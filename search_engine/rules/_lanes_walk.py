"""How a kernel that only moves elements covers a row, and one block of it per program instead."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.rules._base import Patch, Subject
from search_engine.rules._index import call_name, program_ids
from search_engine.rules._launch import Launch
from search_engine.rules._lift import Lift
from search_engine.rules._syntax import body, is_repeatable, names_assigned, same


@dataclass(frozen=True, slots=True)
class LanesWalk:
    """How the lanes cover their extent.

    ``extent`` is the kernel parameter they run to. ``loop`` walks them in blocks, counting elements
    or, with ``counts_blocks``, blocks; ``axis`` is the grid axis that does so; with neither, one
    block covers them all.
    """

    extent: str
    loop: ast.For | None = None
    counts_blocks: bool = False
    axis: int | None = None


def find_lanes(subject: Subject, launch: Launch, lift: Lift) -> LanesWalk | None:
    """The walk, if it can be spread over programs: the same blocks of lanes, each once."""
    kernel = subject.kernel_node
    loops = [node for node in ast.walk(kernel) if isinstance(node, (ast.For, ast.While))]
    found = _looped(kernel, lift) if loops else _unlooped(launch, lift)
    if found is None or found.extent not in launch.arguments:
        return None
    if found.extent in names_assigned(kernel) or not is_repeatable(launch.arguments[found.extent]):
        return None
    return found


def place_lanes(patch: Patch, subject: Subject, lift: Lift, lanes: LanesWalk, block: str) -> None:
    """Let the program do the block of lanes with the number ``block``."""
    start = f"{block} * {lift.block}"
    if lanes.loop is not None:
        _unroll(patch, subject, lanes.loop, block if lanes.counts_blocks else start)
    elif lanes.axis is not None:
        for call in program_ids(subject.kernel_node, lanes.axis):
            patch.replace(call, f"({block})")
    else:
        for node in _ranges(subject.kernel_node):
            begin = patch.span(node)[0]
            patch.replace_range(begin, begin, f"{start} + ")


def _looped(kernel: ast.FunctionDef, lift: Lift) -> LanesWalk | None:
    last = body(kernel)[-1]
    loops = [node for node in ast.walk(kernel) if isinstance(node, (ast.For, ast.While))]
    if loops != [last] or not isinstance(last, ast.For) or last.orelse:
        return None
    if any(isinstance(node, (ast.Break, ast.Continue)) for node in ast.walk(last)):
        return None
    stores = [a for a in lift.flow.accesses if a.kind == "store"]
    if not all(access.in_loop for access in stores) or not isinstance(last.iter, ast.Call):
        return None
    if call_name(last.iter) != "range" or last.iter.keywords:
        return None
    return _range(last, last.iter.args, lift)


def _range(loop: ast.For, bounds: list[ast.expr], lift: Lift) -> LanesWalk | None:
    zero = isinstance(bounds[0], ast.Constant) and bounds[0].value == 0
    if len(bounds) == 3 and zero and isinstance(bounds[1], ast.Name) and _is(bounds[2], lift):
        return LanesWalk(bounds[1].id, loop)
    stop = bounds[0] if len(bounds) == 1 else bounds[1] if len(bounds) == 2 and zero else None
    if isinstance(stop, ast.Call) and call_name(stop) == "cdiv" and len(stop.args) == 2:
        extent = stop.args[0]
        if isinstance(extent, ast.Name) and _is(stop.args[1], lift):
            return LanesWalk(extent.id, loop, counts_blocks=True)
    return None


def _is(node: ast.expr, lift: Lift) -> bool:
    return isinstance(node, ast.Name) and node.id == lift.block


def _unlooped(launch: Launch, lift: Lift) -> LanesWalk | None:
    extent = _compared(lift)
    if extent is None or extent not in launch.arguments:
        return None
    passed = launch.arguments[extent]
    axes = _block_axes(lift)
    if axes:
        (axis, *more) = axes
        counted = launch.grid.elts[axis] if axis < len(launch.grid.elts) else None
        if more or len(launch.grid.elts) != 2 or not isinstance(counted, ast.Call):
            return None
        whole = call_name(counted) == "cdiv" and same(counted.args[0], passed)
        return LanesWalk(extent, axis=axis) if whole else None
    size = launch.arguments.get(lift.block or "")
    if isinstance(size, ast.Name):
        size = launch.host.single_binding(size.id)
    if call_name(size or ast.Pass()) != "next_power_of_2" or not isinstance(size, ast.Call):
        return None
    placed = len(_ranges(lift.subject.kernel_node)) == sum(
        call_name(node) == "arange" for node in ast.walk(lift.subject.kernel_node)
    )
    return LanesWalk(extent) if placed and same(size.args[0], passed) else None


def _compared(lift: Lift) -> str | None:
    """The parameter that every mask compares the lanes with."""
    found: set[str] = set()
    for node in ast.walk(lift.subject.kernel_node):
        if isinstance(node, ast.Compare) and lift.lanes(node.left):
            right = node.comparators[0]
            plain = len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt)
            if not plain or not isinstance(right, ast.Name):
                return None
            found.add(right.id)
    masked = all(
        any(atom.startswith("lane:") for atom in access.mask_depends)
        for access in lift.flow.accesses
        if any(atom.startswith("lane:") for atom in access.depends)
    )
    return found.pop() if len(found) == 1 and masked else None


def _block_axes(lift: Lift) -> list[int]:
    """Grid axes whose program id is multiplied by the block."""
    found: set[int] = set()
    for access in lift.flow.accesses:
        for term in access.pointer or {}:
            if f"arg:{lift.block}" in term:
                found |= {int(atom[4:]) for atom in term if atom.startswith("pid:")}
    return sorted(found)


def _ranges(kernel: ast.FunctionDef) -> list[ast.expr]:
    """``tl.arange`` where it is all that a name is assigned."""
    return [
        node.value
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign) and call_name(node.value) == "arange"
    ]


def _unroll(patch: Patch, subject: Subject, loop: ast.For, value: str) -> None:
    """Replace the loop's header by an assignment and move its body to the left."""
    data = subject.text.encode()
    start, body_start = patch.span(loop)[0], patch.span(loop.body[0])[0]
    colon = data.index(b":", patch.span(loop.iter)[1])
    target = patch.source(loop.target)
    patch.replace_range(start, colon + 1, f"{target} = {value}")
    if b"\n" not in data[colon:body_start]:
        patch.replace_range(colon + 1, body_start, "\n" + " " * loop.col_offset)
        return
    shift = loop.body[0].col_offset - loop.col_offset
    first = loop.lineno + data[start:colon].count(b"\n") + 1
    for line in range(first, (loop.end_lineno or loop.lineno) + 1):
        begin = patch.offset(line, 0)
        if data[begin : begin + shift] == b" " * shift:
            patch.replace_range(begin, begin + shift, "")
