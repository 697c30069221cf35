"""Let one program work on several rows where a single row is too little work.

What it does
    The index along one axis of the grid becomes a column of ``ROWS`` indices, the lanes become a
    row, and the kernel works on a two-dimensional tile. Reductions run along the lanes. The grid is
    divided by ``ROWS``; rows beyond the last are masked.

Why it helps
    A program for one head of 128 elements loads a few bytes per thread, and its start costs more
    than its work. A tile gives each thread several independent loads, and what does not depend on
    the row (weights, the angles of a position) is loaded once for all its rows.

When it does not
    Rows of several thousand elements fill a program already. Grids so small that dividing them
    leaves processors idle get slower.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, w_ptr, out_ptr, dim, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        cols = tl.arange(0, BLOCK)
        mask = cols < dim
        x = tl.load(x_ptr + row * dim + cols, mask=mask, other=0.0)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0)
        total = tl.sum(x * x, axis=0)
        tl.store(out_ptr + row * dim + cols, x * w / total, mask=mask)


    # kernel-lsp: workload x=f32[4096,100] w=f32[100]
    # kernel-lsp: reference x * w / (x * x).sum(dim=1, keepdim=True)
    def entry(x, w):
        rows, dim = x.shape
        out = torch.empty_like(x)
        kernel[(rows,)](x, w, out, dim, BLOCK=128)
        return out

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, w_ptr, out_ptr, dim, BLOCK: tl.constexpr, n_rows, ROWS: tl.constexpr):
        row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
        row_mask = row < n_rows
        cols = tl.arange(0, BLOCK)[None, :]
        mask = cols < dim
        x = tl.load(x_ptr + row * dim + cols, mask=mask & row_mask, other=0.0)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0)
        total = tl.sum(x * x, axis=1, keep_dims=True)
        tl.store(out_ptr + row * dim + cols, x * w / total, mask=mask & row_mask)


    # kernel-lsp: workload x=f32[4096,100] w=f32[100]
    # kernel-lsp: reference x * w / (x * x).sum(dim=1, keepdim=True)
    def entry(x, w):
        rows, dim = x.shape
        out = torch.empty_like(x)
        ROWS = 16
        kernel[(triton.cdiv(rows, ROWS),)](x, w, out, dim, BLOCK=128, n_rows=rows, ROWS=ROWS)
        return out

Safety
    Only kernels without loops, branches on the row, atomics or stores that all rows share. Each row
    is still computed from the same values; the compiler may spread a reduction over the lanes in
    another order. Address arithmetic keeps its integer types.

Evidence
    On an H200, rotary embedding of 8 x 4096 x 32 x 128 bf16 with one program per head: 637 to
    135 us with 16 heads of a position in one program, 139 us with 16 positions of a head.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.domain.candidate import Assignment, Numerics, Rewrite
from search_engine.rules._base import Patch, Subject
from search_engine.rules._lanes import REDUCTIONS, SCANS
from search_engine.rules._launch import Launch, find_launch
from search_engine.rules._shapes import (
    PROGRAM,
    NotUnderstoodError,
    Shapes,
    elementwise_helpers,
    program_axis,
)
from search_engine.rules._syntax import (
    add_arguments,
    add_parameters,
    argument,
    assigned_name,
    body,
    fresh_name,
    is_literal,
    is_repeatable,
    language_alias,
    names_assigned,
    names_read,
    parameters,
    same,
    triton_alias,
)

_MOST_LANES = 2048
"""Longer rows are work enough for a program of four warps."""
_TILE = 2048
"""Elements of the first tile tried: 16 for each thread of four warps."""


@dataclass(frozen=True, slots=True)
class _Names:
    language: str
    triton: str
    rows: str
    count: str
    mask: str


class SeveralRowsPerProgram:
    """Turns one axis of the grid into the rows of a tile."""

    name = "several-rows-per-program"
    numerics = Numerics.REASSOCIATES

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite for each axis of the grid that can be tiled, the most reuse first."""
        launch = find_launch(subject)
        alias, host = language_alias(subject.tree), triton_alias(subject.tree)
        if launch is None or alias is None or host is None or _has_tiles(subject.kernel_node):
            return ()
        names = _Names(
            alias, host, fresh_name(subject, "ROWS"), "", fresh_name(subject, "row_mask")
        )
        found: list[tuple[int, Rewrite]] = []
        for axis in range(len(launch.grid.elts)):
            try:
                offer = self._along(axis, subject, launch, names)
            except NotUnderstoodError:
                continue
            if offer is not None:
                found.append(offer)
        return tuple(rewrite for _, rewrite in sorted(found, key=lambda item: -item[0]))

    def _along(
        self, axis: int, subject: Subject, launch: Launch, names: _Names
    ) -> tuple[int, Rewrite] | None:
        shapes = Shapes(names.language, axis, elementwise_helpers(subject.tree, names.language))
        shapes.run(body(subject.kernel_node))
        lanes = _lanes(shapes, launch)
        extent = launch.grid.elts[axis]
        if not lanes or lanes > _MOST_LANES or not _is_plain_extent(extent, subject, launch):
            return None
        patch = Patch(subject.text)
        count = _existing_count(subject, launch, extent) or fresh_name(subject, "n_rows")
        if not _tile_kernel(patch, subject, shapes, axis, names, count):
            return None
        rows = _first_rows(lanes, launch.host.integer(extent))
        if not _edit_signatures(patch, subject, launch, extent, names, count):
            return None
        text = patch.source(extent)
        patch.insert_before(launch.grid_statement, [f"{names.rows} = {rows}"])
        patch.replace(extent, f"{names.triton}.cdiv({text}, {names.rows})")
        shared = sum(
            name == "load" and PROGRAM not in shapes.known(call.args[0])
            for call, name in shapes.calls
        )
        adds = any(name in REDUCTIONS | SCANS for _, name in shapes.calls)
        numerics = self.numerics if adds else Numerics.EXACT
        title = f"work on several of the {text} rows in one program"
        settings = _configurations(names.rows, rows)
        return shared, Rewrite(self.name, title, patch.edits, numerics, settings)


