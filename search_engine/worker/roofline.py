"""What this device reaches: copy bandwidth and matrix rate, measured once in a process."""

from __future__ import annotations

import functools
from typing import Any

from search_engine.domain.statistics import median
from search_engine.worker.stopwatch import stopwatch

_COPY_BYTES = 1 << 30
_MATRIX_SIZE = 8192
_HOST_COPY_BYTES = 1 << 24
_HOST_MATRIX_SIZE = 128
_SAMPLES = 7


@functools.cache
def copy_bandwidth() -> float:
    """Bytes read and written a second by a device copy of 1 GiB (16 MiB on a CPU)."""
    import torch

    on_device = torch.cuda.is_available()
    size = _COPY_BYTES if on_device else _HOST_COPY_BYTES
    source = torch.zeros(size, dtype=torch.uint8, device="cuda" if on_device else "cpu")
    target = torch.empty_like(source)
    return 2 * size / _seconds(lambda: target.copy_(source))


@functools.cache
def matrix_rate() -> float:
    """Operations a second of a bfloat16 matrix product in the vendor's library."""
    import torch

    on_device = torch.cuda.is_available()
    n = _MATRIX_SIZE if on_device else _HOST_MATRIX_SIZE
    where = "cuda" if on_device else "cpu"
    # Random values: matrix units of zeros draw less power and run at a higher clock.
    a = torch.randn(n, n, device=where).to(torch.bfloat16)
    b = torch.randn(n, n, device=where).to(torch.bfloat16)
    return 2 * n**3 / _seconds(lambda: a @ b)


def _seconds(call: Any) -> float:
    watch = stopwatch(cold=False)
    watch.sample(call, None, 2)
    return median([watch.sample(call, None, 1) for _ in range(_SAMPLES)]) * 1e-6
