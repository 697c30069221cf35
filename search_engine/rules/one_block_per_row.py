"""Hold a whole row in one block instead of walking it in several loops.

What it does
    A kernel that walks a row in loops over blocks gets a second form: the row is loaded once into
    one block of ``next_power_of_2(n)`` lanes, the loops are gone, and loads that repeat an earlier
    one are dropped. The loops stay for rows that are longer than the largest row of the workload.

Why it helps
    Each pass of such a kernel reads the row again, and each iteration waits for a reduction. One
    block reads the row once, with wide loads that are all in flight together.

When it does not
    Rows so long that the block spills, rows much shorter than a power of two, and kernels whose
    passes hit in L2 anyway. Rows over 65536 elements are left alone.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        total = 0.0
        for start in range(0, n, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
            total += tl.sum(x, axis=0)
        for start in range(0, n, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
            tl.store(out_ptr + row * n + cols, x / total, mask=cols < n)


    # kernel-lsp: workload x=f32[64,1000]
    # kernel-lsp: reference x / x.sum(dim=1, keepdim=True)
    def entry(x):
        rows, n = x.shape
        out = torch.empty_like(x)
        kernel[(rows,)](x, out, n, BLOCK=128)
        return out

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr):
        row = tl.program_id(0)
        if ONE_BLOCK > 0:
            total = 0.0
            cols = tl.arange(0, ONE_BLOCK)
            x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
            total += tl.sum(x, axis=0)
            tl.store(out_ptr + row * n + cols, x / total, mask=cols < n)
        else:
            total = 0.0
            for start in range(0, n, BLOCK):
                cols = start + tl.arange(0, BLOCK)
                x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
                total += tl.sum(x, axis=0)
            for start in range(0, n, BLOCK):
                cols = start + tl.arange(0, BLOCK)
                x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
                tl.store(out_ptr + row * n + cols, x / total, mask=cols < n)


    # kernel-lsp: workload x=f32[64,1000]
    # kernel-lsp: reference x / x.sum(dim=1, keepdim=True)
    def entry(x):
        rows, n = x.shape
        out = torch.empty_like(x)
        ONE_BLOCK = triton.next_power_of_2(n) if n <= 1024 else 0
        kernel[(rows,)](x, out, n, BLOCK=128, ONE_BLOCK=ONE_BLOCK)
        return out

Safety
    The one block is what the user's loop does when its block covers the row, so every use of the
    block size must be one that cannot change the result. Lanes beyond the row must be neutral in
    each reduction and masked in each access; where that is not certain, the one block serves only
    rows whose length is a power of two, which have no such lanes. Loads are not merged across a
    store. Sums are taken in another order.

Evidence
    On an H200, three-pass softmax of 8192 x 8192 fp32 in blocks of 128: 491 to 135 us. Three-pass
    layer norm of 16384 x 8192 bf16 in blocks of 256: 455 to 134 us on 8 warps, 188 us on 32.
    Two-pass RMS norm of the same size, blocks of 128: 539 to 135 us. Running sum of 16384 x 8192
    fp32, blocks of 128: 521 to 263 us.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from search_engine.domain.candidate import Assignment, Numerics, Rewrite
from search_engine.domain.workload import Case, TensorArgument
from search_engine.rules._base import Patch, Subject
from search_engine.rules._block_independence import blocks_mean_nothing
from search_engine.rules._host import HostValues
from search_engine.rules._lanes import REDUCTIONS, SCANS, DeadLanes
from search_engine.rules._row_loops import RowLoop, row_loops, step_uses_are_plain
from search_engine.rules._straight import Line, simplified, unrolled_once
from search_engine.rules._syntax import (
    BoundLaunch,
    add_arguments,
    add_parameters,
    assigned_name,
    body,
    bound_launches,
    fresh_name,
    is_literal,
    is_repeatable,
    language_alias,
    language_call,
    names_read,
    triton_alias,
)

_MOST_LANES = 65536
# A block of 65536 lanes on 32 warps holds 64 values a thread: 16-bit data still fits the 255
# registers of a thread beside its temporaries, wider data needs a block half as large or less.
_LANE_BYTES = 2 * _MOST_LANES


@dataclass(frozen=True, slots=True)
class _Plan:
    region: Sequence[ast.stmt]
    lines: tuple[str, ...]
    bound: str
    powers_only: bool
    """Only rows whose length is a power of two may take the one block."""


class OneBlockPerRow:
    """Adds a form of the kernel that holds its whole row in one block."""

    name = "one-block-per-row"
    numerics = Numerics.REASSOCIATES

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite for a kernel whose row loops stand at the top level of its body."""
        launches = bound_launches(subject)
        alias, host = language_alias(subject.tree), triton_alias(subject.tree)
        if not launches or alias is None or host is None:
            return ()
        size = fresh_name(subject, "ONE_BLOCK")
        plan = _plan(subject, size, alias)
        if plan is None:
            return ()
        limit = _limit(subject, plan, launches)
        if limit is None:
            return ()
        patch = Patch(subject.text)
        if not add_parameters(patch, subject.kernel_node, [(size, f"{alias}.constexpr", "0")]):
            return ()
        _write_kernel(patch, subject, plan, size)
        for launch in launches:
            bound = launch.arguments.get(plan.bound)
            if bound is None or not is_repeatable(bound):
                return ()
            length = patch.source(bound)
            fits = f"{length} <= {limit}"
            value = f"{host}.next_power_of_2({length})"
            if plan.powers_only:
                fits = f"{length} == {value} <= {limit}"
                value = length
            patch.insert_before(launch.statement, [f"{size} = {value} if {fits} else 0"])
            add_arguments(patch, launch.call, [f"{size}={size}"])
        title = f"hold rows of up to {limit} elements in one block"
        numerics = self.numerics if _combines(plan, alias) else Numerics.EXACT
        return (Rewrite(self.name, title, patch.edits, numerics, _configurations(limit)),)


