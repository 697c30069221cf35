"""Subjects made by hand for the tests of checks that read launches and traces."""

from __future__ import annotations

from search_engine.domain.access import LaunchTrace, LineAccess, LoopTrace, OutOfBounds
from search_engine.domain.code import (
    ArgumentKind,
    DotCode,
    KernelArgument,
    LaunchCode,
    MatrixPath,
    PipelinedLoop,
)
from search_engine.domain.facts import LaunchFacts
from search_engine.domain.finding import Finding
from search_engine.domain.kernel import OperationKind
from search_engine.domain.workload import Workload
from search_engine.findings._base import Check, Subject
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.targets.nvidia_sm90 import TARGET

HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

ROW_KERNEL = (
    HEADER
    + """@triton.jit
def row_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        total += tl.sum(x, axis=0)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        y = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        tl.store(out_ptr + row * n + cols, y / total, mask=cols < n)


# kernel-lsp: workload x=f32[64,65536]
def rows(x):
    out = torch.empty_like(x)
    row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out
"""
)
"""A kernel with two loops over its row."""

FLAT_KERNEL = (
    HEADER
    + """@triton.jit
def flat_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n)


# kernel-lsp: workload x=f32[1000]
def flat(x):
    out = torch.empty_like(x)
    flat_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
)
"""A kernel without a loop."""


def line_of(text: str, part: str) -> int:
    """0-based line of the first occurrence."""
    return text[: text.index(part)].count("\n")


def last_line_of(text: str, part: str) -> int:
    """0-based line of the last occurrence."""
    return text[: text.rindex(part)].count("\n")


def make_subject(
    text: str,
    traces: tuple[LaunchTrace, ...] = (),
    launches: tuple[LaunchCode, ...] = (),
) -> Subject:
    """The first unit of a text, for sm_90, with the workload that its entry declares."""
    module = parse_module(text, "kernels.py")
    unit = module.units[0]
    workload = _workload(text, unit.entry.qualified_name if unit.entry else None)
    case = workload.cases[0] if workload is not None else None
    return Subject(module, unit, TARGET, workload, case, launches, traces)


def run(check: Check, subject: Subject) -> list[Finding]:
    """The findings of one check."""
    return list(check.findings(subject))


def load(
    line: int,
    argument: str = "x_ptr",
    *,
    executions: int,
    lanes: int,
    tensor_bytes: int,
    active: int | None = None,
    empty: int = 0,
    distinct: int | None = None,
    element_bytes: int = 4,
    kind: OperationKind = OperationKind.LOAD,
    most_same_address: int = 0,
    outside: OutOfBounds | None = None,
) -> LineAccess:
    """An access; ``lanes`` and ``active`` are totals, all lanes are active unless said."""
    active = lanes if active is None else active
    moved = active * element_bytes
    return LineAccess(
        line=line,
        kind=kind,
        argument=argument,
        element_bytes=element_bytes,
        executions=executions,
        empty_executions=empty,
        lanes=lanes,
        active_lanes=active,
        bytes=moved,
        distinct_bytes=moved if distinct is None else distinct,
        sectors=moved // 32,
        least_sectors=moved // 32,
        stride_elements=1,
        tensor_bytes=tensor_bytes,
        most_same_address=most_same_address,
        out_of_bounds=outside,
    )


def trace(
    line: int | None,
    grid: tuple[int, int, int],
    *accesses: LineAccess,
    sampled: int = 24,
    loops: tuple[LoopTrace, ...] = (),
    times: int = 1,
) -> LaunchTrace:
    """One launch."""
    programs = grid[0] * grid[1] * grid[2]
    return LaunchTrace("kernel", line, times, grid, min(sampled, programs), accesses, loops)


def code(
    line: int | None,
    grid: tuple[int, int, int],
    *,
    registers: int = 32,
    shared: int = 0,
    warps: int = 4,
    loops: tuple[PipelinedLoop, ...] = (),
    dots: tuple[DotCode, ...] = (),
    values: dict[str, int] | None = None,
    constants: dict[str, str] | None = None,
) -> LaunchCode:
    """One compiled launch; ``values`` are those of its integer arguments."""
    facts = LaunchFacts(
        "kernel", grid, warps, 3, tuple((constants or {}).items()), registers, 0, shared,
        "hash", 0, 100, 16,
    )  # fmt: skip
    arguments = tuple(
        KernelArgument(name, ArgumentKind.INTEGER, "i32", value % 16 == 0, str(value))
        for name, value in (values or {}).items()
    )
    return LaunchCode(facts, line, arguments, (), dots, (), loops)


def dot(line: int, tile: tuple[int, int, int]) -> DotCode:
    """A product of 16-bit tiles on the matrix unit."""
    return DotCode(line, ("bf16", "bf16"), "f32", MatrixPath.TENSOR, tile, None, 1)


def _workload(text: str, entry: str | None) -> Workload | None:
    found, _ = parse_workloads(parse_module(text, "kernels.py"))
    return next((item for item in found if item.entry == entry), None)
