"""Sums over the accesses of one load, store or atomic of the user's text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from search_engine.domain.access import LineAccess, OutOfBounds
from search_engine.domain.kernel import OperationKind
from search_engine.worker.trace_bytes import AddressCounts, DistinctBytes
from search_engine.worker.trace_fill import Access
from search_engine.worker.trace_memory import Region, one_region
from search_engine.worker.trace_pattern import Pattern
from search_engine.worker.trace_sample import Program

_KEPT_PATTERNS = 6
_MOST_STEPS = 256
_ADDRESS_MASK = (1 << 62) - 1
"""Addresses that lie in no tensor can have any bits; those of tensors are far below."""


class Site:
    """One operation of the text on one tensor."""

    def __init__(
        self, line: int, kind: OperationKind, region: Region | None, element_bytes: int
    ) -> None:
        self._line = line
        self._kind = kind
        self._region = region
        self._bytes = element_bytes
        self._executions = self._empty = self._lanes = self._active = 0
        self._sectors = self._least = 0
        self._steps: Counter[int] = Counter()
        self._distinct = DistinctBytes()
        self._same = AddressCounts() if kind is OperationKind.ATOMIC else None
        self._outside: OutOfBounds | None = None
        self._patterns: list[Pattern] = []

    def add_empty(self, lanes: int) -> None:
        """An execution without an active lane."""
        self._executions += 1
        self._empty += 1
        self._lanes += lanes

    def add(self, access: Access, program: Program) -> bool:
        """An execution; False, and nothing is counted, if it spans several tensors."""
        addresses, active = access.addresses, access.active
        base = int(addresses.item(0))
        pattern = self._pattern(addresses - addresses.dtype.type(base), active)
        if not one_region(base + pattern.lowest, base + pattern.highest):
            return False
        base &= _ADDRESS_MASK
        self._executions += 1
        self._lanes += access.lanes
        self._active += pattern.count
        self._sectors += pattern.sectors(base)
        self._least += pattern.least_sectors
        for step, count in pattern.steps:
            self._steps[step] += count
        if len(self._steps) > _MOST_STEPS:
            self._steps = Counter(dict(self._steps.most_common(_MOST_STEPS // 2)))
        self._distinct.add(pattern, base)
        if self._same is not None:
            self._same.add(pattern, base)
        if self._region is not None:
            self._check(pattern, base, program, self._region)
        return True

    @property
    def exact(self) -> bool:
        """False if the distinct bytes are an upper bound."""
        return self._distinct.exact

    def total(self, bounds: bool) -> LineAccess:
        """The sums; lanes out of bounds only if ``bounds``."""
        region = self._region
        step = self._steps.most_common(1)
        return LineAccess(
            line=self._line,
            kind=self._kind,
            argument=None if region is None else region.name,
            element_bytes=self._bytes,
            executions=self._executions,
            empty_executions=self._empty,
            lanes=self._lanes,
            active_lanes=self._active,
            bytes=self._active * self._bytes,
            distinct_bytes=self._distinct.total(),
            sectors=self._sectors,
            least_sectors=self._least,
            stride_elements=_elements(step[0][0], self._bytes) if step else None,
            tensor_bytes=0 if region is None else region.tensor_bytes,
            most_same_address=0 if self._same is None else self._same.most,
            out_of_bounds=self._outside if bounds else None,
        )

    def _pattern(self, distances: Any, active: Any) -> Pattern:
        for i, pattern in enumerate(self._patterns):
            if pattern.matches(distances, active):
                if i:
                    self._patterns.insert(0, self._patterns.pop(i))
                return pattern
        pattern = Pattern(distances, active, self._bytes)
        self._patterns.insert(0, pattern)
        del self._patterns[_KEPT_PATTERNS:]
        return pattern

    def _check(self, pattern: Pattern, base: int, program: Program, region: Region) -> None:
        past = base + pattern.highest + self._bytes - region.end
        before = base + pattern.lowest - region.start
        if past <= 0 and before >= 0:
            return
        at = pattern.used + base
        lanes = int(((at < region.start) | (at + self._bytes > region.end)).sum())
        found = OutOfBounds(lanes, region.name, program, past if past >= -before else before)
        known = self._outside
        if known is not None:
            farther = abs(found.bytes_past) > abs(known.bytes_past)
            worst = found if farther else known
            found = OutOfBounds(
                known.lanes + lanes, worst.argument, worst.program, worst.bytes_past
            )
        self._outside = found


def _elements(step: int, element_bytes: int) -> int:
    """Whole elements, rounded away from zero: a step that is no whole number of them is not 0."""
    whole = -(-abs(step) // element_bytes)
    return whole if step >= 0 else -whole
