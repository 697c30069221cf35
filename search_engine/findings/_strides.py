"""Lanes whose stride is a constant of the kernel, so that no launch is needed to know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.domain.code import LaunchCode
from search_engine.findings._accesses import Access
from search_engine.findings._base import Subject
from search_engine.findings._code import GLOBAL_ACCESSES, budget, bytes_of, weight_of
from search_engine.findings._vectors import known_accesses

_SECTOR = 32
_CACHE_RATE = 2.0


@dataclass(frozen=True, slots=True)
class ConstantStride:
    """One access; ``stride`` in elements, ``used_bytes`` of each 32-byte sector."""

    line: int
    argument: str
    store: bool
    stride: int
    used_bytes: int
    cost: float


def constant_strides(subject: Subject, launch: LaunchCode) -> Iterator[ConstantStride]:
    """Accesses of blocks whose lanes are two elements or more apart, whatever is passed."""
    found = [
        (access, stride)
        for access in known_accesses(subject, launch)
        if (stride := _stride(access)) is not None
    ]
    for access, stride in found:
        size, base = access.pointer.element_bytes, access.pointer.base
        # Fields of one structure, read by several lines, share their sectors.
        fields = sum(other.pointer.base == base and s == stride for other, s in found)
        used = max(size * min(fields, stride), _SECTOR // stride)
        if base and used < _SECTOR:
            cost = _cost(subject, launch, access, _SECTOR / used)
            line = access.call.lineno - 1
            yield ConstantStride(line, base, access.store, stride, used, cost)


def _stride(access: Access) -> int | None:
    """Of the axis along which lanes are closest; None unless it is known for every axis."""
    pairs = zip(access.pointer.sizes, access.pointer.axes, strict=True)
    steps = [axis.step for size, axis in pairs if size > 1]
    known = [abs(step) for step in steps if step is not None]
    if not known or len(known) != len(steps) or min(known) < 2:
        return None
    return min(known)


def _cost(subject: Subject, launch: LaunchCode, access: Access, waste: float) -> float:
    """Share of the launch that goes if the line's sectors were used in full."""
    moved = {True: 0.0, False: 0.0}
    for code in launch.lines:
        here = code.line == access.call.lineno - 1
        moved[here] += weight_of(subject, code) * bytes_of(code, *GLOBAL_ACCESSES)
    everything = moved[True] + moved[False]
    now = max(everything, (waste * moved[True] + moved[False]) / _CACHE_RATE)
    if not everything:
        return 0.0
    return budget(subject, launch).memory_share * (1 - everything / now)