def _plan(subject: Subject, size: str, alias: str) -> _Plan | None:
    statements = body(subject.kernel_node)
    loops = row_loops(subject, statements)
    if not loops or len({(loop.bound, loop.block) for loop in loops}) != 1:
        return None
    if not step_uses_are_plain(subject, loops) or not _is_one_dimensional(subject):
        return None
    if _index_escapes(statements, loops):
        return None
    for loop in loops:
        before = [node for node in statements if node.lineno < loop.node.lineno]
        if not blocks_mean_nothing(before, loop, alias):
            return None
    start = _region_start(statements, loops)
    region = statements[start:]
    lines = unrolled_once(subject.text, region, loops, size, alias)
    if lines is None or _has_multiline_string(region):
        return None
    text = simplified(lines, alias)
    if any("+=" in line and line.split("+=")[1].strip().find(size) >= 0 for line in text):
        return None  # a pointer that is advanced here and read after the loop
    safety = _check_lanes(statements[:start], lines, alias, loops[0].bound)
    if safety is None:
        return None
    return _Plan(region, text, loops[0].bound, powers_only=safety)


def _check_lanes(
    before: Sequence[ast.stmt], lines: Sequence[Line], alias: str, bound: str
) -> bool | None:
    """True if only powers of two are safe, False if every length is, None if none is."""
    lanes = DeadLanes(alias, bound)
    lanes.run(before)
    outside = True
    for line in lines:
        covered = lanes.covered
        lanes.run(ast.parse(line.text).body)
        if covered and not lanes.covered and not line.in_loop:
            outside = False
    if lanes.neutral and lanes.covered:
        return False
    return True if outside else None


def _combines(plan: _Plan, alias: str) -> bool:
    """True if the kernel adds up values; maxima do not depend on the order."""
    nodes = (node for line in plan.lines for node in ast.walk(ast.parse(line)))
    names = {language_call(node, alias) for node in nodes} - {None}
    return bool(names & ((REDUCTIONS | SCANS) - {"max", "min", "argmax", "argmin", "xor_sum"}))


