"""Order the tiles of a matrix product so that neighbours share their operands.

What it does
    Renumbers the programs of a tiled ``tl.dot`` kernel: instead of walking whole rows (or columns)
    of tiles, ``GROUP_M`` rows of tiles are walked together, column after column. The grid, the
    launch and the work of each tile stay.

Why it helps
    Programs that run at the same time then read few rows of A and few columns of B, which stay in
    the L2 cache. In row-major order each wave reads all of B again.

When it does not
    When both operands fit in the L2 cache, or when there are no more tiles than processors.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(
        a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
    ):
        i = tl.program_id(0)
        j = tl.program_id(1)
        rows = i * BM + tl.arange(0, BM)[:, None]
        cols = j * BN + tl.arange(0, BN)[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            left = start + tl.arange(0, BK)[None, :]
            right = start + tl.arange(0, BK)[:, None]
            a = tl.load(a_ptr + rows * K + left, mask=(rows < M) & (left < K), other=0.0)
            b = tl.load(b_ptr + right * N + cols, mask=(right < K) & (cols < N), other=0.0)
            acc += tl.dot(a, b)
        tl.store(c_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


    # kernel-lsp: workload a=f32[4096,4096] b=f32[4096,4096]
    # kernel-lsp: reference a @ b
    def matmul(a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        kernel[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32)
        return c

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(
        a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
        GROUP_M: tl.constexpr
    ):
        i = tl.program_id(0)
        j = tl.program_id(1)
        # Programs start in this order; GROUP_M rows of tiles share their operands in the cache.
        tile = j * tl.num_programs(0) + i
        n_tiles = tl.num_programs(1)
        i, j = tl.swizzle2d(tile // n_tiles, tile % n_tiles, tl.num_programs(0), n_tiles, GROUP_M)
        rows = i * BM + tl.arange(0, BM)[:, None]
        cols = j * BN + tl.arange(0, BN)[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            left = start + tl.arange(0, BK)[None, :]
            right = start + tl.arange(0, BK)[:, None]
            a = tl.load(a_ptr + rows * K + left, mask=(rows < M) & (left < K), other=0.0)
            b = tl.load(b_ptr + right * N + cols, mask=(right < K) & (cols < N), other=0.0)
            acc += tl.dot(a, b)
        tl.store(c_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


    # kernel-lsp: workload a=f32[4096,4096] b=f32[4096,4096]
    # kernel-lsp: reference a @ b
    def matmul(a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        kernel[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32, GROUP_M=8)
        return c

Safety
    The renumbering is a permutation of the tiles for every grid, odd ones included: each tile is
    computed once, by the same operations in the same order. Refused where program ids are used
    for anything but the position of the tile, or where the order is not the plain one.

Evidence
    This rule on an H200, bf16 product of 4096 cubed, whole entry, median of 15 in one run: with
    128x256x64 tiles 271 to 241 us at GROUP_M 8, 248 at 4, 265 at 16; with 32x32x32 tiles 1 116 to
    1 058 us.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.domain.candidate import Assignment, Numerics, Rewrite
from search_engine.rules._base import Patch, Subject
from search_engine.rules._index import call_name, program_axis, program_ids
from search_engine.rules._launch import Launch, find_launch
from search_engine.rules._syntax import (
    add_argument,
    add_parameter,
    assigned_name,
    body,
    fresh_name,
    language_alias,
    names_read,
    same,
)

_GROUPS = (8, 4, 16)
_LINE = 100
_WHY = "# Programs start in this order; {group} rows of tiles share their operands in the cache."


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Where the kernel reads its tile's position.

    ``anchor`` is the statement after which both ids are known. ``columns`` is the name of the
    number of tiles in a row where the grid has one dimension. ``calls`` are the ids where they
    stand inside expressions; the new names then go before ``anchor``.
    """

    rows: str
    cols: str
    anchor: ast.stmt
    columns: str | None = None
    calls: tuple[ast.Call, ...] = ()


