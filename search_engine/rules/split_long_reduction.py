"""Split a long reduction over several programs when the grid leaves processors idle.

What it does
    Several programs share the loop of one result: program ``k`` of ``SPLITS`` takes every
    ``SPLITS``-th block. Each writes its partial result to its own row of a workspace, and a second
    small kernel combines the rows in a fixed order.

Why it helps
    A grid with fewer programs than the device has processors leaves the rest idle, and each
    program alone cannot keep enough loads in flight to use the memory bandwidth.

When it does not
    When the grid already fills the device several times, or the loop has few iterations: then the
    workspace and the second launch only add work.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, out_ptr, n, m, COLS: tl.constexpr):
        cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
        mask = cols < m
        total = tl.zeros((COLS,), dtype=tl.float32)
        for row in range(0, n):
            total += tl.load(x_ptr + row * m + cols, mask=mask, other=0.0)
        tl.store(out_ptr + cols, total, mask=mask)


    # kernel-lsp: workload x=f32[16384,8192]
    # kernel-lsp: reference x.sum(dim=0)
    def column_sum(x):
        n, m = x.shape
        y = torch.empty(m, device=x.device)
        kernel[(triton.cdiv(m, 128),)](x, y, n, m, COLS=128)
        return y

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, partial_ptr, n, m, n_outputs, COLS: tl.constexpr, SPLITS: tl.constexpr):
        cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
        mask = cols < m
        total = tl.zeros((COLS,), dtype=tl.float32)
        for row in range(tl.program_id(1), n, SPLITS):
            total += tl.load(x_ptr + row * m + cols, mask=mask, other=0.0)
        tl.store(partial_ptr + tl.program_id(1).to(tl.int64) * n_outputs + cols, total, mask=mask)


    @triton.jit
    def kernel_combine(
        partial_ptr, out_ptr, n_outputs, SPLITS: tl.constexpr, COMBINE_BLOCK: tl.constexpr
    ):
        offsets = tl.program_id(0) * COMBINE_BLOCK + tl.arange(0, COMBINE_BLOCK)
        rows = tl.arange(0, SPLITS).to(tl.int64)[:, None] * n_outputs
        mask = offsets < n_outputs
        parts = tl.load(partial_ptr + rows + offsets[None, :], mask=mask[None, :])
        total = tl.sum(parts, axis=0)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)


    # kernel-lsp: workload x=f32[16384,8192]
    # kernel-lsp: reference x.sum(dim=0)
    def column_sum(x):
        n, m = x.shape
        y = torch.empty(m, device=x.device)
        SPLITS = 16
        partial = torch.empty((SPLITS, y.numel()), dtype=torch.float32, device=y.device)
        kernel[(triton.cdiv(m, 128), SPLITS)](x, partial, n, m, y.numel(), COLS=128, SPLITS=SPLITS)
        kernel_combine[lambda meta: (triton.cdiv(y.numel(), meta["COMBINE_BLOCK"]),)](
            partial, y, y.numel(), SPLITS=SPLITS, COMBINE_BLOCK=64
        )
        return y

Safety
    The workspace is a new tensor with one row per split, so no two programs write one element and
    no atomics are needed: results repeat bit for bit. Blocks keep their masks. Refused unless the
    output is allocated uninitialised in the entry, the loop carries exactly one sum, maximum or
    minimum that starts at its neutral element, and what follows the loop is linear in it.

Evidence
    This rule on an H200, column sum of 16384 x 8192 fp32, whole entry, medians of 15: 1 008 us
    as found and 264 us with tiles of columns in one run; with tiles and 8 or 16 splits 150 us in a
    second and 151 to 160 us in a third.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod

from search_engine.domain.candidate import Assignment, Numerics, Rewrite
from search_engine.rules._accumulator import Accumulator, find_accumulator
from search_engine.rules._base import Patch, Subject
from search_engine.rules._launch import Launch, add_constant, add_size, find_launch
from search_engine.rules._syntax import (
    fresh_name,
    language_alias,
    triton_alias,
)

_BLOCK = 64
_LEAST_ITERATIONS = 8
_ENOUGH = 4  # programs for each processor


@dataclass(frozen=True, slots=True)
class _Output:
    """The tensor that holds the results: kernel parameter, name in the entry, allocation."""

    parameter: str
    name: str
    torch: str


@dataclass(frozen=True, slots=True)
class _Names:
    """New names: splits, workspace in the kernel and in the entry, results, kernel, its block.

    The second kernel has a block name of its own, since configurations are set by name.
    """

    splits: str
    pointer: str
    workspace: str
    outputs: str
    combine: str
    block: str


class SplitLongReduction:
    """A second grid axis for the long loop, and a second kernel to combine."""

    name = "split-long-reduction"
    numerics = Numerics.REASSOCIATES

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite with ``SPLITS`` as its configuration."""
        launch, tl = find_launch(subject), language_alias(subject.tree)
        if launch is None or tl is None or triton_alias(subject.tree) is None:
            return ()
        found = find_accumulator(subject.kernel_node, tl)
        if found is None or len(launch.grid.elts) > 2:
            return ()
        output = _output(subject, launch, found)
        splits = _splits(subject, launch, found)
        if output is None or not splits:
            return ()
        return (_rewrite(self.name, subject, launch, found, output, splits),)