def _is_one_dimensional(subject: Subject) -> bool:
    for node in ast.walk(subject.kernel_node):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            return False
        if isinstance(node, ast.Attribute) and node.attr in ("dot", "make_block_ptr", "trans"):
            return False
    return True


def _index_escapes(statements: Sequence[ast.stmt], loops: Sequence[RowLoop]) -> bool:
    inside = {id(loop.node) for loop in loops}
    indices = {loop.index for loop in loops}
    others = [statement for statement in statements if id(statement) not in inside]
    return any(indices & names_read(statement) for statement in others)


def _region_start(statements: Sequence[ast.stmt], loops: Sequence[RowLoop]) -> int:
    nodes = {id(loop.node) for loop in loops}
    block = loops[0].block
    start = next(
        position
        for position, statement in enumerate(statements)
        if id(statement) in nodes or block in names_read(statement)
    )
    while start and _is_initial_value(statements[start - 1]):
        start -= 1
    return start


def _is_initial_value(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and assigned_name(statement) is not None
        and is_literal(statement.value)
    )


def _has_multiline_string(region: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.lineno != node.end_lineno
        for statement in region
        for node in ast.walk(statement)
    )


def _write_kernel(patch: Patch, subject: Subject, plan: _Plan, size: str) -> None:
    first, last = plan.region[0], plan.region[-1]
    indent = " " * first.col_offset
    start, end = patch.span(first)[0], patch.span(last)[1]
    inner = [line for text in plan.lines for line in text.split("\n")]
    head = "".join(f"{indent}    {line}\n" for line in inner)
    old = subject.text.encode()[start:end].decode().split("\n")
    kept = [f"    {line}" if line.strip() else line for line in old[1:]]
    tail = "\n".join([f"{indent}    {old[0]}", *kept])
    patch.replace_range(start, end, f"if {size} > 0:\n{head}{indent}else:\n{tail}")


def _limit(subject: Subject, plan: _Plan, launches: Sequence[BoundLaunch]) -> int | None:
    """The longest row that takes the one block; None if none of the workload's rows would."""
    rows = [row for case in subject.workload.cases for row in _rows(subject, plan, launches, case)]
    most = _LANE_BYTES // max(2, _widest_item(subject))
    fitting = [row for row in rows if 1 < row <= most]
    if plan.powers_only:
        fitting = [row for row in fitting if row & (row - 1) == 0]
    return _power_of_two(max(fitting)) if fitting else None


def _rows(
    subject: Subject, plan: _Plan, launches: Sequence[BoundLaunch], case: Case
) -> Sequence[int]:
    workload = dataclasses.replace(subject.workload, cases=(case,))
    values = HostValues(dataclasses.replace(subject, workload=workload), {}, None)
    bounds = [launch.arguments.get(plan.bound) for launch in launches]
    known = [values.integer(bound) for bound in bounds if bound is not None]
    rows = [row for row in known if row is not None]
    if rows:
        return rows
    # The entry computes the length in a way that is not understood; rows are usually innermost.
    tensors = (item for item in case.arguments if isinstance(item, TensorArgument))
    return [max((tensor.shape[-1] for tensor in tensors if tensor.shape), default=0)]


def _widest_item(subject: Subject) -> int:
    tensors = (item for item in subject.main_case.arguments if isinstance(item, TensorArgument))
    floats = (int(item.dtype[1:]) // 8 for item in tensors if item.dtype in ("f16", "f32", "f64"))
    return max(floats, default=2)


def _power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length()


def _configurations(limit: int) -> tuple[tuple[Assignment, ...], ...]:
    # Around 32 elements a thread first: fewer leave little in flight, more may spill.
    counts = [count for count in (1, 2, 4, 8, 16, 32) if 4 <= limit // (32 * count) <= 128]
    counts.sort(key=lambda count: abs((limit // (32 * count)).bit_length() - 6))
    return tuple((Assignment("num_warps", str(count)),) for count in counts or [1])
