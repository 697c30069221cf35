"""Neighbouring lanes touch addresses that lie far apart.

Cause
    Memory is read and written in sectors of 32 bytes. Where the lanes of a warp step through memory
    with a stride, each uses few bytes of its sector, and the rest is moved for nothing.

Fix
    Let `tl.arange` run along the contiguous axis, or give each program a tile, so that along the
    other axis the same elements are neighbours (`tile-strided-access`). Fields of a structure that
    are read one by one are better stored as separate arrays.

Shown when
    The traced addresses use less than half of the sectors they touch, or the lanes have a stride
    that is a constant of the kernel, and this takes an estimated 5 % of the kernel's time or more.

False positives
    Sectors that other lines or later iterations use soon come from a cache; that is counted with
    twice the memory bandwidth. Fields that several lines read together are left out, as are tables
    of up to 128 KiB. Gathered rows cannot be neighbours if the indices are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import OperationKind
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import budget, one_per_line
from search_engine.findings._launch import code_of
from search_engine.findings._strides import ConstantStride, constant_strides

_SECTOR = 32
_MOST_USED = 0.5
"""Share of the fetched bytes that is used; a stride of two is common and cheap."""
_LEAST_COST = 0.05
_TABLE_BYTES = 128 * 1024
_CACHE_RATE = 2.0
"""L2 bandwidth over memory bandwidth."""
_REGULAR = 1.15


class UncoalescedAccess:
    """Loads and stores whose lanes are strided."""

    code = "KL107"
    name = "uncoalesced-access"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line; from traced addresses, else from constant strides."""
        if subject.traces:
            yield from one_per_line(
                found for trace in subject.traces for found in self._traced(subject, trace)
            )
            return
        yield from one_per_line(
            self._finding(subject, item.line, _Waste.of_stride(item), item.cost)
            for launch in subject.launches
            for item in constant_strides(subject, launch)
            if item.used_bytes < _MOST_USED * _SECTOR and item.cost >= _LEAST_COST
        )

    def _traced(self, subject: Subject, trace: LaunchTrace) -> Iterator[Finding]:
        for access in trace.accesses:
            if access.kind is OperationKind.ATOMIC or not _wasteful(access, trace):
                continue
            cost = _cost(subject, access, trace)
            if cost >= _LEAST_COST:
                yield self._finding(subject, access.line, _Waste.of_access(access), cost)

    def _finding(self, subject: Subject, line: int, waste: _Waste, cost: float) -> Finding:
        facts: dict[str, float | int | str] = {"used_bytes": waste.used, "sector_bytes": _SECTOR}
        if waste.stride is not None:
            facts["stride_elements"] = waste.stride
        return finding(
            self,
            subject,
            subject.line_span(line),
            waste.message,
            cost,
            facts=facts,
            rule=answering(subject, "tile-strided-access"),
        )


@dataclass(frozen=True, slots=True)
class _Waste:
    """Bytes used of each sector, and the stride of the lanes in elements, if they have one."""

    argument: str | None
    store: bool
    used: int
    stride: int | None

    @classmethod
    def of_access(cls, access: LineAccess) -> _Waste:
        """From traced sectors."""
        used = max(1, round(_SECTOR * access.least_sectors / access.sectors))
        store = access.kind is OperationKind.STORE
        return cls(access.argument, store, used, _regular_stride(access))

    @classmethod
    def of_stride(cls, item: ConstantStride) -> _Waste:
        """From a stride that the kernel fixes."""
        return cls(item.argument, item.store, item.used_bytes, item.stride)

    @property
    def message(self) -> str:
        """One sentence with both numbers."""
        verb, what = ("fills", "written to") if self.store else ("uses", "fetched from")
        name = f" {what} `{self.argument}`" if self.argument else " touched"
        text = f"{verb} {self.used} of every {_SECTOR} B{name}"
        if self.stride is None:
            return f"{text}: lanes touch scattered addresses"
        return f"{text}: lanes are {abs(self.stride):,} elements apart"


def _wasteful(access: LineAccess, trace: LaunchTrace) -> bool:
    if access.sectors * _MOST_USED <= access.least_sectors or access.stride_elements is None:
        return False
    if 0 < access.tensor_bytes <= _TABLE_BYTES:
        return False
    together = [
        item
        for item in trace.accesses
        if (item.argument, item.kind, item.stride_elements, item.executions)
        == (access.argument, access.kind, access.stride_elements, access.executions)
    ]
    used = sum(item.bytes for item in together)
    return used < _MOST_USED * _SECTOR * max(item.sectors for item in together)


def _cost(subject: Subject, access: LineAccess, trace: LaunchTrace) -> float:
    """Share of the launch that goes if the access is packed."""
    now, then = _traffic(trace, None), _traffic(trace, access)
    code = code_of(subject, trace)
    if code is None or not now:
        return 1 - then / now if now else 0.0
    whole, asked = budget(subject, code), sum(item.bytes for item in trace.accesses)
    wasteful = replace(whole, memory=whole.memory * now / max(1, asked))
    return wasteful.saving(memory=whole.memory * (now - then) / max(1, asked))


def _traffic(trace: LaunchTrace, packed: LineAccess | None) -> float:
    """Bytes, or sectors through the L2 cache if those take longer, with one access packed."""
    memory = sum(item.bytes for item in trace.accesses)
    sectors = sum(item.least_sectors if item is packed else item.sectors for item in trace.accesses)
    return max(memory, _SECTOR * sectors / _CACHE_RATE)


def _regular_stride(access: LineAccess) -> int | None:
    """The stride, if it explains the sectors; gathered lanes have no stride that does."""
    stride = abs(access.stride_elements or 0)
    if stride < 2 or not access.element_bytes:
        return None
    expected = min(_SECTOR / access.element_bytes, stride)
    seen = access.sectors / access.least_sectors
    regular = expected / _REGULAR <= seen <= expected * _REGULAR
    return access.stride_elements if regular else None
