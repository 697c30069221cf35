"""What bounds a candidate, from its time and the figures measured on this device.

Establishes: the class of the bottleneck by the roofline: memory or compute at the limit, else
latency. Counters and per-line attribution need a profiler and are not read yet.
Costs: nothing; it reads what the timing found.
Fails when: never.
Cannot tell: why a latency-bound kernel waits.
"""

from __future__ import annotations

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import BaselineReply
from search_engine.domain.run import Rung
from search_engine.rungs._base import Passed, RungOutcome, Submit, Task

_AT_THE_LIMIT = 0.6
"""Above 60 % of a roofline the unit of that roofline is what binds."""


class Profile:
    """Analytic classification."""

    rung = Rung.PROFILE

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Let everything pass; ``bound`` gives the sentence."""
        return tuple(Passed(None) for _ in candidates)


def roofline_fraction(reply: BaselineReply, time_us: float) -> float | None:
    """Share of the roofline that ``time_us`` reaches on the main case; None without figures."""
    limits = _limits_us(reply)
    return max(limits.values()) / time_us if limits and time_us > 0 else None


def bound(reply: BaselineReply, time_us: float) -> str | None:
    """A sentence on what binds at ``time_us``, or None without figures."""
    limits = _limits_us(reply)
    if not limits:
        return None
    name, limit_us = max(limits.items(), key=lambda item: item[1])
    fraction = limit_us / time_us
    kind = name if fraction >= _AT_THE_LIMIT else "latency"
    return f"{kind}-bound, {fraction:.0%} of roofline"


def _limits_us(reply: BaselineReply) -> dict[str, float]:
    limits: dict[str, float] = {}
    if reply.compulsory_bytes and reply.copy_bandwidth > 0:
        limits["memory"] = reply.compulsory_bytes / reply.copy_bandwidth * 1e6
    if reply.operations and reply.matrix_rate > 0:
        limits["compute"] = reply.operations / reply.matrix_rate * 1e6
    return limits