def _first_rows(lanes: int, extent: int | None) -> int:
    most = 32 if extent is None else 1 << max(extent - 1, 1).bit_length()
    return max(2, min(32, most, _TILE // lanes))


def _configurations(name: str, first: int) -> tuple[tuple[Assignment, ...], ...]:
    sizes = sorted((2, 4, 8, 16, 32), key=lambda size: abs(size.bit_length() - first.bit_length()))
    return tuple((Assignment(name, str(size)),) for size in sizes)


def _has_tiles(kernel: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
        for node in ast.walk(kernel)
    )


def _lanes(shapes: Shapes, launch: Launch) -> int:
    """The longest block of lanes; 0 if there is none or its size is not known."""
    sizes: list[int] = []
    for call, name in shapes.calls:
        if name != "arange":
            continue
        first, last = call.args[0], call.args[1] if len(call.args) == 2 else call.args[0]
        if not isinstance(first, ast.Constant) or first.value != 0 or first is last:
            return 0
        size = launch.integer(last.id) if isinstance(last, ast.Name) else launch.host.integer(last)
        if size is None:
            return 0
        sizes.append(size)
    return max(sizes, default=0)


def _is_plain_extent(extent: ast.expr, subject: Subject, launch: Launch) -> bool:
    """True for a count of rows whose value is the same at the grid and at the launch."""
    if not is_repeatable(extent) or isinstance(extent, ast.Constant):
        return False
    if any(isinstance(node, ast.Call) and "cdiv" in ast.unparse(node) for node in ast.walk(extent)):
        return False  # blocks of a row, not rows
    stores = [node.id for node in ast.walk(subject.entry_node)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]  # fmt: skip
    given = set(parameters(subject.entry_node))
    names = names_read(extent)
    if launch.meta is not None and launch.meta in names:
        return False
    return all(stores.count(name) + (name in given) <= 1 for name in names)


def _existing_count(subject: Subject, launch: Launch, extent: ast.expr) -> str | None:
    changed = names_assigned(subject.kernel_node)
    for name, value in launch.arguments.items():
        if name not in changed and same(value, extent):
            return name
    return None


def _edit_signatures(
    patch: Patch, subject: Subject, launch: Launch, extent: ast.expr, names: _Names, count: str
) -> bool:
    wanted = [(names.rows, f"{names.language}.constexpr", "1")]
    passed = [f"{names.rows}={names.rows}"]
    if count not in parameters(subject.kernel_node):
        wanted.insert(0, (count, "", "1"))
        passed.insert(0, f"{count}={patch.source(extent)}")
    add_arguments(patch, launch.call, passed)
    return add_parameters(patch, subject.kernel_node, wanted)


def _tile_kernel(
    patch: Patch, subject: Subject, shapes: Shapes, axis: int, names: _Names, count: str
) -> bool:
    if not _tile_index(patch, subject, shapes, axis, names, count):
        return False
    for call, name in shapes.calls:
        if name == "arange":
            end = patch.span(call)[1]
            patch.replace_range(end, end, "[None, :]")
        elif name in ("zeros", "full"):
            shape = argument(call, 0, "shape")
            if not isinstance(shape, ast.List | ast.Tuple) or len(shape.elts) != 1:
                return False
            patch.replace(shape, f"[1, {patch.source(shape.elts[0])}]")
        elif name in ("load", "store"):
            if not _mask_access(patch, shapes, call, name, names.mask):
                return False
        elif (name in REDUCTIONS or name in SCANS) and not _turn(patch, shapes, call, name):
            return False
    return True


def _tile_index(
    patch: Patch, subject: Subject, shapes: Shapes, axis: int, names: _Names, count: str
) -> bool:
    """Make the index a column; the statement that reads it must stand at the top level."""
    calls = [c for c, name in shapes.calls if name == "program_id" and program_axis(c) == axis]
    if len(calls) != 1:
        return False
    call, tl = calls[0], names.language
    owner = next((s for s in subject.kernel_node.body if any(n is call for n in ast.walk(s))), None)
    if owner is None or isinstance(owner, ast.If | ast.For):
        return False
    index = f"({patch.source(call)} * {names.rows} + {tl}.arange(0, {names.rows}))[:, None]"
    target = assigned_name(owner)
    if target is not None and isinstance(owner, ast.Assign) and _is_cast_of(owner.value, call):
        patch.replace(call, index)
        patch.insert_after(owner, [f"{names.mask} = {target} < {count}"])
        return True
    rows = fresh_name(subject, "rows")
    patch.insert_before(owner, [f"{rows} = {index}", f"{names.mask} = {rows} < {count}"])
    patch.replace(call, rows)
    return True


def _is_cast_of(node: ast.expr, call: ast.Call) -> bool:
    if node is call:
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "to" and _is_cast_of(node.func.value, call)
    return False


def _mask_access(patch: Patch, shapes: Shapes, call: ast.Call, name: str, row_mask: str) -> bool:
    position = 1 if name == "load" else 2
    pointer, mask = call.args[0], argument(call, position, "mask")
    axes = shapes.known(pointer)
    if PROGRAM not in axes:
        # What all rows share is loaded once; a store there would be made by every row.
        return name == "load" and (mask is None or PROGRAM not in shapes.known(mask))
    other = argument(call, 2, "other") if name == "load" else None
    if other is not None and shapes.known(other):
        return False
    if mask is None:
        add_arguments(patch, call, [f"mask={row_mask}"])
        return len(call.args) <= position
    if is_literal(mask) or isinstance(mask, ast.Constant):
        return False
    text = patch.source(mask)
    atom = isinstance(mask, ast.Name) or (
        isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd)
    )
    patch.replace(mask, f"{text} & {row_mask}" if atom else f"({text}) & {row_mask}")
    return True


def _turn(patch: Patch, shapes: Shapes, call: ast.Call, name: str) -> bool:
    """Reduce or scan along the lanes of a tile."""
    scan = name in SCANS
    axis = argument(call, 1, "axis")
    expected = {"axis", "dtype", "reverse"} if scan else {"axis", "dtype"}
    if {item.arg for item in call.keywords} - expected or len(call.args) > 2:
        return False
    if PROGRAM not in shapes.known(call.args[0]) or name in ("reduce", "associative_scan"):
        return False
    keep = "" if scan else "keep_dims=True"
    if axis is None:
        add_arguments(patch, call, [part for part in ("axis=1", keep) if part])
        return True
    plain = isinstance(axis, ast.Constant) and axis.value in (0, None)
    last = isinstance(axis, ast.UnaryOp) and ast.unparse(axis) == "-1"
    if not plain and not last:
        return False
    patch.replace(axis, "1")
    if keep:
        add_arguments(patch, call, [keep])
    return True
