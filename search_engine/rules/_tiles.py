"""The three block sizes of a tiled matrix product, and which of them may grow."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.domain.workload import TensorArgument
from search_engine.rules._base import Subject
from search_engine.rules._index import KernelFlow, call_name
from search_engine.rules._launch import Launch
from search_engine.rules._syntax import (
    argument,
    constexpr_parameters,
    literal_value,
    names_assigned,
    names_read,
)

_POINTER_BLOCKS = (
    "make_block_ptr",
    "make_tensor_descriptor",
    "_experimental_make_tensor_descriptor",
)

_OPERANDS = {"f16": 2, "bf16": 2, "f8e4m3": 2, "f8e5m2": 2, "f32": 4, "f64": 8}


@dataclass(frozen=True, slots=True)
class Tiles:
    """Names of the meta-parameters of one ``tl.dot`` kernel, as rows, columns and inner block.

    ``fixed`` names those that must keep their size, since a larger block would be wrong for sizes
    that the kernel takes now. ``limits`` maps a name to the kernel parameter that bounds it.
    """

    rows: str
    cols: str
    inner: str
    fixed: frozenset[str]
    limits: dict[str, str]
    operand_bytes: int


def find_tiles(subject: Subject, launch: Launch) -> Tiles | None:
    """Read the kernel; None if it is not a plain tiled product over pointers."""
    kernel = subject.kernel_node
    names = [call_name(node) for node in ast.walk(kernel)]
    dots = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and call_name(n) == "dot"]
    if len(dots) != 1 or any(name in names for name in _POINTER_BLOCKS):
        return None
    shape = _accumulator_shape(kernel, dots[0])
    flow = KernelFlow(kernel)
    if shape is None:
        return None
    rows, cols = shape
    left, right = argument(dots[0], 0, "input"), argument(dots[0], 1, "other")
    lanes = {a[5:] for a in flow.depends(left) | flow.depends(right) if a.startswith("lane:")}
    rest = sorted(lanes - {rows, cols})
    inner = rest[0] if rest else rows
    sizes = {rows, cols, inner}
    if len(rest) > 1 or not sizes <= constexpr_parameters(kernel) & set(launch.arguments):
        return None
    fixed = _unbounded(kernel, sizes, inner) | _asserted(subject, sizes)
    size = _operand_bytes(subject, kernel, dots[0])
    return Tiles(rows, cols, inner, frozenset(fixed), _limits(kernel, flow, sizes), size)


def _accumulator_shape(kernel: ast.FunctionDef, dot: ast.Call) -> tuple[str, str] | None:
    """``(BLOCK_M, BLOCK_N)`` of the zeros that the product is added to."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and call_name(node) == "zeros" and node.args:
            shape = node.args[0]
            if isinstance(shape, (ast.Tuple, ast.List)) and len(shape.elts) == 2:
                first, second = shape.elts
                if isinstance(first, ast.Name) and isinstance(second, ast.Name):
                    return first.id, second.id
    return None


def _unbounded(kernel: ast.FunctionDef, sizes: set[str], inner: str) -> set[str]:
    """Sizes whose lanes reach memory without a mask, or whose tail is not filled with zeros."""
    found: set[str] = set()
    for access in KernelFlow(kernel, wraps=True).accesses:
        open_lanes = {atom[5:] for atom in access.depends if atom.startswith("lane:")}
        masked = {atom[5:] for atom in access.mask_depends if atom.startswith("lane:")}
        found |= open_lanes - masked
        if access.kind == "load" and inner in open_lanes:
            other = argument(access.call, 2, "other")
            if other is None or literal_value(other) != 0:
                found.add(inner)
    for loop in ast.walk(kernel):
        if isinstance(loop, ast.For) and _drops_tail(loop.iter, inner):
            found.add(inner)
    return found & sizes


def _drops_tail(node: ast.expr, inner: str) -> bool:
    """``range(K // BLOCK_K)``, not ``(K + BLOCK_K - 1) // BLOCK_K``."""
    floors = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv)
    ]
    return any(inner in names_read(f.right) and inner not in names_read(f.left) for f in floors)


def _asserted(subject: Subject, sizes: set[str]) -> set[str]:
    """An entry that checks divisibility says which sizes it takes: nothing may grow."""
    checks = [n for n in ast.walk(subject.entry_node) if isinstance(n, (ast.Assert, ast.If))]
    tests = [part for check in checks for part in ast.walk(check.test)]
    return sizes if any(isinstance(part, ast.Mod) for part in tests) else set()


def _limits(kernel: ast.FunctionDef, flow: KernelFlow, sizes: set[str]) -> dict[str, str]:
    """``BLOCK_M -> M`` from comparisons like ``rows < M`` and remainders like ``rows % M``."""
    found: dict[str, set[str]] = {size: set() for size in sizes}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            left, right = node.left, node.comparators[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            left, right = node.left, node.right
        else:
            continue
        lanes = {atom[5:] for atom in flow.depends(left) if atom.startswith("lane:")}
        if isinstance(right, ast.Name) and len(lanes & sizes) == 1:
            found[(lanes & sizes).pop()].add(right.id)
    return {size: limits.pop() for size, limits in found.items() if len(limits) == 1}


def _operand_bytes(subject: Subject, kernel: ast.FunctionDef, dot: ast.Call) -> int:
    """Bytes of one operand element in the main case; 4 if it is not known."""
    widened = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and call_name(n) == "to"]
    operands = {n.id for arg in dot.args for n in ast.walk(arg) if isinstance(n, ast.Name)}
    for node in ast.walk(kernel):
        if not isinstance(node, ast.Assign) or not names_assigned(node) & operands:
            continue
        if any(part in widened for part in ast.walk(node)):
            return 4
    tensors = (a for a in subject.main_case.arguments if isinstance(a, TensorArgument))
    floats = {tensor.dtype for tensor in tensors} & _OPERANDS.keys()
    return max((_OPERANDS[dtype] for dtype in floats), default=4)
