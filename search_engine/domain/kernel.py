"""What a front end finds in source text: kernels, launches, entries and the unit that is edited.

All spans are byte offsets into the UTF-8 encoding of the text, end exclusive. Lines are 0-based.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NewType

UnitHash = NewType("UnitHash", str)
"""Hash of a unit's syntax without positions, comments or formatting."""


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open byte range ``[start, end)`` and the 0-based lines it touches."""

    start: int
    end: int
    line: int
    end_line: int

    def contains(self, other: Span) -> bool:
        """True if ``other`` lies inside this span."""
        return self.start <= other.start and other.end <= self.end


class Language(enum.Enum):
    """Kernel language of a source file."""

    TRITON = "triton"
    CUDA = "cuda"
    HIP = "hip"


class OperationKind(enum.Enum):
    """What a device-side operation does to memory or to the matrix unit."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    DOT = "dot"
    REDUCTION = "reduction"
    SCAN = "scan"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel or entry, as written."""

    name: str
    constexpr: bool
    default: str | None
    annotation: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Decorator:
    """One decorator, outermost first. ``name`` is its dotted name without arguments."""

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop inside a kernel. ``header`` is the text after ``in`` (or the while condition)."""

    target: str | None
    header: str
    span: Span
    body: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """A load, store, atomic, dot, reduction, scan or random number inside a kernel."""

    kind: OperationKind
    name: str
    text: str
    span: Span
    masked: bool
    in_loop: bool


@dataclass(frozen=True, slots=True)
class LaunchArgument:
    """One argument of a launch; ``name`` is None when it is positional."""

    name: str | None
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch site ``kernel[grid](arguments)``.

    ``callee`` is the text before the bracket, ``kernel`` its last name. ``opaque`` means that
    ``*args`` or ``**kwargs`` hide arguments.
    """

    callee: str
    kernel: str
    grid: str
    arguments: tuple[LaunchArgument, ...]
    opaque: bool
    in_loop: bool
    entry: str | None
    span: Span
    arguments_span: Span


@dataclass(frozen=True, slots=True)
class Kernel:
    """One device function. Identity in a file is ``(qualified_name, ordinal)``."""

    name: str
    qualified_name: str
    ordinal: int
    language: Language
    span: Span
    """Decorators included."""
    name_span: Span
    body: Span
    parameters: tuple[Parameter, ...]
    decorators: tuple[Decorator, ...]
    loops: tuple[Loop, ...]
    operations: tuple[Operation, ...]
    calls: tuple[str, ...]
    """Names of functions called in the body that are defined as kernels in the same file."""
    nested: bool
    conditional: bool

    @property
    def launchable(self) -> bool:
        """A device function that never stores is a helper, not a kernel to optimise."""
        stores = (OperationKind.STORE, OperationKind.ATOMIC)
        return any(operation.kind in stores for operation in self.operations)


@dataclass(frozen=True, slots=True)
class Entry:
    """A host function that launches one or more kernels."""

    name: str
    qualified_name: str
    parameters: tuple[Parameter, ...]
    span: Span
    """Decorators included."""
    body: Span
    launches: tuple[Launch, ...]
    method: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """What a candidate may change: a kernel, its helpers, and the entry that launches it."""

    kernel: Kernel
    helpers: tuple[Kernel, ...]
    entry: Entry | None
    siblings: tuple[Kernel, ...]
    """Other kernels launched by the same entry, with their helpers."""
    hash: UnitHash

    @property
    def spans(self) -> tuple[Span, ...]:
        """Everything a candidate may edit, in file order."""
        parts = [self.kernel, *self.helpers, *self.siblings]
        spans = [part.span for part in parts]
        if self.entry is not None:
            spans.append(self.entry.span)
        return tuple(sorted(spans, key=lambda span: span.start))


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A place where the text does not parse."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Module:
    """Everything a front end read from one source file."""

    path: str
    text: str
    language: Language
    kernels: tuple[Kernel, ...]
    entries: tuple[Entry, ...]
    launches: tuple[Launch, ...]
    units: tuple[Unit, ...]
    """One per launchable kernel, in file order."""
    problems: tuple[SyntaxProblem, ...]
