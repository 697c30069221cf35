"""What a trace says about the whole launch: loops, bytes of an argument, sizes in words."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode, PipelinedLoop
from search_engine.domain.kernel import Loop, OperationKind
from search_engine.findings._base import Subject

_SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class ArgumentReads:
    """All loads of one parameter, as an estimate for the whole launch.

    ``asked`` are the bytes of all loads. ``apart`` leaves out what loads of the same loop read of
    each other: that is in the processor's own cache. ``fetched`` is ``apart`` in sectors of 32
    bytes, which the caches deliver whole.
    """

    argument: str
    accesses: tuple[LineAccess, ...]
    """In the order of their lines."""
    asked: float
    apart: float
    fetched: float
    tensor_bytes: int

    @property
    def times(self) -> float:
        """How often each byte of the tensor is read."""
        return self.asked / self.tensor_bytes


def certain(trace: LaunchTrace) -> bool:
    """False if counts rest on values that are not known, or are of a part of the work."""
    return not trace.notes


def scale(trace: LaunchTrace) -> float:
    """Programs of the launch for each one that was sampled."""
    return trace.programs / trace.sampled


def reads(subject: Subject, trace: LaunchTrace) -> tuple[ArgumentReads, ...]:
    """Loads by parameter, where the size of the tensor is known."""
    found: dict[str, list[LineAccess]] = {}
    for item in trace.accesses:
        if item.kind is OperationKind.LOAD and item.argument and item.tensor_bytes > 0:
            found.setdefault(item.argument, []).append(item)
    return tuple(_reads(subject, trace, name, items) for name, items in found.items())


def _reads(
    subject: Subject, trace: LaunchTrace, argument: str, found: list[LineAccess]
) -> ArgumentReads:
    tensor_bytes = max(item.tensor_bytes for item in found)
    loops: dict[int | None, list[LineAccess]] = {}
    for item in found:
        loop = innermost_loop(subject, item.line)
        loops.setdefault(loop.span.line if loop is not None else None, []).append(item)
    bytes_of = [[scale(trace) * item.bytes for item in items] for items in loops.values()]
    sectors_of = [
        [scale(trace) * _SECTOR_BYTES * item.sectors for item in items] for items in loops.values()
    ]
    return ArgumentReads(
        argument,
        tuple(sorted(found, key=lambda item: item.line)),
        sum(map(sum, bytes_of)),
        sum(_together(parts, tensor_bytes) for parts in bytes_of),
        sum(_together(parts, tensor_bytes) for parts in sectors_of),
        tensor_bytes,
    )


def _together(parts: list[float], tensor_bytes: int) -> float:
    """Bytes of loads that run side by side: at most the whole tensor, or what one of them asks."""
    return min(sum(parts), max(*parts, tensor_bytes))


def innermost_loop(subject: Subject, line: int) -> Loop | None:
    """The innermost loop of the kernel or a helper whose body holds a line."""
    kernels = (subject.unit.kernel, *subject.unit.helpers)
    found = [
        loop
        for kernel in kernels
        for loop in kernel.loops
        if loop.body.line <= line <= loop.body.end_line
    ]
    return min(found, key=lambda loop: loop.body.end - loop.body.start, default=None)


def loads_by_loop(subject: Subject, trace: LaunchTrace) -> dict[int, list[LineAccess]]:
    """Loads that run inside loops, by the header line of their innermost loop."""
    found: dict[int, list[LineAccess]] = {}
    for access in trace.accesses:
        loop = innermost_loop(subject, access.line)
        if loop is not None and access.kind is OperationKind.LOAD:
            found.setdefault(loop.span.line, []).append(access)
    return found


def iterations(accesses: list[LineAccess], trace: LaunchTrace) -> float:
    """How often one program runs the most frequent of some accesses."""
    return max((item.executions for item in accesses), default=0) / trace.sampled


def pipelined(code: LaunchCode | None, line: int) -> PipelinedLoop | None:
    """What the compiler made of the loop whose header stands on a line."""
    loops = code.loops if code is not None else ()
    return next((loop for loop in loops if loop.line == line), None)


def imbalance(trace: LaunchTrace) -> float:
    """Iterations of the longest program over the mean, of the least even loop; 1 without loops."""
    return max(
        (
            loop.most_iterations / loop.mean_iterations
            for loop in trace.loops
            if loop.mean_iterations
        ),
        default=1.0,
    )


def size(byte_count: float) -> str:
    """``268 MB``, ``16.8 KB``: decimal units, three digits."""
    value, unit = float(byte_count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    digits = 0 if value >= 99.5 or unit == "B" else 1 if value >= 9.95 else 2
    return f"{value:.{digits}f} {unit}"


def times(value: float) -> str:
    """``3``, ``2.5``: as few digits as tell it."""
    return f"{value:.0f}" if value >= 9.5 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def percent(share: float) -> str:
    """``43 %``."""
    return f"{100 * share:.0f} %"
