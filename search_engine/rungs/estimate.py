"""Whether a candidate is certainly not worth a device's time.

Establishes: it is not a duplicate of machine code already seen, and its predicted cost is not
certainly worse than the baseline's.
Costs: milliseconds, no worker.
Fails when: never; a candidate is pruned, which is not a failure.
Cannot tell: how fast a candidate is. A prediction is never shown as a measurement.
"""

from __future__ import annotations

from search_engine.domain.candidate import Candidate
from search_engine.domain.run import Rung
from search_engine.rungs._base import Passed, RungOutcome, Submit, Task


class Estimate:
    """Pruning by prediction; the predictions are made by the ladder from compile facts."""

    rung = Rung.ESTIMATE

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Let everything pass."""
        return tuple(Passed(None) for _ in candidates)
