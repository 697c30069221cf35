"""Facts about one version of a unit: what the compiler said, how it was launched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """One launch of one kernel, compiled ahead of time for a target.

    ``spill_bytes`` is the sum of spill stores and loads per thread; ``shared_bytes`` is dynamic
    shared memory per block; ``binary_hash`` is the SHA-256 of the machine code without debug
    information.
    """

    kernel: str
    grid: tuple[int, int, int]
    warps: int
    stages: int
    constants: tuple[tuple[str, str], ...]
    registers: int
    spill_bytes: int
    shared_bytes: int
    binary_hash: str
    tensor_instructions: int
    """Matrix-unit instructions in the machine code."""
    instructions: int
    widest_load_bytes: int
    """Widest global load in the machine code, in bytes a thread; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class CompileFacts:
    """All launches that one call of the entry makes, for one case and target."""

    target: str
    launches: tuple[LaunchFacts, ...]
    compile_seconds: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a unit asked for, counted by the interpreter over one call of the entry.

    ``sectors`` counts distinct 32-byte sectors per warp-sized group of neighbouring lanes.
    """

    loaded_bytes: int
    stored_bytes: int
    atomic_operations: int
    sectors: int
    programs: int
