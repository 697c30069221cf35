"""Workloads: how an entry gets inputs, a reference and a launch.

A workload belongs to one entry and has one or more cases. The grammar of the declaration is in
``frontends/workload.py``; recorded workloads use the JSON form of these types.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

DTYPES = (
    "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64",
    "u8", "u16", "u32", "u64", "b1", "f8e4m3", "f8e5m2",
)  # fmt: skip


class Distribution(enum.Enum):
    """How the values of a tensor are drawn; ``parameters`` of ``Values`` are given in brackets."""

    NORMAL = "normal"
    """Normal (scale, mean); the default for floats is (1, 0)."""
    UNIFORM = "uniform"
    """Uniform floats (low, high)."""
    INTEGERS = "integers"
    """Integers (low, high), both inclusive."""
    SORTED = "sorted"
    """Sorted integers (low, high), both inclusive."""
    OFFSETS = "offsets"
    """Sorted integers, the first 0, the last (N)."""
    DISTINCT = "distinct"
    """Integers below (N) without repeats."""
    PERMUTATION = "permutation"
    """A permutation of 0 to numel - 1."""
    BERNOULLI = "bernoulli"
    """Booleans, true with probability (p)."""
    ZEROS = "zeros"
    ARANGE = "arange"
    RECORDED = "recorded"
    """The values saved by the recorder, in the file named by ``Values.file``."""


class Role(enum.Enum):
    """What the kernel does with a tensor argument."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"


@dataclass(frozen=True, slots=True)
class Extent:
    """One dimension. Extents of one name, and unnamed extents of one size, vary together."""

    size: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """A distribution with its parameters."""

    distribution: Distribution
    parameters: tuple[float, ...] = ()
    file: str | None = None


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor argument. Strides are in elements; None means contiguous.

    ``offset`` counts the elements that lie before the tensor in its storage.
    """

    name: str
    dtype: str
    extents: tuple[Extent, ...]
    values: Values
    strides: tuple[int, ...] | None = None
    role: Role = Role.INPUT
    offset: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(extent.size for extent in self.extents)


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A scalar argument: a Python literal, or an expression over extent names (``rows``)."""

    name: str
    expression: str


Argument: TypeAlias = TensorArgument | ScalarArgument


@dataclass(frozen=True, slots=True)
class Case:
    """One set of arguments. ``line`` is 0-based; None for recorded cases."""

    arguments: tuple[Argument, ...]
    weight: float = 1.0
    line: int | None = None
    grid: str | None = None
    block: str | None = None
    shared: str | None = None
    template: str | None = None

    @property
    def label(self) -> str:
        """The arguments as a person would write them: ``x=f32[4096,8192] eps=1e-6``."""
        return " ".join(_argument_text(argument) for argument in self.arguments)


@dataclass(frozen=True, slots=True)
class Reference:
    """A trusted Python expression; ``output`` names a buffer, None means the return value."""

    expression: str
    output: str | None
    line: int | None


class WorkloadSource(enum.Enum):
    """Where a workload came from; always shown."""

    DECLARED = "declared"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Workload:
    """Inputs, reference and contract of one entry."""

    entry: str
    source: WorkloadSource
    cases: tuple[Case, ...]
    references: tuple[Reference, ...] = ()
    setup: tuple[str, ...] = ()
    call: str | None = None
    gradients: tuple[str, ...] = ()
    inplace: tuple[str, ...] = ()
    bytes_expression: str | None = None
    flops_expression: str | None = None
    tolerance_factor: float = 2.0
    allow: tuple[str, ...] = ()
    """Of ``lowers-precision`` and ``any-tie``."""
    deterministic: bool = False

    @property
    def timed(self) -> tuple[int, ...]:
        """Indices of the cases that are timed: those of weight zero are only checked.

        If no case has a weight, all are timed.
        """
        weighted = tuple(i for i, case in enumerate(self.cases) if case.weight > 0)
        return weighted or tuple(range(len(self.cases)))


@dataclass(frozen=True, slots=True)
class WorkloadProblem:
    """A mistake in a declaration: byte span, KL801 (syntax) or KL802 (mismatch), and the remedy."""

    start: int
    end: int
    line: int
    code: str
    message: str


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, ScalarArgument):
        return f"{argument.name}={argument.expression}"
    return f"{argument.name}={argument.dtype}[{','.join(str(n) for n in argument.shape)}]"
