"""Time several callables against each other: every round runs each once, in shuffled order.

Drift of clocks and temperature is common to a round and cancels in ratios within it.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from search_engine.domain.job import Refusal, SourceFailure, TimeReply
from search_engine.worker.attempt import Attempt
from search_engine.worker.failure import refusal_for
from search_engine.worker.stopwatch import Stopwatch


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to be timed. ``failure`` is set if it could not even be loaded."""

    id: str
    call: Callable[[], Any] | None
    failure: Refusal | None = None


@dataclass(slots=True)
class _Lane:
    contender: Contender
    failure: Refusal | None = None
    samples: list[float] = field(default_factory=list[float])
    peak_bytes: int = 0


def interleave(
    contenders: tuple[Contender, ...],
    restore: Callable[[], None] | None,
    rounds: int,
    watch: Stopwatch,
    seed: int,
) -> TimeReply | Refusal:
    """Time all contenders. One that fails has no samples and does not spoil the others.

    The number of calls in a sample is calibrated once, on the first contender that works, and is
    the same for all. Refuses only if a failure took the device's context with it.
    """
    race = _Race(contenders, restore, watch)
    race.warm_up()
    started = time.perf_counter()
    calls = race.calibrate()
    rng = random.Random(seed)
    for _ in range(rounds):
        order = race.running()
        rng.shuffle(order)
        for lane in order:
            race.sample(lane, calls)
    seconds = time.perf_counter() - started
    return race.fatal() or race.reply(calls, seconds)


class _Race:
    def __init__(
        self,
        contenders: tuple[Contender, ...],
        restore: Callable[[], None] | None,
        watch: Stopwatch,
    ) -> None:
        self._lanes = [_Lane(contender, contender.failure) for contender in contenders]
        self._restore, self._watch = restore, watch

    def running(self) -> list[_Lane]:
        """Lanes without a failure; none once the context is lost."""
        if self.fatal() is not None:
            return []
        return [lane for lane in self._lanes if lane.failure is None]

    def fatal(self) -> Refusal | None:
        """The failure that lost the device's context, naming the version, or None."""
        for lane in self._lanes:
            if lane.failure is not None and lane.failure.fatal:
                return Refusal(
                    lane.failure.kind, f"{lane.contender.id}: {lane.failure.message}", fatal=True
                )
        return None

    def warm_up(self) -> None:
        """Compile, let autotuners choose, and note memory: nothing of it is timed."""
        for lane in list(self._lanes):
            if lane not in self.running():
                continue
            self._attempt(lane, functools.partial(self._first_calls, lane))

    def calibrate(self) -> int:
        """Calls in a sample."""
        for lane in self.running():
            made: list[int] = []
            self._attempt(lane, lambda call, made=made: made.append(self._calls(call)))
            if made:
                return made[0]
        return 1

    def sample(self, lane: _Lane, calls: int) -> None:
        """One sample of one contender."""
        if self.fatal() is not None:
            return
        self._attempt(
            lane, lambda call: lane.samples.append(self._watch.sample(call, self._restore, calls))
        )

    def reply(self, calls: int, seconds: float) -> TimeReply:
        """Samples of those that work, failures of the rest."""
        failures = tuple(
            SourceFailure(lane.contender.id, lane.failure.message)
            for lane in self._lanes
            if lane.failure is not None
        )
        samples = tuple(tuple(lane.samples) if lane.failure is None else () for lane in self._lanes)
        return TimeReply(
            sources=tuple(lane.contender.id for lane in self._lanes),
            samples_us=samples,
            failures=failures,
            calls_per_sample=calls,
            peak_memory_bytes=tuple(lane.peak_bytes for lane in self._lanes),
            device_seconds=seconds,
        )

    def _first_calls(self, lane: _Lane, call: Callable[[], Any]) -> None:
        if self._restore is not None:
            self._restore()
        call()
        lane.peak_bytes = self._watch.peak_bytes(call)
        self._watch.prepare(call)

    def _calls(self, call: Callable[[], Any]) -> int:
        return self._watch.calls_for(call, self._restore)

    def _attempt(self, lane: _Lane, use: Callable[[Callable[[], Any]], Any]) -> None:
        assert lane.contender.call is not None
        with Attempt() as attempt:
            use(lane.contender.call)
        if attempt.error is not None:
            lane.failure = refusal_for(attempt.error)
