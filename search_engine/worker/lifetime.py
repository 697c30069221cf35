"""Limits and privacy of a worker process, set before it imports anything of the user's."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from typing import Any


def apply_limits(options: dict[str, Any]) -> None:
    """Set what ``options`` gives: ``nice``, ``memory_bytes`` (address space), ``file_bytes``.

    Core files are never written. Address space is limited only where no device is used: CUDA
    reserves far more of it than it touches.
    """
    _limit(resource.RLIMIT_CORE, 0)
    if options.get("memory_bytes"):
        _limit(resource.RLIMIT_AS, int(options["memory_bytes"]))
    if options.get("file_bytes"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write fails with EFBIG instead
        _limit(resource.RLIMIT_FSIZE, int(options["file_bytes"]))
    if options.get("nice"):
        with contextlib.suppress(OSError):
            os.nice(int(options["nice"]))


def make_private(descriptor: int) -> None:
    """Keep the protocol's descriptor from every process that this one starts."""
    os.set_inheritable(descriptor, False)

    def close_in_child() -> None:
        with contextlib.suppress(OSError):
            os.close(descriptor)

    os.register_at_fork(after_in_child=close_in_child)


def flush_logs() -> None:
    """Push out what the user's code printed, so that the log is complete if the next job dies."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))
