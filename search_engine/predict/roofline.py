"""Roofline times from bytes and operations.

``roofline_us`` takes rates *measured* on a device: the fraction that people see. The physical floor
takes datasheet rates, which nothing can beat: a measurement below it is a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.target import Target


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least time in microseconds, and which of ``memory`` and ``compute`` sets it."""

    time_us: float
    bound: str


def roofline_us(
    bytes_moved: float, operations: float, bandwidth: float, rate: float
) -> Roofline | None:
    """Least time for compulsory bytes and operations at measured bytes/s and operations/s.

    None if neither is known to be positive. Raises ValueError for a rate that is not positive.
    """
    if bandwidth <= 0 or rate <= 0:
        raise ValueError(f"rates must be positive: {bandwidth} bytes/s, {rate} operations/s")
    memory = 1e6 * bytes_moved / bandwidth
    compute = 1e6 * operations / rate
    if max(memory, compute) <= 0:
        return None
    return Roofline(max(memory, compute), "memory" if memory >= compute else "compute")


def roofline_fraction(roofline: Roofline, measured_us: float) -> float:
    """Least time over measured time. Slightly above 1 is possible: reads alone outrun a copy.

    Raises ValueError if the measured time is not positive.
    """
    if measured_us <= 0:
        raise ValueError(f"a measured time is positive, not {measured_us} us")
    return roofline.time_us / measured_us


def physical_floor_us(
    target: Target, bytes_moved: float, operations: float, cached_bytes: float, rate_scale: float
) -> float:
    """Time in microseconds below which no kernel can finish on the fastest card of a target.

    ``cached_bytes`` may have stayed in a cache since the previous call (0 if caches were flushed,
    else the size of the last-level cache) and need not come from memory. ``rate_scale`` is the
    matrix rate of the operands over the 16-bit one: 2 for 8-bit operands, 1 to be told nothing.
    """
    memory = max(0.0, bytes_moved - cached_bytes) / target.memory_bandwidth.value
    compute = operations / (target.matrix_rate.value * rate_scale)
    return 1e6 * max(memory, compute)
