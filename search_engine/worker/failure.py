"""What an exception that ended a job means, as a refusal."""

from __future__ import annotations

import traceback

from search_engine.domain.job import Refusal, RefusalKind
from search_engine.worker.loader import LoadError, missing_module

_LOST_CONTEXT = (
    "CUDA error",
    "HIP error",
    "Triton Error [CUDA]",
    "Triton Error [HIP]",
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
)
"""Texts after which the device context of the process is dead: every later call fails too."""

_LONGEST_MESSAGE = 4000


def refusal_for(error: BaseException) -> Refusal:
    """The refusal that an exception amounts to; ``fatal`` if the worker must be replaced."""
    if isinstance(error, LoadError):
        return error.refusal
    if isinstance(error, ModuleNotFoundError) and error.name:
        return missing_module(error.name)
    if isinstance(error, MemoryError):
        return Refusal(RefusalKind.RUNTIME, "the version ran out of memory", fatal=True)
    text = str(error)
    fatal = any(mark in text for mark in _LOST_CONTEXT)
    return Refusal(RefusalKind.RUNTIME, _describe(error, text), fatal=fatal)


def _describe(error: BaseException, text: str) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text[:_LONGEST_MESSAGE]}{place}"
