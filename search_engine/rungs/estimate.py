"""Whether a candidate is certainly not worth a device's time.

Establishes: it is not a duplicate of machine code already seen, and its predicted cost is not
certainly worse than the baseline's.
Costs: milliseconds, no worker.
Fails when: never; a candidate is pruned, which is not a failure.
Cannot tell: how fast a candidate is. A prediction is never shown as a measurement.
"""

from __future__ import annotations

from search_engine.domain.candidate import Candidate
from search_engine.domain.facts import CompileFacts
from search_engine.domain.run import Rung
from search_engine.domain.verdict import CompileFailed
from search_engine.predict.cost import predicted_cost
from search_engine.rungs._base import Failed, Passed, Pruned, RungOutcome, Submit, Task


class Estimate:
    """Duplicates and certain losers."""

    rung = Rung.ESTIMATE

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Judge each candidate against all that were compiled before it."""
        batch = {candidate.id for candidate in candidates}
        seen = {_binary(facts) for key, facts in task.facts.items() if key not in batch}
        outcomes: list[RungOutcome] = []
        for candidate in candidates:
            facts = task.facts[candidate.id]
            outcomes.append(_judge(task, facts, seen))
            seen.add(_binary(facts))
        return tuple(outcomes)


def _judge(task: Task, facts: CompileFacts, seen: set[tuple[object, ...]]) -> RungOutcome:
    if _binary(facts) in seen:
        return Pruned("the same machine code and grid as a version seen before")
    cost = predicted_cost(facts, task.target, task.facts.get(task.baseline.id))
    if cost.impossible:
        return Failed(CompileFailed(cost.impossible))
    return Pruned(cost.certainly_worse) if cost.drop else Passed(None)


def _binary(facts: CompileFacts) -> tuple[object, ...]:
    """What decides how a version runs, apart from what the entry does besides launching."""
    return tuple((item.binary_hash, item.grid, item.warps) for item in facts.launches)
