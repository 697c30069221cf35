"""What the compiler did with one launch: machine code by source line, dots, layouts, arguments.

Lines are 0-based in the text that was compiled. Code of a helper in the same text stands on the
helper's line, code of any other function on the line that calls it; line None where no line of the
text can be named. Attribution is fuzzy after scheduling: an instruction may
stand on a neighbouring statement's line, so a finding speaks of statements and loops.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from search_engine.domain.facts import LaunchFacts


class MachineOperation(enum.Enum):
    """Classes of machine instructions, the same for every vendor."""

    GLOBAL_LOAD = "global load"
    GLOBAL_STORE = "global store"
    ASYNC_COPY = "asynchronous copy"
    """Global to shared memory without registers: LDGSTS, bulk tensor loads, AMD's loads to LDS."""
    SHARED_LOAD = "shared load"
    SHARED_STORE = "shared store"
    SPILL_LOAD = "spill load"
    SPILL_STORE = "spill store"
    LOCAL_LOAD = "local load"
    """Local memory that is not a spill: an array indexed at run time."""
    LOCAL_STORE = "local store"
    CONSTANT_LOAD = "indexed constant load"
    """Constant memory at an address from a register (LDC with a register index)."""
    ATOMIC = "atomic"
    ATOMIC_CAS = "compare and swap"
    """Stands for an atomic that the target lacks; the user's own ``tl.atomic_cas`` is ATOMIC."""
    MATRIX = "matrix"
    FP32 = "fp32"
    FP64 = "fp64"
    SPECIAL = "special function"
    INTEGER_DIVISION = "integer division"
    """Counted once per quotient, also where several share one reciprocal."""
    CONVERSION = "conversion"
    SHUFFLE = "shuffle"
    BARRIER = "barrier"
    BRANCH = "branch"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """``count`` instructions of one class; ``width_bytes`` a thread for memory, else 0."""

    operation: MachineOperation
    width_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class LineCode:
    """Machine instructions of one line at one loop depth (0: outside every loop)."""

    line: int | None
    loop_depth: int
    counts: tuple[InstructionCount, ...]

    def count(self, *operations: MachineOperation) -> int:
        """Instructions of these classes."""
        return sum(item.count for item in self.counts if item.operation in operations)


class MatrixPath(enum.Enum):
    """Which unit a dot runs on."""

    TENSOR = "matrix unit"
    FMA = "FMA pipe"


@dataclass(frozen=True, slots=True)
class DotCode:
    """One dot as the compiler lowered it, from its last device-level IR (TTGIR)."""

    line: int | None
    operand_types: tuple[str, str]
    """Triton's element types of both operands: ``bf16``, ``f32``."""
    accumulator_type: str
    path: MatrixPath
    tile: tuple[int, ...]
    """M, N, K."""
    precision: str | None
    """``ieee``, ``tf32``, ``tf32x3`` for fp32 operands."""
    loop_depth: int


@dataclass(frozen=True, slots=True)
class LayoutConversion:
    """A tensor moved between layouts inside the kernel, usually through shared memory."""

    line: int | None
    bytes: int
    loop_depth: int


@dataclass(frozen=True, slots=True)
class PipelinedLoop:
    """One loop that loads from global memory, and whether the compiler prefetches its loads."""

    line: int | None
    """Of the loop's header."""
    end_line: int | None
    loads: int
    prefetched: int
    stages: int
    has_dot: bool


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """Loads or stores of shared memory on one line whose addresses could be worked out.

    ``count`` instructions of ``width_bytes`` a lane take a warp ``wavefronts`` cycles of the shared
    memory; ``least_wavefronts`` if no two lanes wanted different words of one bank.
    """

    line: int | None
    loop_depth: int
    store: bool
    width_bytes: int
    count: int
    wavefronts: int
    least_wavefronts: int


class ArgumentKind(enum.Enum):
    """What a kernel's parameter is at a launch."""

    POINTER = "pointer"
    INTEGER = "integer"
    FLOAT = "float"
    CONSTANT = "constant"
    """A ``tl.constexpr``, or a value that Triton folded in (1, None)."""
    OTHER = "other"
    """Tensor descriptors, tuples."""


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One argument of a launch as the compiler saw it.

    ``dtype`` is Triton's (``*fp32``, ``i32``); ``divisible_by_16`` is what the compiler was told
    (pointers: the address); ``value`` is the text of an integer, float or constant. ``specialised``
    is False where the decorator withholds facts (``do_not_specialize``).
    """

    name: str
    kind: ArgumentKind
    dtype: str
    divisible_by_16: bool
    value: str | None
    specialised: bool = True


@dataclass(frozen=True, slots=True)
class LaunchCode:
    """One launch of one kernel, compiled for a target, by source line.

    ``line`` is the launch site's. ``stage_seconds`` are the compiler's own stages where known
    (``ttir``, ``ttgir``, ``llir``, ``ptx``, ``cubin``), empty for a cached binary.
    """

    facts: LaunchFacts
    line: int | None
    arguments: tuple[KernelArgument, ...]
    lines: tuple[LineCode, ...]
    dots: tuple[DotCode, ...]
    conversions: tuple[LayoutConversion, ...]
    loops: tuple[PipelinedLoop, ...]
    stage_seconds: tuple[tuple[str, float], ...] = ()
    assumed: bool = False
    """True if the launch was inferred from the text and not made by a workload.

    Nothing is known of its grid then, and ``facts.grid`` is (0, 0, 0).
    """
    notes: tuple[str, ...] = ()
    """What could not be read (no disassembler) and what was assumed, a sentence each."""
    shared: tuple[SharedAccess, ...] = ()
    """Where bank conflicts can be told; empty for AMD."""
