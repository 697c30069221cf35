"""Give a program a tile, so that strided accesses become runs of neighbouring elements.

What it does
    Where a program walks one row or column with a stride, it takes several neighbouring rows or
    columns at once: the program id becomes an axis of a two-dimensional tile. A kernel that only
    moves elements gets one tile per program; a kernel that reduces keeps its loop.

Why it helps
    A warp that touches 32 elements with a large stride moves 32 sectors of 32 bytes for 128 bytes
    of data. Along the other axis of a tile the same elements are neighbours; Triton then gives the
    load and the store each their own order and exchanges the tile through shared memory.

When it does not
    When the strided accesses hit in the cache anyway (a matrix of a few megabytes), or when the
    grid becomes too small to fill the device: then the reduction must be split as well.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
        col = tl.program_id(0)
        total = 0.0
        for start in range(0, n, BLOCK):
            rows = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + rows * stride + col, mask=rows < n, other=0.0)
            total += tl.sum(x, axis=0)
        tl.store(out_ptr + col, total)


    # kernel-lsp: workload x=f32[16384,8192]
    # kernel-lsp: reference x.sum(dim=0)
    def column_sum(x):
        n, m = x.shape
        out = torch.empty(m, device=x.device)
        kernel[(m,)](x, out, x.stride(0), n, BLOCK=1024)
        return out

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, out_ptr, stride, n, m, BLOCK: tl.constexpr, BLOCK_COL: tl.constexpr):
        col = (tl.program_id(0) * BLOCK_COL + tl.arange(0, BLOCK_COL))[None, :]
        total = tl.zeros((1, BLOCK_COL), dtype=tl.float32)
        for start in range(0, n, BLOCK):
            rows = start + tl.arange(0, BLOCK)[:, None]
            x = tl.load(x_ptr + rows * stride + col, mask=(rows < n) & (col < m), other=0.0)
            total += tl.sum(x, axis=0, keep_dims=True)
        tl.store(out_ptr + col, total, mask=col < m)


    # kernel-lsp: workload x=f32[16384,8192]
    # kernel-lsp: reference x.sum(dim=0)
    def column_sum(x):
        n, m = x.shape
        out = torch.empty(m, device=x.device)
        grid = lambda meta: (triton.cdiv(m, meta["BLOCK_COL"]),)
        kernel[grid](x, out, x.stride(0), n, m, BLOCK=128, BLOCK_COL=32)
        return out

Safety
    Every access that depends on the lifted index is masked by its extent, which is the old number
    of programs. Moving elements is exact; reductions are combined in another order. Refused where
    the kernel returns early, branches on its program id, calls helpers or atomics, or carries a
    value whose new shape is not clear.

Evidence
    This rule on an H200, 16384 x 8192 fp32, whole entry, median of 15 in one run: transpose 3 051
    to 304 us with 64x64 tiles; column sum 1 008 to 264 us with 128 rows by 32 columns, but
    1 100 us with 64 rows by 128 columns: the tile must be searched.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from search_engine.domain.candidate import Assignment, Numerics, Rewrite
from search_engine.rules._base import Patch, Subject
from search_engine.rules._index import Access, KernelFlow, program_ids, stride_of
from search_engine.rules._lanes_walk import find_lanes, place_lanes
from search_engine.rules._launch import (
    Launch,
    add_size,
    find_launch,
    replace_grid,
    set_constant,
)
from search_engine.rules._lift import Lift, apply_lift, can_lift, lane_block, reduces
from search_engine.rules._syntax import (
    add_argument,
    add_parameter,
    assigned_name,
    body,
    fresh_name,
    is_repeatable,
    language_alias,
    same,
    triton_alias,
)

_MOVES = ((64, 64), (32, 32), (32, 128), (128, 32), (64, 32), (32, 64))
_REDUCES = ((32, 128), (16, 256), (64, 64), (32, 64), (128, 64), (64, 128))
_WALKS = (128, 64, 256, 32)


@dataclass(frozen=True, slots=True)
class _Extent:
    """How far the lifted index runs: the kernel's name for it and the entry's expression."""

    name: str
    host: str
    new: bool


class TileStridedAccess:
    """Tiles for kernels that walk memory with a stride."""

    name = "tile-strided-access"
    numerics = Numerics.REASSOCIATES

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite per grid axis along which a strided access would be contiguous."""
        launch, lanes = find_launch(subject), lane_block(subject)
        tl, triton = language_alias(subject.tree), triton_alias(subject.tree)
        if launch is None or lanes is None or tl is None or triton is None:
            return ()
        flow = KernelFlow(subject.kernel_node)
        axes = [
            axis for axis in range(len(launch.grid.elts)) if _helps(flow, launch, axis, lanes[0])
        ]
        found = (self._rewrite(subject, launch, flow, axis, lanes[0]) for axis in axes[:1])
        return tuple(rewrite for rewrite in found if rewrite is not None)

    def _rewrite(
        self, subject: Subject, launch: Launch, flow: KernelFlow, axis: int, block: str | None
    ) -> Rewrite | None:
        extent = _extent(subject, launch, axis)
        tl = language_alias(subject.tree)
        if extent is None or tl is None:
            return None
        width = fresh_name(subject, f"BLOCK_{_axis_name(subject, axis)}")
        lift = Lift(subject, flow, tl, axis, width, extent.name, block, first=True)
        if not can_lift(lift):
            return None
        if block is None or reduces(lift):
            return _reducing(self.name, subject, launch, lift, extent)
        return _moving(self.name, subject, launch, lift, extent)


