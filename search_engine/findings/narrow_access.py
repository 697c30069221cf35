"""Loads or stores of few bytes a thread where one of 16 bytes would do.

Cause
    A thread's elements lie next to each other, but the compiler moves them one by one: it cannot
    prove that the lanes are neighbours, or it chose a layout that spreads them. Each access moves
    fewer bytes, so more of them are needed to keep the memory busy.

Fix
    Index with `tl.arange` added last and unscaled. Where the compiler cannot see that computed
    offsets are neighbours, say so: `tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)`. If
    an argument's alignment is the cause, `alignment-lost` names it instead.

Shown when
    The machine code makes at least twice as many accesses on a line as needed, the addresses are
    neighbours (the compiler's rules say so, or the traced addresses do), and memory limits the
    kernel.

False positives
    Wider accesses help kernels with few bytes in flight most; with many warps the gain can be
    small. Lanes that are strided or gathered are no case of this, since no wide access exists; nor
    are operands of products, whose layout the matrix unit decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LineAccess
from search_engine.domain.code import LaunchCode, LineCode
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import OperationKind
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import assuming, one_per_line, plural
from search_engine.findings._vectors import (
    LOADS,
    STORES,
    Narrow,
    access_cost,
    innermost_count,
    known_accesses,
    lanes,
    narrow_accesses,
)

_LEAST_COST = 0.03
_PACKED = 1.05
"""Sectors over the fewest possible: lanes are neighbours and start at multiples of a sector."""


class NarrowAccess:
    """Narrow accesses that no argument explains."""

    code = "KL105"
    name = "narrow-access"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found for launch in subject.launches for found in self._judge(subject, launch)
        )

    def _judge(self, subject: Subject, launch: LaunchCode) -> Iterator[Finding]:
        explained = narrow_accesses(subject, launch)
        for item in (*explained, *_unproven(subject, launch)):
            cost = access_cost(subject, launch, item)
            if item.culprits or cost < _LEAST_COST or (launch.dots and item.code.loop_depth):
                continue
            noun = "store" if item.store else "load"
            yield finding(
                self,
                subject,
                subject.line_span(item.line),
                f"{plural(item.count, noun)} of {item.width} B where {item.wide_count:,} of "
                f"{item.wide} B would do{assuming(launch)}",
                cost,
                facts={"count": item.count, "width_bytes": item.width, "possible": item.wide},
            )


def _unproven(subject: Subject, launch: LaunchCode) -> Iterator[Narrow]:
    """Traced accesses to neighbours that the compiler cannot prove to be neighbours."""
    understood = {
        access.call.lineno - 1 + offset
        for access in known_accesses(subject, launch)
        for offset in range((access.call.end_lineno or access.call.lineno) - access.call.lineno + 1)
    }
    for trace in subject.traces:
        for access in trace.accesses:
            if access.line not in understood and _neighbours(access):
                yield from _narrow(subject, launch, access)


def _neighbours(access: LineAccess) -> bool:
    packed = access.sectors <= _PACKED * access.least_sectors
    return access.stride_elements == 1 and packed and access.kind is not OperationKind.ATOMIC


def _narrow(subject: Subject, launch: LaunchCode, access: LineAccess) -> Iterator[Narrow]:
    store = access.kind is OperationKind.STORE
    found = innermost_count(launch, access.line, access.line, STORES if store else LOADS)
    if found is None or not access.executions:
        return
    code, item = found
    each = access.lanes // access.executions // lanes(subject, launch) * access.element_bytes
    wide = min(16, each & -each) if each else 0
    if wide >= 2 * item.width_bytes and item.width_bytes >= access.element_bytes:
        yield _as_narrow(access, store, code, item.count, item.width_bytes, wide)


def _as_narrow(
    access: LineAccess, store: bool, code: LineCode, count: int, width: int, wide: int
) -> Narrow:
    return Narrow(access.line, store, code, count, width, wide, (), in_mask=False)
