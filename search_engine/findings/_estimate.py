"""Coarse times of a launch on a target, to judge what share of it a pattern can cost.

Datasheet rates and three constants, each within a factor of two on the cards of the registry. Good
enough to tell a pattern that matters from one that hides behind memory or behind the launch itself;
never shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import DotCode, LaunchCode, MatrixPath
from search_engine.domain.target import Target
from search_engine.findings._base import Subject
from search_engine.findings._trace import (
    ArgumentReads,
    innermost_loop,
    iterations,
    loads_by_loop,
    pipelined,
    reads,
    scale,
)
from search_engine.predict.occupancy import occupancy

MEMORY_LATENCY_S = 0.6e-6
"""From a load to the first use of what it read, past both caches."""
LAUNCH_S = 4e-6
"""Start and end of a launch on the device: what a kernel without work takes."""
PROGRAM_S = 1.2e-6
"""Life of a program that loads once, computes and stores: 1.05 million programs of a rotary
embedding, 16 resident a processor, took 637 us on an H200."""
CACHE_SHARE = 0.6
"""Of the L2 cache that keeps data until it is read again."""

_SINGLE_PROCESSOR = 2.0
"""One processor alone draws about twice its even share of the memory bandwidth."""
_CACHE_RATE = 2.0
"""L2 bandwidth over memory bandwidth: 32x32 tiles of a 4096 cubed product, 8.6 GB through the
cache, took 1 006 us on an H200."""
_PRIVATE_CACHE_BYTES = 96 * 1024
"""What a processor's own cache keeps beside the shared memory in use."""
_MATRIX_EFFICIENCY = 0.7
"""Of the datasheet rate, reached by good generated products."""
_BYTES_OF_TYPE = {"fp8": 1, "f8": 1, "i8": 1, "u8": 1, "fp32": 4, "f32": 4, "tf32": 4}


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that a launch needs at least, by what limits it."""

    memory: float
    cache: float
    compute: float

    @property
    def total(self) -> float:
        """The limit that binds."""
        return max(self.memory, self.cache, self.compute)


def program_seconds(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> float:
    """Life of one program that has a processor to itself."""
    target = subject.target
    moved = sum(item.bytes for item in trace.accesses) / trace.sampled
    rate = _SINGLE_PROCESSOR * target.memory_bandwidth.value / target.processors
    compute = _operation_seconds(subject, trace, code) * target.processors / trace.programs
    return max(moved / rate, chain_seconds(subject, trace, code), compute)


def chain_seconds(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> float:
    """What the loops of one program wait for loads, one iteration after the other."""
    return sum(
        loop_chain_seconds(iterations(loads, trace), code, line)
        for line, loads in loads_by_loop(subject, trace).items()
    )


def loop_chain_seconds(count: float, code: LaunchCode | None, line: int) -> float:
    """The same for ``count`` iterations of one loop; prefetched loads overlap by their stages."""
    loop = pipelined(code, line)
    ahead = loop.stages - 1 if loop is not None and loop.prefetched else 1
    return count * MEMORY_LATENCY_S / max(1, ahead)


def waiting_seconds(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> float:
    """What the whole launch waits for loads in loops: programs that do not fit at once queue.

    Row sum of 16384 x 8192 in blocks of 128: 300 us, 310 measured on an H200. Three-pass layer norm
    of the same size in blocks of 256: 446 us, 455 measured.
    """
    rounds = trace.programs / resident_programs(subject.target, code)
    return chain_seconds(subject, trace, code) * max(1.0, rounds)


def launch_times(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> Times:
    """Times of the whole launch as it reads and writes now."""
    return times_without(subject, trace, code, None)


def times_without(
    subject: Subject, trace: LaunchTrace, code: LaunchCode | None, once: str | None
) -> Times:
    """The same if the parameter ``once`` were read a single time."""
    target = subject.target
    memory = cached = 0.0
    for item in reads(subject, trace):
        if item.argument == once:
            memory, cached = memory + item.tensor_bytes, cached + item.tensor_bytes
        else:
            memory += _from_memory(target, trace, code, item)
            cached += 0.0 if item.tensor_bytes <= _PRIVATE_CACHE_BYTES else item.fetched
    known = {item.argument for item in reads(subject, trace)}
    others = [
        item for item in trace.accesses if item.argument not in known or item.kind.value != "load"
    ]
    written = scale(trace) * sum(item.bytes for item in others)
    stored = scale(trace) * sum(max(item.bytes, 32 * item.sectors) for item in others)
    bandwidth = target.memory_bandwidth.value
    return Times(
        (memory + written) / bandwidth,
        (cached + stored) / (_CACHE_RATE * bandwidth),
        _operation_seconds(subject, trace, code),
    )


def resident_programs(target: Target, code: LaunchCode | None) -> int:
    """Programs of a launch that run at once; two a processor where its code is not known."""
    if code is None:
        return 2 * target.processors
    facts = code.facts
    blocks = occupancy(target, facts.registers, facts.shared_bytes, facts.warps).blocks
    return target.processors * max(1, blocks)


def _from_memory(
    target: Target, trace: LaunchTrace, code: LaunchCode | None, item: ArgumentReads
) -> float:
    """Bytes of a parameter that come from memory; what is read again soon comes from a cache."""
    cache = CACHE_SHARE * target.l2_bytes
    if item.apart <= item.tensor_bytes or item.tensor_bytes <= cache:
        return min(item.apart, item.tensor_bytes)
    if not _private(trace, item):
        return item.tensor_bytes  # programs that run together share it through the cache
    running = min(trace.programs, resident_programs(target, code))
    held = running * _pass_bytes(trace)
    missed = max(0.0, 1 - cache / held) if held else 0.0
    return item.tensor_bytes + missed * (item.apart - item.tensor_bytes)


def _pass_bytes(trace: LaunchTrace) -> float:
    """Bytes that one program touches before it reads the first of them again."""
    largest: dict[str | None, int] = {}
    for item in trace.accesses:
        largest[item.argument] = max(largest.get(item.argument, 0), item.distinct_bytes)
    return sum(largest.values()) / trace.sampled


def _private(trace: LaunchTrace, item: ArgumentReads) -> bool:
    """True if each program reads its own part of the tensor, however often it does."""
    lines = item.accesses
    apart = all(scale(trace) * part.distinct_bytes <= 1.2 * item.tensor_bytes for part in lines)
    if trace.sampled < 2:
        return trace.programs == 1
    return apart and all(2 * part.bytes <= part.distinct_bytes * trace.sampled for part in lines)


def _operation_seconds(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> float:
    total = 0.0
    for dot in code.dots if code is not None else ():
        rate = _dot_rate(subject.target, dot)
        total += trace.programs * _executions(subject, trace, dot) * _operations(dot) / rate
    return total


def _executions(subject: Subject, trace: LaunchTrace, dot: DotCode) -> float:
    loop = innermost_loop(subject, dot.line) if dot.line is not None else None
    if loop is None:
        return 1.0
    found = [item.mean_iterations for item in trace.loops if item.line == loop.span.line]
    return found[0] if found else 1.0


def _operations(dot: DotCode) -> float:
    total = 2.0
    for extent in dot.tile:
        total *= extent
    return total


def _dot_rate(target: Target, dot: DotCode) -> float:
    if dot.path is MatrixPath.FMA:
        return _MATRIX_EFFICIENCY * target.vector_rate.value
    widths = [_width(name) for name in dot.operand_types]
    return _MATRIX_EFFICIENCY * target.matrix_rate.value * 2 / max(widths)


def _width(name: str) -> int:
    return next((size for key, size in _BYTES_OF_TYPE.items() if name.startswith(key)), 2)