def _helps(flow: KernelFlow, launch: Launch, axis: int, block: str | None) -> bool:
    """Some access is strided along the walk and contiguous along the grid axis."""
    return any(_strided(access, launch, axis, block) for access in flow.accesses)


def _strided(access: Access, launch: Launch, axis: int, block: str | None) -> bool:
    if access.pointer is None:
        return False
    walked = [f"lane:{block}"] if block is not None else []
    walked += [atom for atom in access.depends if block is None and atom.startswith("loop:")]
    across = stride_of(access.pointer, f"pid:{axis}", launch.integer)
    strides = [stride_of(access.pointer, atom, launch.integer) for atom in walked]
    return across == 1 and any(stride is not None and abs(stride) > 1 for stride in strides)


def _axis_name(subject: Subject, axis: int) -> str:
    for statement in body(subject.kernel_node):
        name = assigned_name(statement)
        if name and any(call in set(ast.walk(statement)) for call in program_ids(statement, axis)):
            return name.removesuffix("s").upper()
    return "TILE"


def _extent(subject: Subject, launch: Launch, axis: int) -> _Extent | None:
    node = launch.grid.elts[axis]
    if not is_repeatable(node):
        return None
    host = ast.get_source_segment(subject.text, node) or ast.unparse(node)
    stored = {
        n.id
        for n in ast.walk(subject.kernel_node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for name, value in launch.arguments.items():
        if same(value, node) and name not in stored:
            return _Extent(name, host, new=False)
    if launch.meta is not None and launch.meta in {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name)
    }:
        return None
    wanted = node.id if isinstance(node, ast.Name) else "n_programs"
    taken = {item.arg for item in subject.kernel_node.args.args} | stored
    return _Extent(wanted if wanted not in taken else fresh_name(subject, wanted), host, new=True)


def _reducing(
    rule: str, subject: Subject, launch: Launch, lift: Lift, extent: _Extent
) -> Rewrite | None:
    """Lift the program id and keep the loop; blocks of lanes become short."""
    lift = Lift(
        lift.subject,
        lift.flow,
        lift.tl,
        lift.axis,
        lift.width,
        lift.extent,
        lift.block,
        first=False,
    )
    sizes = _sizes(subject, launch, lift, _REDUCES)
    if not sizes:
        return None
    triton = triton_alias(subject.tree)
    patch = Patch(subject.text)
    apply_lift(lift, patch)
    count = f'{triton}.cdiv({extent.host}, {launch.meta or "meta"}["{lift.width}"])'
    _resize(patch, subject, launch, lift, extent, sizes[0])
    elements = _elements(patch, launch)
    elements[lift.axis] = count
    replace_grid(patch, subject, launch, elements)
    title = "take a tile of several columns per program"
    return Rewrite(rule, title, patch.edits, _numerics(lift), _configurations(lift, sizes))


def _numerics(lift: Lift) -> Numerics:
    exact = lift.block is None or not reduces(lift)
    return Numerics.EXACT if exact else Numerics.REASSOCIATES


def _sizes(
    subject: Subject, launch: Launch, lift: Lift, wanted: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """(width, block) pairs that keep the kernel's domain: blocks no larger than they were."""
    if lift.block is None:
        return tuple((width, 0) for width in _WALKS)
    old = launch.integer(lift.block)
    if old is None or not _walked_in_blocks(lift):
        return ()
    return tuple((width, block) for width, block in wanted if block <= old)


def _walked_in_blocks(lift: Lift) -> bool:
    """Every access by lanes stands in a loop that steps by the block."""
    loops = [node for node in ast.walk(lift.subject.kernel_node) if isinstance(node, ast.For)]
    for loop in loops:
        named = {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
        if lift.block not in named:
            return False
    lanes = [a for a in lift.flow.accesses if any(d.startswith("lane:") for d in a.depends)]
    return bool(lanes) and all(access.in_loop for access in lanes)


def _resize(
    patch: Patch,
    subject: Subject,
    launch: Launch,
    lift: Lift,
    extent: _Extent,
    size: tuple[int, int],
) -> None:
    width, block = size
    constexpr = f"{lift.tl}.constexpr"
    # Insertions at one place appear in reverse order.
    add_parameter(patch, subject.kernel_node, lift.width, constexpr, str(width))
    add_argument(patch, launch.call, f"{lift.width}={width}")
    if extent.new:
        add_size(patch, subject, launch, extent.name, extent.host)
    if lift.block is not None:
        set_constant(patch, launch, lift.block, str(block))


def _elements(patch: Patch, launch: Launch) -> list[str]:
    return [patch.source(item) for item in launch.grid.elts]


def _configurations(
    lift: Lift, sizes: tuple[tuple[int, int], ...]
) -> tuple[tuple[Assignment, ...], ...]:
    found: list[tuple[Assignment, ...]] = []
    for width, block in sizes:
        own = Assignment(lift.width, str(width))
        lanes = (Assignment(lift.block, str(block)),) if lift.block is not None else ()
        found.append((own, *lanes))
    return tuple(found)


def _moving(
    rule: str, subject: Subject, launch: Launch, lift: Lift, extent: _Extent
) -> Rewrite | None:
    """One tile per program; programs are numbered along the lanes first."""
    lanes = find_lanes(subject, launch, lift)
    old = launch.integer(lift.block or "")
    sizes = tuple(size for size in _MOVES if old is not None and size[1] <= old)
    if lanes is None or not sizes:
        return None
    patch, count = Patch(subject.text), fresh_name(subject, "n_blocks")
    axis = lift.axis if lanes.axis is None else 0
    number = f"{lift.tl}.program_id({axis})"
    prelude = (f"{count} = {lift.tl}.cdiv({lanes.extent}, {lift.block})",)
    lift = replace(lift, program=f"{number} // {count}", prelude=prelude)
    apply_lift(lift, patch)
    place_lanes(patch, subject, lift, lanes, f"{number} % {count}")
    _resize(patch, subject, launch, lift, extent, sizes[0])
    meta, triton = launch.meta or "meta", triton_alias(subject.tree)
    rows = f'{triton}.cdiv({extent.host}, {meta}["{lift.width}"])'
    cols = f'{triton}.cdiv({patch.source(launch.arguments[lanes.extent])}, {meta}["{lift.block}"])'
    elements = ["" for _ in launch.grid.elts] if lanes.axis is None else [""]
    elements = [patch.source(item) for item, _ in zip(launch.grid.elts, elements, strict=False)]
    elements[axis] = f"{rows} * {cols}"
    replace_grid(patch, subject, launch, elements)
    title = "move a tile per program, contiguous on both sides"
    return Rewrite(rule, title, patch.edits, Numerics.EXACT, _configurations(lift, sizes))
