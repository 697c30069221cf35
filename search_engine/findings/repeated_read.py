"""The same data read several times from memory.

Cause
    A kernel that walks its row in several loops reads it in each of them; a tile product reads an
    operand once for each tile of the other; a loop over heads or columns around a loop over data
    reads all the data again for each of them. What does not stay in a cache until it is read again
    is paid for each time.

Fix
    Read once and keep it: a block that covers the row (`one-block-per-row`), a maximum and a sum in
    one pass (`online-reduction`), several rows or heads a program, the inner loop outside. For
    matrix products larger tiles (`widen-matmul-tiles`) and an order of the grid in which
    neighbours share operands (`group-programs`). Where a further pass must stay, an eviction
    hint on the last read alone can help.

Shown when
    A parameter's loads ask for at least 1.5 times the size of its tensor, and reading it once would
    save an estimated tenth of the launch or more (a fifth where there is a matrix product). Data
    that stays in a processor's own cache is free in that estimate, data in the L2 cache costs half,
    and what hides behind matrix products costs nothing. Of a product whose tiles are 128 x 256 or
    larger, or too few to be four times as large, nothing is said.

False positives
    The traffic is counted, where it is served from is estimated: a cache can hold more or less
    than assumed. Re-reads of a tuned matrix product are part of its algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import CACHE_SHARE, LAUNCH_S, launch_times, times_without
from search_engine.findings._launch import launch_at, related_blocks, traced_launches
from search_engine.findings._trace import ArgumentReads, certain, reads, size, times

_LEAST_TIMES = 1.5
_LEAST_COST = 0.1
_LEAST_COST_OF_PRODUCT = 0.2
"""Tiles of any size read their operands several times."""
_LARGEST_TILE = 128 * 256
"""Accumulators beyond this do not fit the registers of the usual eight warps."""
_TILES_OF_LARGER = 4
"""Tiles of twice the size in both directions: with fewer, some processors would stand idle."""
_ROW_RULES = ("online-reduction", "one-block-per-row", "several-rows-per-program")


class RepeatedRead:
    """Loads that ask for more than there is."""

    code = "KL205"
    name = "repeated-read"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each parameter, at the load that repeats."""
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            for item in reads(subject, trace) if certain(trace) else ():
                if item.times >= _LEAST_TIMES and _anchor(item) not in told:
                    for found in self._judge(subject, trace, code, item):
                        told.add(found.line)
                        yield found

    def _judge(
        self, subject: Subject, trace: LaunchTrace, code: LaunchCode | None, item: ArgumentReads
    ) -> Iterator[Finding]:
        product = code is not None and bool(code.dots)
        few = trace.programs < _TILES_OF_LARGER * subject.target.processors
        if product and (few or _largest_tile(code) >= _LARGEST_TILE):
            return
        now = launch_times(subject, trace, code).total
        once = times_without(subject, trace, code, item.argument).total
        cost = (now - once) / (now + LAUNCH_S)
        if cost < (_LEAST_COST_OF_PRODUCT if product else _LEAST_COST):
            return
        launch = launch_at(subject, trace.line)
        yield finding(
            self,
            subject,
            subject.line_span(_anchor(item)),
            f"{item.argument} is read {times(item.times)} times "
            f"({size(item.asked)} of {size(item.tensor_bytes)})",
            cost,
            facts={
                "argument": item.argument,
                "times": round(item.times, 2),
                "bytes": round(item.asked),
                "tensor_bytes": item.tensor_bytes,
            },
            related=(*_first(subject, item), *related_blocks(subject, launch)),
            rule=answering(subject, *_rules(subject, item, product)),
        )


def _largest_tile(code: LaunchCode | None) -> int:
    """Elements of the largest tile of results."""
    tiles = (dot.tile for dot in code.dots) if code is not None else ()
    return max((tile[-3] * tile[-2] for tile in tiles if len(tile) >= 3), default=0)


def _rules(subject: Subject, item: ArgumentReads, product: bool) -> tuple[str, ...]:
    if not product:
        return _ROW_RULES
    # The order of tiles matters only to what the L2 cache cannot hold.
    ordered = item.tensor_bytes > CACHE_SHARE * subject.target.l2_bytes
    return ("widen-matmul-tiles", "group-programs") if ordered else ("widen-matmul-tiles",)


def _anchor(item: ArgumentReads) -> int:
    """The second load of the parameter, else the only one."""
    lines = sorted({access.line for access in item.accesses if access.bytes})
    return lines[min(1, len(lines) - 1)]


def _first(subject: Subject, item: ArgumentReads) -> tuple[Related, ...]:
    lines = sorted({access.line for access in item.accesses if access.bytes})
    if len(lines) < 2:
        return ()
    span = subject.line_span(lines[0])
    return (Related(lines[0], span.start, span.end, f"{item.argument} is first read here"),)
