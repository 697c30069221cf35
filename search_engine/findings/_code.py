"""Coarse cost of machine code: what share of a launch some of its instructions are.

A program's instructions, bytes and matrix products are weighed by how often their loops run and
held against the target's rates. The three overlap, so the total lies between their maximum and
their sum. Good enough to order findings and to drop those that cannot matter; never shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from search_engine.domain.code import (
    DotCode,
    InstructionCount,
    LaunchCode,
    LineCode,
    MachineOperation,
    MatrixPath,
)
from search_engine.domain.finding import Finding
from search_engine.domain.kernel import Loop
from search_engine.domain.target import Target
from search_engine.findings._base import Subject
from search_engine.findings._estimate import MEMORY_LATENCY_S
from search_engine.findings._trace import innermost_loop
from search_engine.predict.occupancy import Occupancy, occupancy

GLOBAL_LOADS = (MachineOperation.GLOBAL_LOAD, MachineOperation.ASYNC_COPY)
GLOBAL_ACCESSES = (*GLOBAL_LOADS, MachineOperation.GLOBAL_STORE)
SPILLS = (MachineOperation.SPILL_LOAD, MachineOperation.SPILL_STORE)
LOCAL_ACCESSES = (MachineOperation.LOCAL_LOAD, MachineOperation.LOCAL_STORE)

_USUAL_ITERATIONS = 16.0
"""Of a loop whose length is not known: a row of 16 blocks, a product with K = 1024."""
_CACHED = 2.5
"""Kernels with dots read most of their bytes from the L2 cache, which is that much faster."""
_NORM = 3.0
"""Exponent by which resources that overlap are added: near the largest of them."""

_SLOTS = {
    MachineOperation.SPECIAL: 8.0, MachineOperation.CONVERSION: 2.0, MachineOperation.SHUFFLE: 2.0,
    MachineOperation.BARRIER: 8.0, MachineOperation.CONSTANT_LOAD: 4.0,
    MachineOperation.INTEGER_DIVISION: 8.0, MachineOperation.ATOMIC: 8.0,
    MachineOperation.ATOMIC_CAS: 16.0, MachineOperation.MATRIX: 0.0,
}  # fmt: skip
"""Issue slots of one instruction, 1 for what runs at the full fp32 rate. Per processor and cycle:
128 lanes of fp32, 16 special functions, 32 shuffles (CUDA programming guide, arithmetic
instructions)."""
_MEMORY_SLOTS = 4.0
"""A load or store of up to 4 bytes a lane: 32 lanes a cycle and processor."""
_MEMORY = (
    *GLOBAL_ACCESSES, *SPILLS, *LOCAL_ACCESSES, MachineOperation.SHARED_LOAD,
    MachineOperation.SHARED_STORE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds that one program takes on one processor's share of the target, by resource."""

    issue: float
    memory: float
    matrix: float

    @property
    def total(self) -> float:
        """All three, overlapping."""
        parts = (self.issue, self.memory, self.matrix)
        return sum(part**_NORM for part in parts) ** (1 / _NORM)

    @property
    def memory_share(self) -> float:
        """How far memory is what limits the launch, 0 to 1."""
        return self.memory / self.total if self.total else 0.0

    def saving(self, issue: float = 0.0, memory: float = 0.0, matrix: float = 0.0) -> float:
        """Share of the total that goes if so many seconds of each resource go."""
        if not self.total:
            return 0.0
        less = replace(
            self,
            issue=max(0.0, self.issue - issue),
            memory=max(0.0, self.memory - memory),
            matrix=max(0.0, self.matrix - matrix),
        )
        return 1 - less.total / self.total


def budget(subject: Subject, launch: LaunchCode) -> Budget:
    """The launch as it is compiled."""
    target, lanes = subject.target, launch.facts.warps * subject.target.warp_size
    slots = bytes_moved = 0.0
    for code in launch.lines:
        weight = weight_of(subject, code)
        slots += weight * sum(slots_of(item, target) for item in code.counts)
        bytes_moved += weight * bytes_of(code, *GLOBAL_ACCESSES)
    cached = _CACHED if launch.dots else 1.0
    return Budget(
        issue_seconds(target, slots * lanes),
        bytes_moved * lanes / (cached * target.memory_bandwidth.value),
        sum(dot_seconds(subject, dot) for dot in launch.dots),
    )


def issue_seconds(target: Target, lane_slots: float) -> float:
    """Of issue slots summed over lanes; each multiply-add counts as two operations of the rate."""
    return lane_slots / (target.vector_rate.value / 2)


def dot_seconds(subject: Subject, dot: DotCode) -> float:
    """Of one program's executions of a dot on the matrix unit; on the FMA pipe it is issue."""
    if dot.path is MatrixPath.FMA:
        return 0.0
    rate = subject.target.matrix_rate.value * rate_factor(subject.target, dot.operand_types[0])
    return loop_weight(subject, dot.line, dot.loop_depth) * dot_operations(dot) / rate


