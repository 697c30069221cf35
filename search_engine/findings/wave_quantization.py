"""A grid a little larger than the device holds at once: the last wave runs nearly empty.

Cause
    Programs run in waves: as many as fit on all processors, then the next ones. If the last wave
    has few programs, most processors wait for it, and a launch of 1.03 waves takes about as long as
    one of two.

Fix
    Change the block sizes so that the grid is a little below a whole number of waves (the search
    over configurations tries them), let a fixed number of programs share the tiles in a loop, or
    split the last tiles further. No rewrite rule does this.

Shown when
    The grid takes more than one and at most five waves by the registers, shared memory and warps of
    the compiled kernel, the processors' turns (programs a processor, rounded up) waste 15 % or
    more, and a program runs for an estimated 2 us or more.

False positives
    Programs of different length even out by themselves; where the sampled loops differ, nothing is
    said. Where a program alone on a processor runs faster than beside others, the waste is smaller:
    it is counted in turns of a processor for that reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import LAUNCH_S, program_seconds, resident_programs
from search_engine.findings._launch import grid_span, launch_at, related_blocks, traced_launches
from search_engine.findings._trace import certain, imbalance
from search_engine.predict.waves import waves

_MOST_WAVES = 5
_LEAST_WASTE = 0.15
_MOST_IMBALANCE = 1.05
_LEAST_S = 2e-6


class WaveQuantization:
    """A short last wave that costs as much as a full one."""

    code = "KL204"
    name = "wave-quantization"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch site, at its grid."""
        for trace, code in traced_launches(subject):
            alike = certain(trace) and imbalance(trace) <= _MOST_IMBALANCE
            if code is not None and alike:
                yield from self._judge(subject, trace, code)

    def _judge(self, subject: Subject, trace: LaunchTrace, code: LaunchCode) -> Iterator[Finding]:
        target, programs = subject.target, trace.programs
        held = waves(target, programs, resident_programs(target, code) // target.processors)
        turns = programs / target.processors
        waste = 1 - turns / math.ceil(turns)
        if not 1 < held.count <= _MOST_WAVES or waste < _LEAST_WASTE:
            return
        seconds = program_seconds(subject, trace, code)
        if seconds < _LEAST_S:
            return
        launch = launch_at(subject, trace.line)
        tail = f"{held.tail:,} of {held.capacity:,} programs"
        yield finding(
            self,
            subject,
            grid_span(subject, launch),
            f"{programs / held.capacity:.2f} waves: the last runs {tail}",
            waste * seconds / (seconds + LAUNCH_S),
            facts={
                "programs": programs,
                "waves": round(programs / held.capacity, 4),
                "tail": held.tail,
                "capacity": held.capacity,
            },
            related=related_blocks(subject, launch),
        )