class GroupPrograms:
    """Grouped order of the tiles of a matrix product."""

    name = "group-programs"
    numerics = Numerics.EXACT

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite with ``GROUP_M`` as its configuration."""
        launch, tl = find_launch(subject), language_alias(subject.tree)
        if launch is None or tl is None or not _multiplies(subject.kernel_node):
            return ()
        tiles = _tiles(subject, launch)
        if tiles is None:
            return ()
        return (self._rewrite(subject, launch, tl, tiles),)

    def _rewrite(self, subject: Subject, launch: Launch, tl: str, tiles: _Tiles) -> Rewrite:
        patch, group = Patch(subject.text), fresh_name(subject, "GROUP_M")
        lines = _lines(subject, tl, tiles, group)
        if tiles.calls:
            ids = zip((tiles.rows, tiles.cols), tiles.calls, strict=True)
            reads = [f"{name} = {patch.source(call)}" for name, call in ids]
            patch.insert_before(tiles.anchor, [*reads, *lines])
            for name, call in zip((tiles.rows, tiles.cols), tiles.calls, strict=True):
                patch.replace(call, name)
        else:
            patch.insert_after(tiles.anchor, lines)
        add_parameter(patch, subject.kernel_node, group, f"{tl}.constexpr", str(_GROUPS[0]))
        add_argument(patch, launch.call, f"{group}={_GROUPS[0]}")
        configurations = tuple((Assignment(group, str(value)),) for value in _GROUPS)
        title = "walk the tiles in groups that share operands"
        return Rewrite(self.name, title, patch.edits, self.numerics, configurations)


def _multiplies(kernel: ast.FunctionDef) -> bool:
    names = {call_name(node) for node in ast.walk(kernel)}
    return "dot" in names and "swizzle2d" not in names


def _lines(subject: Subject, tl: str, tiles: _Tiles, group: str) -> list[str]:
    why, rows, cols = _WHY.format(group=group), tiles.rows, tiles.cols
    if tiles.columns is not None:
        count = f"{tl}.num_programs(0) // {tiles.columns}"
        return [why, *_swizzle(tl, tiles, f"{rows}, {cols}, {count}, {tiles.columns}, {group}")]
    tile, count = fresh_name(subject, "tile"), fresh_name(subject, "n_tiles")
    return [
        why,
        f"{tile} = {cols} * {tl}.num_programs(0) + {rows}",
        f"{count} = {tl}.num_programs(1)",
        *_swizzle(
            tl,
            tiles,
            f"{tile} // {count}, {tile} % {count}, {tl}.num_programs(0), {count}, {group}",
        ),
    ]


def _swizzle(tl: str, tiles: _Tiles, arguments: str) -> list[str]:
    head = f"{tiles.rows}, {tiles.cols} = {tl}.swizzle2d("
    if tiles.anchor.col_offset + len(head) + len(arguments) + 1 <= _LINE:
        return [f"{head}{arguments})"]
    return [head, f"    {arguments}", ")"]


def _tiles(subject: Subject, launch: Launch) -> _Tiles | None:
    kernel = subject.kernel_node
    found: dict[int, tuple[int, str]] = {}
    for position, statement in enumerate(body(kernel)):
        name = assigned_name(statement)
        value = statement.value if isinstance(statement, ast.Assign) else None
        axis = program_axis(value) if isinstance(value, ast.Call) else None
        if name is not None and axis is not None:
            found[axis] = (position, name)
    if len(launch.grid.elts) >= 2:
        if 0 not in found and 1 not in found:
            return _inline(subject, kernel)
        return _plane(kernel, found)
    return _flat(kernel, found, launch)


def _inline(subject: Subject, kernel: ast.FunctionDef) -> _Tiles | None:
    """``tl.program_id(0) * BLOCK`` inside expressions, each once."""
    first, second = program_ids(kernel, 0), program_ids(kernel, 1)
    products = [n for n in ast.walk(kernel) if isinstance(n, ast.BinOp)]
    products = [n for n in products if isinstance(n.op, ast.Mult)]
    factors = [side for n in products for side in (n.left, n.right)]
    if len(first) != 1 or len(second) != 1 or first[0] not in factors or second[0] not in factors:
        return None
    for statement in body(kernel):
        if any(node in (first[0], second[0]) for node in ast.walk(statement)):
            names = fresh_name(subject, "pid_m"), fresh_name(subject, "pid_n")
            return _Tiles(*names, statement, calls=(first[0], second[0]))
    return None


def _plane(kernel: ast.FunctionDef, found: dict[int, tuple[int, str]]) -> _Tiles | None:
    """A two-dimensional grid whose two ids are read side by side."""
    if 0 not in found or 1 not in found:
        return None
    (first, rows), (second, cols) = found[0], found[1]
    if not _free_between(kernel, first, second, rows, cols):
        return None
    if len(program_ids(kernel, 0)) != 1 or len(program_ids(kernel, 1)) != 1:
        return None
    return _Tiles(rows, cols, body(kernel)[max(first, second)])


def _flat(
    kernel: ast.FunctionDef, found: dict[int, tuple[int, str]], launch: Launch
) -> _Tiles | None:
    """A one-dimensional grid split by ``pid // columns`` and ``pid % columns``."""
    if 0 not in found or len(program_ids(kernel, 0)) != 1:
        return None
    _, pid = found[0]
    parts: dict[type, tuple[int, str, ast.expr]] = {}
    for position, statement in enumerate(body(kernel)):
        value = statement.value if isinstance(statement, ast.Assign) else None
        name = assigned_name(statement)
        if not isinstance(value, ast.BinOp) or name is None:
            continue
        if isinstance(value.left, ast.Name) and value.left.id == pid:
            parts[type(value.op)] = (position, name, value.right)
    uses = sum(isinstance(node, ast.Name) and node.id == pid for node in ast.walk(kernel))
    if set(parts) != {ast.FloorDiv, ast.Mod} or uses != 3 or not _product(launch.grid.elts[0]):
        return None
    (first, rows, over), (second, cols, modulo) = parts[ast.FloorDiv], parts[ast.Mod]
    if not same(over, modulo) or not isinstance(over, ast.Name):
        return None
    if not _free_between(kernel, first, second, rows, cols):
        return None
    return _Tiles(rows, cols, body(kernel)[max(first, second)], over.id)


def _product(node: ast.expr) -> bool:
    """The number of programs is written as rows times columns."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def _free_between(kernel: ast.FunctionDef, first: int, second: int, rows: str, cols: str) -> bool:
    """Both ids only place a tile, and nothing reads one before the other is known."""
    between = body(kernel)[min(first, second) + 1 : max(first, second)]
    early = any(names_read(statement) & {rows, cols} for statement in between)
    return not early and _scaled(kernel, rows) and _scaled(kernel, cols)


def _scaled(kernel: ast.FunctionDef, name: str) -> bool:
    """The id is assigned once and only multiplied by a block size: it places a tile."""
    uses = [n for n in ast.walk(kernel) if isinstance(n, ast.Name) and n.id == name]
    scaled = [
        node
        for node in ast.walk(kernel)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(isinstance(side, ast.Name) and side.id == name for side in (node.left, node.right))
    ]
    return bool(scaled) and len(scaled) == len(uses) - 1
