"""What the programs of a launch ask of memory, by source line, at the workload's real sizes.

Counted by running a sample of the programs on the CPU interpreter with addresses alone: no tensor
is allocated and nothing is read or written. So it tells where accesses go, how many lanes are
masked off and how often loops run; not how long anything takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.kernel import OperationKind


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """Active lanes outside every tensor; one example with its program and byte distance."""

    lanes: int
    argument: str | None
    """The parameter whose tensor is nearest."""
    program: tuple[int, int, int]
    bytes_past: int
    """Bytes past the end of that tensor (negative: before its start) of the farthest lane."""


@dataclass(frozen=True, slots=True)
class LineAccess:
    """One load, store or atomic of one line, summed over the sampled programs.

    ``sectors`` are distinct 32-byte sectors per group of 32 neighbouring lanes along the axis with
    the smallest address step; ``least_sectors`` is what the same active bytes need when packed.
    ``stride_elements`` is the most frequent address step between neighbouring lanes along that
    axis, in elements; None for scalars. ``distinct_bytes`` counts each byte once over all sampled
    programs, ``bytes`` every access.
    """

    line: int
    kind: OperationKind
    argument: str | None
    """Kernel parameter the pointer comes from; None if it lies in no tensor."""
    element_bytes: int
    executions: int
    empty_executions: int
    """Executions in which no lane was active."""
    lanes: int
    active_lanes: int
    bytes: int
    distinct_bytes: int
    sectors: int
    least_sectors: int
    stride_elements: int | None
    tensor_bytes: int
    """Size of that argument's tensor, 0 if unknown."""
    most_same_address: int
    """Atomics: most accesses of one address over all sampled programs."""
    out_of_bounds: OutOfBounds | None = None


@dataclass(frozen=True, slots=True)
class LoopTrace:
    """Iterations of the loop whose header stands on ``line``, a program: mean, most."""

    line: int
    mean_iterations: float
    most_iterations: int


@dataclass(frozen=True, slots=True)
class LaunchTrace:
    """One launch: its grid, which programs were sampled, and their accesses."""

    kernel: str
    line: int | None
    """Of the launch site."""
    in_host_loop: int
    """How often the entry launches from this site in one call."""
    grid: tuple[int, int, int]
    sampled: int
    accesses: tuple[LineAccess, ...]
    loops: tuple[LoopTrace, ...]
    notes: tuple[str, ...] = ()
    """What makes the counts uncertain, a sentence each: values of a tensor that steer a loop."""

    @property
    def programs(self) -> int:
        """Programs of the whole grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]
