"""How much of this machine workers may take."""

from __future__ import annotations

import os

_LEAST_MEMORY_BYTES = 12 * 1024**3


def cores() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_workers() -> int:
    """One on a two-core machine, so that the editor stays quick; most of a larger one."""
    return max(1, min(16, cores() - 2))


def interpret_workers() -> int:
    """Interpreter workers: fewer, since each runs for seconds."""
    return max(1, min(4, cores() - 1))


def memory_bytes() -> int:
    """Address space of a worker without a device: three quarters of this machine's memory.

    torch and Triton map several GB before they do anything, hence the lower bound.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_MEMORY_BYTES, physical * 3 // 4)
