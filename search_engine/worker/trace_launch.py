"""One launch whose programs are sampled: what they load, what is counted, what steers them."""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections import Counter
from types import CodeType
from typing import Any, NoReturn

from search_engine.domain.access import LaunchTrace
from search_engine.worker.trace_draws import draw_at, stored, unit
from search_engine.worker.trace_fill import Access, Fill, called, first, parts, positions, taken
from search_engine.worker.trace_loops import LoopTotals
from search_engine.worker.trace_memory import AddressSpace, Region
from search_engine.worker.trace_sample import Program
from search_engine.worker.trace_sites import Site

_MOST_SPINS = 1000
"""Iterations of a ``while`` that touch nothing new: the program waits for another one."""
_MOST_CELLS = 1 << 16


class Stopped(BaseException):
    """Ends a program; no handler of the interpreter or of the user's catches it."""


class Launch:
    """Counts of one launch. ``file`` is where the user's lines are."""

    def __init__(self, kernel: str, line: int | None, file: str, space: AddressSpace) -> None:
        self.kernel = kernel
        self.line = line
        self.times = 1
        self.grid: Program = (0, 0, 0)
        self.sampled = 0
        self.notes: dict[str, None] = {}
        self.fill = Fill.ZEROS
        self.steers = False
        """Floats became truth values or integers."""
        self.made_up: dict[str, None] = {}
        """Where integers came from whose values are not known."""
        self.varied: str | None = None
        """The only one of them that ``Fill.OTHER_INTEGERS`` is about; None means all."""
        self.deadline = 0.0
        self.loads_floats = False
        self.integers_matter = False
        """Unknown integers decide what is accessed: other values led to other accesses."""
        self._file = file
        self._space = space
        self._sites: dict[tuple[Any, ...], Site] = {}
        self._loops = LoopTotals()
        self._program: Program = (0, 0, 0)
        self._tiles = 0
        self._last: tuple[int, int] = (0, 0)
        self._spins: Counter[int] = Counter()
        self._seen: dict[int, tuple[int, tuple[int, int]]] = {}
        self._cells: dict[int, int] = {}
        """Integers that single-lane atomics and stores left, by address."""
        self._trail: list[int] | None = None
        """Hashes of every access instead of counts."""

    def begin(self, program: Program, trail: bool) -> None:
        """A program starts; with ``trail`` it is not counted."""
        self._program = program
        self._seen.clear()
        self._spins.clear()
        self._trail = [] if trail else None

    def counted(self, loops: Counter[int]) -> None:
        """The program has ended."""
        self.sampled += 1
        self._loops.add(loops)

    def trail(self, loops: Counter[int]) -> tuple[Any, ...]:
        """What the program that has ended did: equal for equal accesses and loops."""
        return tuple(self._trail or ()), tuple(sorted(loops.items()))

    def swap_cells(self, cells: dict[int, int]) -> dict[int, int]:
        """Replace what atomics left; the old state."""
        old, self._cells = self._cells, cells
        return old

    def restart(self) -> None:
        """Forget all counts."""
        self._sites.clear()
        self._loops = LoopTotals()
        self.sampled = 0

    def at_iteration(self, line: int, is_while: bool) -> None:
        """Called before each iteration of a loop."""
        if time.monotonic() > self.deadline:
            self._stop("a program took too long: counts cover the beginning of its work")
        if not is_while:
            return
        state = self._tiles, self._last
        if self._seen.get(line) == state:
            self._spins[line] += 1
            if self._spins[line] > _MOST_SPINS:
                self._stop("a program waits for another one and was stopped there")
            return
        self._seen[line] = state
        self._spins[line] = 0

    def load(self, access: Access, kind: Any) -> Any:
        """Count a load and give its values, of Triton's element type ``kind``."""
        self._count(access)
        return self._values(access, kind)

    def store(self, access: Access, value: Any) -> None:
        """Count a store."""
        self._count(access)
        self._written(access)
        if self._is_cell(access):
            self._cells[int(access.addresses.item(0))] = int(value.item(0))

    def atomic(self, access: Access, kind: Any, operation: Any, values: tuple[Any, ...]) -> Any:
        """Count an atomic; the old values.

        Of single integers they are what earlier sampled programs left, and zero at first where they
        are not known: counters and locks. Others are as loaded.
        """
        import numpy as np

        self._count(access)
        self._written(access)
        if not self._is_cell(access):
            return self._values(access, kind)
        address = int(access.addresses.item(0))
        old = self._cells.get(address)
        if old is None:
            region = self._space.region(address)
            known = region is not None and region.contents is not None
            old = int(taken(region, access).item(0)) if region is not None and known else 0
        self._cells[address] = operation(old, *(int(value.item(0)) for value in values))
        return np.array([old]).astype(access.dtype)

    def unknown(self, what: str, is_float: bool) -> int:
        """What a result that cannot be computed is taken as."""
        if is_float:
            self.steers = self.loads_floats = True
            return int(self.fill is Fill.FLOATS)
        return int(self._varies(what))

    def total(self) -> LaunchTrace:
        """The trace; at least one program was sampled."""
        if any(not site.exact for site in self._sites.values()):
            self.notes["distinct bytes of scattered accesses are an upper bound"] = None
        ordered = sorted(self._sites.items(), key=lambda item: item[0][0])  # by line, then time
        certain = not self.integers_matter and self.fill is Fill.ZEROS
        return LaunchTrace(
            kernel=self.kernel,
            line=self.line,
            in_host_loop=self.times,
            grid=self.grid,
            sampled=self.sampled,
            accesses=tuple(site.total(bounds=certain) for _, site in ordered),
            loops=self._loops.totals(self.sampled),
            notes=tuple(self.notes),
        )

    def _stop(self, note: str) -> NoReturn:
        if self._trail is None:
            self.notes[note] = None
        raise Stopped

    def _count(self, access: Access) -> None:
        if access.addresses.size > 1:
            self._tiles += 1
        else:
            self._last = int(access.addresses.item(0)), self._tiles
        line, code, at = self._place()
        if self._trail is not None:
            active = b"" if access.active is None else access.active.tobytes()
            self._trail.append(hash((line, at, access.addresses.tobytes(), active)))
        elif line is not None:
            self._add((line, at, code, access.kind, access.dtype.itemsize), access)

    def _add(self, place: tuple[Any, ...], access: Access) -> None:
        region = self._space.region(first(access))
        site = self._sites.get((*place, region))
        if site is None:
            site = self._sites[(*place, region)] = Site(place[0], place[3], region, place[4])
        if access.active is not None and not access.active.any():
            site.add_empty(access.lanes)
        elif not site.add(access, self._program):
            for part in parts(access):
                self._add(place, part)

    def _place(self) -> tuple[int | None, CodeType | None, tuple[int, int]]:
        """Line in the user's file of the innermost device function there, and where in its text."""
        frame = sys._getframe(3)
        while frame is not None and frame.f_code is not run.__code__:
            if frame.f_code.co_filename == self._file:
                return frame.f_lineno - 1, frame.f_code, _position(frame.f_code, frame.f_lasti)
            frame = frame.f_back
        return None, None, (0, 0)

    def _written(self, access: Access) -> None:
        region = self._space.region(first(access))
        if region is None:
            return
        region.stale = True
        if not self._is_cell(access):
            region.written_by = self._program

    def _is_cell(self, access: Access) -> bool:
        """True for a single integer, whose value is kept."""
        single = access.addresses.size == 1 and access.active is None
        return single and access.dtype.kind in "iu" and len(self._cells) < _MOST_CELLS

    def _values(self, access: Access, kind: Any) -> Any:
        import numpy as np

        addresses = access.addresses
        if addresses.size == 1:
            cell = self._cells.get(int(addresses.item(0)))
            if cell is not None:
                return np.full(addresses.shape, cell).astype(access.dtype)
        region = self._space.region(first(access))
        self.loads_floats |= kind.is_floating()
        if kind.is_floating() and self.fill is not Fill.FLOATS and not _has_contents(region):
            return np.zeros(addresses.shape, access.dtype)
        if region is None or region.written_by == self._program:
            return self._made_up(access, kind, region)
        if region.contents is not None:
            return taken(region, access)
        if region.drawn is None:
            return self._made_up(access, kind, region)
        return stored(draw_at(region.drawn, positions(region, access)), access.dtype, kind.name)

    def _made_up(self, access: Access, kind: Any, region: Region | None) -> Any:
        import numpy as np

        if kind.is_floating() and region is not None:
            drawn = 4 * unit(positions(region, access)) - 2
            return stored(drawn, access.dtype, kind.name)
        if kind.is_floating() or not self._varies(called(access, region)) or region is None:
            return np.zeros(access.addresses.shape, access.dtype)
        return (positions(region, access) % 3).astype(access.dtype)

    def _varies(self, what: str) -> bool:
        """Note an unknown integer; True if it is to be another one than zero."""
        self.made_up[what] = None
        return self.fill is Fill.OTHER_INTEGERS and self.varied in (None, what)


def run(function: Any, arguments: dict[str, Any]) -> None:
    """Run one program; frames above this one are the kernel's and its helpers'."""
    function(**arguments)


@functools.lru_cache(4096)
def _position(code: CodeType, instruction: int) -> tuple[int, int]:
    """First column and last of the call, which Python may compile more than once.

    Python 3.10 does not tell: there it is the instruction.
    """
    if not hasattr(code, "co_positions"):
        return instruction, 0
    at = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    return at[2] or 0, at[3] or 0


def _has_contents(region: Region | None) -> bool:
    return region is not None and region.contents is not None
