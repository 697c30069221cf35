"""Lanes whose stride is a constant of the kernel, so that no launch is needed to know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.domain.code import ArgumentKind, LaunchCode
from search_engine.findings._base import Subject
from search_engine.findings._code import (
    GLOBAL_ACCESSES,
    budget,
    bytes_of,
    weight_of,
)
from search_engine.findings._source import function_of
from search_engine.findings._vectors import constant_values, element_bytes
from search_engine.rules._index import Access, KernelFlow, stride_of

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
    kernel = function_of(subject, subject.unit.kernel)
    if kernel is None:
        return
    found = [
        (access, stride)
        for access in KernelFlow(kernel).accesses
        if access.kind != "atomic" and (stride := _stride(access, launch)) is not None
    ]
    for access, stride in found:
        size = _element_bytes(access, launch)
        # Fields of one structure, read by several lines, share their sectors.
        fields = sum(other.base == access.base and s == stride for other, s in found)
        used = max(size * min(fields, stride), _SECTOR // stride)
        if size and access.base is not None and used < _SECTOR:
            line = access.call.lineno - 1
            cost = _cost(subject, launch, access, _SECTOR / used)
            yield ConstantStride(line, access.base, access.kind == "store", stride, used, cost)


def _stride(access: Access, launch: LaunchCode) -> int | None:
    """Of the axis along which lanes are closest; None unless it is known for every axis."""
    if access.pointer is None:
        return None
    constants = constant_values(launch)

    def integer(name: str) -> int | None:
        value = constants.get(name)
        return value if isinstance(value, int) else None

    lanes = {atom for atom in access.depends if atom.startswith("lane:")}
    strides = [stride_of(access.pointer, atom, integer) for atom in sorted(lanes)]
    known = [abs(stride) for stride in strides if stride is not None]
    if not known or len(known) != len(strides) or min(known) < 2:
        return None
    return min(known)


def _element_bytes(access: Access, launch: LaunchCode) -> int:
    for argument in launch.arguments:
        if argument.name == access.base and argument.kind is ArgumentKind.POINTER:
            return element_bytes(argument.dtype)
    return 0


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
