"""Run programs of one launch, and find out which unknown values decide what they access.

Nothing is known of most values that are loaded. Whether they matter is seen from a program that is
run again with other values: if it does the same accesses and iterations, they do not.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

from search_engine.worker import trace_launch
from search_engine.worker.attempt import Attempt
from search_engine.worker.trace_arithmetic import ASSEMBLY
from search_engine.worker.trace_fill import Fill
from search_engine.worker.trace_launch import Launch, Stopped
from search_engine.worker.trace_loops import LoopCounter
from search_engine.worker.trace_sample import Program

_FLOATS = "what is accessed depends on loaded floats, which were drawn at random"
_INTEGERS = "what is accessed depends on {}, which are not known and were taken as zero"


class CannotTrace(Exception):
    """Something that is not computed decides which memory is accessed."""


class Programs:
    """Runs programs of one launch, and finds out what decides which memory they access."""

    def __init__(
        self, function: Any, arguments: dict[str, Any], builder: Any, launch: Launch,
        loops: LoopCounter,
    ) -> None:  # fmt: skip
        self._function = function
        self._arguments = arguments
        self._builder = builder
        self._launch = launch
        self._loops = loops
        self._asked: set[Fill] = set()
        self._done: list[Program] = []

    def counted(self, program: Program) -> None:
        """Run a program and count what it does."""
        launch = self._launch
        self._run(program, trail=False)
        launch.counted(self._loops.current)
        self._done.append(program)
        if launch.made_up and self._asks(Fill.OTHER_INTEGERS):
            self._ask_integers(program)
        may_steer = launch.steers and launch.loads_floats
        if may_steer and self._asks(Fill.FLOATS) and self._matters(program, Fill.FLOATS):
            launch.notes[_FLOATS] = None
            self._again_with_floats()

    def _asks(self, fill: Fill) -> bool:
        """True the first time."""
        asked = fill in self._asked
        self._asked.add(fill)
        return not asked

    def _ask_integers(self, program: Program) -> None:
        launch = self._launch
        if not self._matters(program, Fill.OTHER_INTEGERS):
            return
        deciding: list[str] = []
        for name in tuple(launch.made_up):
            launch.varied = name
            if self._matters(program, Fill.OTHER_INTEGERS):
                deciding.append(name)
        launch.varied = None
        if ASSEMBLY in deciding:
            raise CannotTrace("inline assembly decides what is accessed")
        launch.integers_matter = True
        launch.notes[_INTEGERS.format(", ".join(deciding or launch.made_up))] = None

    def _again_with_floats(self) -> None:
        self._launch.fill = Fill.FLOATS
        self._launch.restart()
        for program in self._done:
            self._run(program, trail=False)
            self._launch.counted(self._loops.current)

    def _matters(self, program: Program, fill: Fill) -> bool:
        """True if a program does something else when loads are filled otherwise."""
        launch = self._launch
        kept, before = launch.fill, launch.swap_cells({})
        trails: list[Any] = []
        for chosen in (kept, fill):
            launch.fill = chosen
            launch.swap_cells({})
            with Attempt() as attempt:
                self._run(program, trail=True)
            trails.append(launch.trail(self._loops.current) if attempt.error is None else None)
        launch.fill = kept
        launch.swap_cells(before)
        return trails[0] != trails[1]

    def _run(self, program: Program, trail: bool) -> None:
        self._loops.current = Counter()
        self._launch.begin(program, trail)
        self._builder.set_grid_idx(*program)
        with contextlib.suppress(Stopped):
            trace_launch.run(self._function, self._arguments)