def dot_operations(dot: DotCode) -> float:
    """Multiplications and additions of one execution."""
    return 2.0 * math.prod(dot.tile)


def rate_factor(target: Target, element: str) -> float:
    """Rate of the matrix unit for an operand type over that for 16 bits.

    fp32 operands are rounded to tf32 on NVIDIA's; AMD's takes them as they are.
    """
    if element.startswith(("f8", "fp8", "i8", "u8", "e4m3", "e5m2")):
        return 2.0
    if element in ("f32", "fp32", "tf32"):
        return 0.5 if target.vendor == "nvidia" else 0.125
    return 1.0


def slots_of(item: InstructionCount, target: Target) -> float:
    """Issue slots a lane of instructions of one class."""
    if item.operation is MachineOperation.FP64:
        return item.count / target.fp64_ratio
    if item.operation in _MEMORY:
        return item.count * _MEMORY_SLOTS * max(1.0, item.width_bytes / 4)
    return item.count * _SLOTS.get(item.operation, 1.0)


def bytes_of(code: LineCode, *operations: MachineOperation) -> int:
    """Bytes a thread that the line's instructions of these classes move in one execution."""
    return sum(
        item.count * item.width_bytes for item in code.counts if item.operation in operations
    )


def weight_of(subject: Subject, code: LineCode) -> float:
    """Executions of a line's instructions in one program."""
    return loop_weight(subject, code.line, code.loop_depth)


def loop_weight(subject: Subject, line: int | None, depth: int) -> float:
    """Executions at a loop depth; iterations are those of the trace where there is one.

    Code at depth 0 inside a loop of the text was unrolled or moved out of it: it runs once.
    """
    weight = 1.0
    loops = list(_loops_around(subject, line)) if line is not None else []
    for index in range(depth):
        weight *= iterations_of(subject, loops[index]) if index < len(loops) else _USUAL_ITERATIONS
    return weight


def iterations_of(subject: Subject, loop: Loop) -> float:
    """Mean iterations of a loop a program; a usual number where none was traced."""
    known = [
        item.mean_iterations
        for trace in subject.traces
        for item in trace.loops
        if item.line == loop.span.line and item.mean_iterations > 0
    ]
    return max(known, default=_USUAL_ITERATIONS)


def resident(subject: Subject, launch: LaunchCode) -> Occupancy:
    """Blocks that fit on a processor at once."""
    facts = launch.facts
    return occupancy(subject.target, facts.registers, facts.shared_bytes, facts.warps)


def latency_bytes(target: Target) -> float:
    """What a processor must have asked for at any time to use its share of the bandwidth."""
    return target.memory_bandwidth.value * MEMORY_LATENCY_S / target.processors


def hottest(
    subject: Subject, launch: LaunchCode, *operations: MachineOperation
) -> Iterator[tuple[LineCode, float]]:
    """Lines with instructions of these classes, with executions times instructions, most first."""
    found = [
        (code, weight_of(subject, code) * code.count(*operations))
        for code in launch.lines
        if code.line is not None and code.count(*operations)
    ]
    yield from sorted(found, key=lambda pair: (-pair[1], pair[0].line or 0))


def one_per_line(found: Iterable[Finding]) -> list[Finding]:
    """The costliest finding of each line: launches and loop copies repeat a pattern."""
    best: dict[int, Finding] = {}
    for item in found:
        if item.line not in best or item.cost > best[item.line].cost:
            best[item.line] = item
    return sorted(best.values(), key=lambda item: item.line)


def assuming(launch: LaunchCode) -> str:
    """``, assuming BLOCK=1024``: the constants of a launch that nobody makes, or nothing."""
    if not launch.assumed:
        return ""
    numbers = [f"{name}={value}" for name, value in launch.facts.constants if value.isdigit()]
    return f", assuming {' '.join(numbers[:2])}" if numbers else ", assuming a launch"


def plural(count: float, noun: str) -> str:
    """``1 load``, ``2,080 divisions``."""
    return f"{count:,.0f} {noun}" if round(count) == 1 else f"{count:,.0f} {noun}s"


def kibibytes(byte_count: int) -> str:
    """``48 B``, ``96 KiB``, ``1.5 KiB``: on-chip sizes, which are powers of two."""
    if byte_count < 1024:
        return f"{byte_count} B"
    value = byte_count / 1024
    return f"{value:.0f} KiB" if value >= 10 or value == round(value) else f"{value:.1f} KiB"


def _loops_around(subject: Subject, line: int) -> Iterator[Loop]:
    """Loops whose body holds a line, innermost first."""
    inner = innermost_loop(subject, line)
    while inner is not None:
        yield inner
        outer = innermost_loop(subject, inner.span.line)
        inner = outer if outer is not inner else None
