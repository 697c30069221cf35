"""Measure spans of work: device events on CUDA, the host's clock on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SHORT_US = 50.0
"""Below this a single launch measures the gap between launches; several calls share a sample."""
_SAMPLE_US = 200.0
_MOST_CALLS = 64
_FLUSH_FACTOR = 4
_LEAST_FLUSH_BYTES = 256 << 20
_CYCLES_PER_US = 2000
"""Two gigahertz, the boost clock of a data-centre card; slower clocks only wait longer."""
_LONGEST_HOLD_US = 5000.0
_HOLD_MARGIN = 1.5


def stopwatch(cold: bool) -> Stopwatch:
    """The stopwatch for this machine. ``cold`` flushes the L2 cache before each call."""
    import torch

    return _DeviceStopwatch(cold) if torch.cuda.is_available() else Stopwatch()


class Stopwatch:
    """The host's clock; caches are not flushed, so it serves tests and CPU entries only."""

    def sample(
        self, call: Callable[[], Any], restore: Callable[[], None] | None, calls: int
    ) -> float:
        """Mean microseconds of one of ``calls`` calls; ``restore`` runs before each, untimed."""
        if restore is None:
            started = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - started) * 1e6 / calls
        total = 0.0
        for _ in range(calls):
            restore()
            started = time.perf_counter()
            call()
            total += time.perf_counter() - started
        return total * 1e6 / calls

    def calls_for(self, call: Callable[[], Any], restore: Callable[[], None] | None) -> int:
        """Calls that one sample should have, from a few trial calls."""
        once = min(self.sample(call, restore, 1) for _ in range(3))
        return calls_for(once)

    def prepare(self, call: Callable[[], Any]) -> None:
        """Learn what the host needs to launch ``call``; nothing on the CPU."""

    def peak_bytes(self, call: Callable[[], Any]) -> int:
        """Device memory that a call allocates beyond what was there; 0 on the CPU."""
        call()
        return 0


def calls_for(once_us: float) -> int:
    """Calls in a sample of a kernel that takes ``once_us`` microseconds."""
    if once_us >= SHORT_US:
        return 1
    return min(max(int(_SAMPLE_US / max(once_us, 0.1)), 2), _MOST_CALLS)


class _DeviceStopwatch(Stopwatch):
    """Device events.

    The device is kept busy while the host enqueues a sample, so that what is measured is the work
    and not the host. Each cold call has its own span behind a write of four times the L2 cache.
    """

    def __init__(self, cold: bool) -> None:
        import torch

        self._torch: Any = torch
        self._cold = cold
        self._hold_us = 0.0
        cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
        size = max(_FLUSH_FACTOR * cache, _LEAST_FLUSH_BYTES) // 4
        self._flush = torch.empty(size, dtype=torch.int32, device="cuda") if cold else None

    def prepare(self, call: Callable[[], Any]) -> None:
        """Measure how long the host takes to enqueue one call; the slowest version counts."""
        self._torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        enqueued = (time.perf_counter() - started) * 1e6
        self._torch.cuda.synchronize()
        self._hold_us = max(self._hold_us, min(enqueued * _HOLD_MARGIN, _LONGEST_HOLD_US))

    def sample(
        self, call: Callable[[], Any], restore: Callable[[], None] | None, calls: int
    ) -> float:
        """Mean device microseconds of a call. Raises what the device reports."""
        if self._cold or restore is not None:
            spans = [self._span(call, restore, 1) for _ in range(calls)]
        else:
            spans = [self._span(call, None, calls)]
        self._torch.cuda.synchronize()
        return sum(start.elapsed_time(end) for start, end in spans) * 1e3 / calls

    def peak_bytes(self, call: Callable[[], Any]) -> int:
        """Bytes allocated at most during a call, beyond what was allocated before."""
        cuda = self._torch.cuda
        cuda.synchronize()
        before = cuda.memory_allocated()
        cuda.reset_peak_memory_stats()
        call()
        cuda.synchronize()
        return int(cuda.max_memory_allocated() - before)

    def _span(
        self, call: Callable[[], Any], restore: Callable[[], None] | None, calls: int
    ) -> tuple[Any, Any]:
        event = self._torch.cuda.Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        if restore is not None:
            restore()
        if self._flush is not None:
            self._flush.zero_()
        hold_us = min(self._hold_us * calls, _LONGEST_HOLD_US)
        self._torch.cuda._sleep(int(hold_us * _CYCLES_PER_US))
        start.record()
        for _ in range(calls):
            call()
        end.record()
        return start, end
