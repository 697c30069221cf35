"""What an exception means that ended a call on the CPU interpreter: the user's mistake or a limit.

Only what the interpreter and a machine without a card cannot do is UNSUPPORTED. Everything else
would fail on a card as well, and is the version's own failure.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath

from search_engine.domain.job import Refusal, RefusalKind, Source
from search_engine.worker import loader
from search_engine.worker.failure import refusal_for
from search_engine.worker.interpreter_hooks import TooManyPrograms, out_of_bounds

_LONGEST_MESSAGE = 1000
_LIMITS = ("not implemented for", "Could not run", "InterpreterBuilder")
"""Texts of types that PyTorch does not compute on a CPU and of builder methods that are absent."""
_NEEDS_A_CARD = ("triton/runtime/", "triton/backends/", "torch/cuda/", "/numpy/")
_LAUNCHER = "triton/runtime/jit.py"


def explained(error: BaseException, source: Source) -> Refusal:
    """What ended a call of a version, with its line in the version's text.

    The message continues a sentence whose subject is the version: ``raises ValueError: no way``.
    """
    file = str(loader.scratch_file(source))
    bounds = out_of_bounds(error, file)
    if bounds is not None:
        message, line = bounds
        return Refusal(RefusalKind.RUNTIME, f"reaches outside its tensors: {message}", line)
    cause = _cause(error)
    line = loader.line_of(cause, source)
    line = loader.line_of(error, source) if line is None else line
    if isinstance(cause, TooManyPrograms):
        return Refusal(RefusalKind.UNSUPPORTED, f"launches too much: {cause}", line)
    text = f"raises {type(cause).__name__}: {str(cause)[:_LONGEST_MESSAGE]}"
    known = refusal_for(cause)
    if known.kind is not RefusalKind.RUNTIME:
        return known
    kind = RefusalKind.UNSUPPORTED if _is_limit(cause, file) else RefusalKind.RUNTIME
    return Refusal(kind, text, line)


def _cause(error: BaseException) -> BaseException:
    """What the interpreter wraps, once for each device function; the error itself elsewhere."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    return error


def _is_limit(error: BaseException, file: str) -> bool:
    if isinstance(error, MemoryError) or any(mark in str(error) for mark in _LIMITS):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename == file:
        return False
    place = PurePath(frames[-1].filename).as_posix()
    inside = any(part in place for part in _NEEDS_A_CARD) and not place.endswith(_LAUNCHER)
    return inside or isinstance(error, NotImplementedError)
