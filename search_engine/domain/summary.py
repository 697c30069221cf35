"""What the compiler made of one kernel, in a few figures for people."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.kernel import OperationKind


@dataclass(frozen=True, slots=True)
class AccessWidth:
    """Machine accesses of one line: ``count`` instructions of ``width_bytes`` a thread.

    Matrix instructions count as kind ``DOT`` with width 0.
    """

    line: int
    """0-based in the text."""
    kind: OperationKind
    width_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """One kernel compiled for one target. Nothing here was measured.

    The figures are those of the launch with the most programs; ``launches`` counts the different
    ones that were compiled.
    """

    kernel: str
    """Qualified name."""
    target: str
    assumed: bool
    """True if the launch was inferred from the text and not made by a workload."""
    launches: int
    grid: tuple[int, int, int] | None
    """None for an assumed launch, whose grid is not known."""
    warps: int
    stages: int
    registers: int
    spill_bytes: int
    """Spill stores and loads per thread."""
    shared_bytes: int
    """A block."""
    occupancy: float
    """Resident warps over the processor's warps, from registers, shared memory and warps."""
    limiters: tuple[str, ...]
    """What binds the occupancy: ``registers``, ``shared memory``, ``warps``, ``blocks``."""
    instructions: int
    matrix_instructions: int
    accesses: tuple[AccessWidth, ...]
    """Global loads, stores and atomics, and matrix instructions, by line."""
    bytes: int | None = None
    """Bytes that the kernel must move at least for the workload's case; None if not known."""
    floor_us: float | None = None
    """Those bytes over the datasheet's bandwidth: a bound that nothing can beat, no measurement.

    None also where they fit the last-level cache and may never come from memory.
    """
