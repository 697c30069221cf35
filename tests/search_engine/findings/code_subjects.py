"""Subjects made by hand for the tests of checks that read compiled code."""

from __future__ import annotations

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import (
    ArgumentKind,
    DotCode,
    InstructionCount,
    KernelArgument,
    LaunchCode,
    LayoutConversion,
    LineCode,
    MachineOperation,
    PipelinedLoop,
    SharedAccess,
)
from search_engine.domain.facts import LaunchFacts
from search_engine.domain.finding import Finding
from search_engine.domain.target import Target
from search_engine.findings._base import Check, Subject
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.targets.registry import target_named

HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
H100 = target_named("sm_90")
L40S = target_named("sm_89")
MI300 = target_named("gfx942")


def line_of(text: str, part: str) -> int:
    """0-based line of the first occurrence."""
    return text[: text.index(part)].count("\n")


def counts(*items: tuple[MachineOperation, int, int]) -> tuple[InstructionCount, ...]:
    """(operation, width in bytes, count) each."""
    return tuple(InstructionCount(*item) for item in items)


def at(line: int | None, *items: tuple[MachineOperation, int, int], depth: int = 0) -> LineCode:
    """Machine code of a line."""
    return LineCode(line, depth, counts(*items))


def pointer(name: str, dtype: str = "*fp32", *, aligned: bool = True) -> KernelArgument:
    """A pointer argument."""
    return KernelArgument(name, ArgumentKind.POINTER, dtype, aligned, None)


def integer(name: str, value: int | None, *, specialised: bool = True) -> KernelArgument:
    """An integer argument, as the compiler is told about it."""
    known = specialised and value is not None and value % 16 == 0
    text = None if value is None else str(value)
    return KernelArgument(name, ArgumentKind.INTEGER, "i32", known, text, specialised)


def constant(name: str, value: object) -> KernelArgument:
    """A compile-time argument."""
    return KernelArgument(name, ArgumentKind.CONSTANT, "constexpr", False, repr(value))


def launch(
    *lines: LineCode,
    arguments: tuple[KernelArgument, ...] = (),
    grid: tuple[int, int, int] = (4096, 1, 1),
    warps: int = 4,
    stages: int = 3,
    registers: int = 32,
    shared_bytes: int = 0,
    instructions: int = 200,
    dots: tuple[DotCode, ...] = (),
    conversions: tuple[LayoutConversion, ...] = (),
    loops: tuple[PipelinedLoop, ...] = (),
    shared: tuple[SharedAccess, ...] = (),
    seconds: tuple[tuple[str, float], ...] = (),
    line: int | None = None,
    assumed: bool = False,
) -> LaunchCode:
    """One compiled launch."""
    constants = tuple(
        (item.name, item.value or "") for item in arguments if item.kind is ArgumentKind.CONSTANT
    )
    facts = LaunchFacts(
        kernel="kernel",
        grid=(0, 0, 0) if assumed else grid,
        warps=warps,
        stages=stages,
        constants=constants,
        registers=registers,
        spill_bytes=0,
        shared_bytes=shared_bytes,
        binary_hash="hash",
        tensor_instructions=0,
        instructions=instructions,
        widest_load_bytes=16,
    )
    return LaunchCode(
        facts, line, arguments, lines, dots, conversions, loops, seconds, assumed, (), shared
    )  # fmt: skip


def subject(
    text: str,
    *launches: LaunchCode,
    target: Target = H100,
    traces: tuple[LaunchTrace, ...] = (),
) -> Subject:
    """The first unit of a text, with the workload that its entry declares, if any."""
    module = parse_module(text, "kernels.py")
    unit = module.units[0]
    workloads, _ = parse_workloads(module)
    entry = unit.entry.qualified_name if unit.entry else None
    workload = next((item for item in workloads if item.entry == entry), None)
    case = workload.cases[0] if workload is not None else None
    return Subject(module, unit, target, workload, case, launches, traces)


def found(check: Check, where: Subject) -> list[Finding]:
    """The findings of a check, each with a cost between 0 and 1 and a short message."""
    items = list(check.findings(where))
    for item in items:
        assert 0 <= item.cost <= 1
        assert item.code == check.code
        assert len(item.message) <= 130, item.message
        assert "\n" not in item.message
    return items