def _output(subject: Subject, launch: Launch, found: Accumulator) -> _Output | None:
    """The output, if it is new uninitialised memory that only this kernel writes."""
    passed = launch.arguments.get(found.output)
    if not isinstance(passed, ast.Name) or launch.statement not in subject.entry_node.body:
        return None
    value = launch.host.single_binding(passed.id)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    module = next(
        (
            item.asname or item.name
            for node in subject.tree.body
            if isinstance(node, ast.Import)
            for item in node.names
            if item.name == "torch"
        ),
        None,
    )
    if module is None or value.func.attr not in ("empty", "empty_like", "new_empty"):
        return None
    return _Output(found.output, passed.id, module)


def _splits(subject: Subject, launch: Launch, found: Accumulator) -> tuple[int, ...]:
    """Numbers of splits worth trying: they fill the device and leave each split some blocks."""
    counts = [launch.programs(axis) for axis in range(len(launch.grid.elts))]
    stop, step = launch.integer(found.stop), 1
    if found.step is not None:
        step = launch.integer(found.step) or 0
    known = [count for count in counts if count is not None]
    if len(known) != len(counts) or stop is None or step == 0:
        return ()
    programs, iterations = prod(known), -(-stop // step)
    wanted = _ENOUGH * subject.target.processors
    if programs == 0 or programs >= wanted or iterations < _LEAST_ITERATIONS:
        return ()
    middle = 1 << max(1, (wanted // programs).bit_length())
    tried = (middle, middle * 2, middle // 2, middle * 4)
    return tuple(count for count in tried if 2 <= count <= min(iterations, 1024))


def _rewrite(
    rule: str,
    subject: Subject,
    launch: Launch,
    found: Accumulator,
    output: _Output,
    splits: tuple[int, ...],
) -> Rewrite:
    patch, tl = Patch(subject.text), language_alias(subject.tree) or "tl"
    names = _Names(
        fresh_name(subject, "SPLITS"),
        fresh_name(subject, "partial_ptr"),
        fresh_name(subject, "partial"),
        fresh_name(subject, "n_outputs"),
        fresh_name(subject, f"{subject.kernel_node.name}_combine"),
        fresh_name(subject, "COMBINE_BLOCK"),
    )
    axis = len(launch.grid.elts)
    _share_loop(patch, found, f"{tl}.program_id({axis})", names.splits)
    _write_partial(patch, subject, found, names, f"{tl}.program_id({axis}).to({tl}.int64)")
    _pass_workspace(patch, subject, launch, found, output, names)
    _add_combine(patch, subject, found, tl, names)
    _edit_entry(patch, launch, found, output, names, splits[0], triton_alias(subject.tree))
    title = "split the long reduction over more programs"
    configurations = tuple((Assignment(names.splits, str(count)),) for count in splits)
    return Rewrite(rule, title, patch.edits, Numerics.REASSOCIATES, configurations)


def _share_loop(patch: Patch, found: Accumulator, split: str, splits: str) -> None:
    """Start at the split's own first block and step over those of the others."""
    assert isinstance(found.loop.iter, ast.Call)
    bounds = found.loop.iter.args
    start, end = patch.span(bounds[0])[0], patch.span(bounds[-1])[1]
    first, step = split, splits
    if found.step is not None:
        first, step = f"{split} * {found.step}", f"{splits} * {found.step}"
    patch.replace_range(start, end, f"{first}, {found.stop}, {step}")


def _write_partial(
    patch: Patch, subject: Subject, found: Accumulator, names: _Names, split: str
) -> None:
    """The output pointer becomes the workspace's; the store goes to the split's own row."""
    address = found.store.args[0]
    while isinstance(address, ast.BinOp):
        address = address.left
    for node in ast.walk(subject.kernel_node):
        if isinstance(node, ast.Name) and node.id == found.output:
            own_row = f"{names.pointer} + {split} * {names.outputs}"
            patch.replace(node, own_row if node is address else names.pointer)
        elif isinstance(node, ast.arg) and node.arg == found.output:
            start = patch.span(node)[0]
            patch.replace_range(start, start + len(found.output.encode()), names.pointer)


def _pass_workspace(
    patch: Patch,
    subject: Subject,
    launch: Launch,
    found: Accumulator,
    output: _Output,
    names: _Names,
) -> None:
    for keyword in launch.call.keywords:
        if keyword.arg == found.output:
            start = patch.span(keyword)[0]
            patch.replace_range(start, start + len(found.output.encode()), names.pointer)
    patch.replace(launch.arguments[found.output], names.workspace)
    # Insertions at one place appear in reverse order.
    add_constant(patch, subject, launch, names.splits, names.splits, "1")
    add_size(patch, subject, launch, names.outputs, f"{output.name}.numel()")


def _add_combine(
    patch: Patch, subject: Subject, found: Accumulator, tl: str, names: _Names
) -> None:
    kernel = subject.kernel_node
    across = {"sum": "sum", "maximum": "max", "minimum": "min"}[found.combine]
    decorator = patch.source(kernel.decorator_list[0])
    end = patch.span(kernel)[1]
    lines = [
        "",
        "",
        "",
        f"@{decorator}",
        f"def {names.combine}(",
        f"    {names.pointer}, out_ptr, {names.outputs}, "
        f"{names.splits}: {tl}.constexpr, {names.block}: {tl}.constexpr",
        "):",
        f"    offsets = {tl}.program_id(0) * {names.block} + {tl}.arange(0, {names.block})",
        f"    rows = {tl}.arange(0, {names.splits}).to({tl}.int64)[:, None] * {names.outputs}",
        f"    mask = offsets < {names.outputs}",
        f"    parts = {tl}.load({names.pointer} + rows + offsets[None, :], mask=mask[None, :])",
        f"    total = {tl}.{across}(parts, axis=0)",
        f"    {tl}.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)",
    ]
    indent = " " * kernel.col_offset
    patch.replace_range(end, end, "\n".join(indent + line if line else "" for line in lines))


def _edit_entry(
    patch: Patch,
    launch: Launch,
    found: Accumulator,
    output: _Output,
    names: _Names,
    splits: int,
    triton: str | None,
) -> None:
    constant = f"{names.splits} = {splits}"
    workspace = (
        f"{names.workspace} = {output.torch}.empty(({names.splits}, {output.name}.numel()), "
        f"dtype={output.torch}.{found.dtype}, device={output.name}.device)"
    )
    if launch.grid_statement.lineno < launch.statement.lineno:
        patch.insert_before(launch.grid_statement, [constant])
        patch.insert_before(launch.statement, [workspace])
    else:
        patch.insert_before(launch.statement, [constant, workspace])
    elements = [patch.source(item) for item in launch.grid.elts]
    patch.replace(launch.grid, f"({', '.join([*elements, names.splits])})")
    count = f"{output.name}.numel()"
    grid = f'lambda meta: ({triton}.cdiv({count}, meta["{names.block}"]),)'
    arguments = f"{names.workspace}, {output.name}, {count}, {names.splits}={names.splits}"
    call = f"{names.combine}[{grid}]("
    patch.insert_after(launch.statement, [call, f"    {arguments}, {names.block}={_BLOCK}", ")"])
