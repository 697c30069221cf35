"""Watch every memory access of Triton's CPU interpreter.

Private names of ``triton.runtime.interpreter`` are replaced while a version runs; they are the
same in Triton 3.4 to 3.9, and ``missing`` says if one is not there.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Generator
from typing import Any

from search_engine.worker import fake_torch
from search_engine.worker.guards import Guarded, GuardedRun
from search_engine.worker.inputs import Inputs
from search_engine.worker.traffic import TrafficCounter

MOST_PROGRAMS = 600
"""A program takes the interpreter some milliseconds; larger grids would outlast the job."""

_METHODS = ("create_masked_load", "create_masked_store", "create_atomic_rmw", "create_atomic_cas",
            "set_grid_dim")  # fmt: skip


class OutOfBounds(Exception):
    """An active lane touched memory outside every tensor of its launch."""


class TooManyPrograms(Exception):
    """The grid is too large for the interpreter."""


def missing() -> str | None:
    """The name that this Triton's interpreter lacks, or None if accesses can be watched."""
    from triton.runtime import interpreter

    for name in _METHODS:
        if not hasattr(interpreter.InterpreterBuilder, name):
            return f"InterpreterBuilder.{name}"
    return None if hasattr(interpreter.GridExecutor, "_init_args_hst") else "GridExecutor"


class Watch:
    """Checks and counts accesses; ``around`` is the context for a call of the entry."""

    def __init__(self) -> None:
        self.counter = TrafficCounter()
        self.most_programs = MOST_PROGRAMS
        self.largest_grid = 0
        """Programs of the largest launch so far, refused ones included."""
        self._ranges: list[tuple[int, int]] = []
        self._known: Callable[[], list[Guarded]] = list

    @contextlib.contextmanager
    def around(self, inputs: Inputs, guarded: GuardedRun) -> Generator[None]:
        """Watch one call of the entry, in which ``cuda`` means the CPU."""
        self.counter = TrafficCounter()
        self._known = lambda: [*inputs.buffers, *guarded.buffers]
        with contextlib.ExitStack() as stack:
            stack.enter_context(fake_torch.cuda_as("cpu"))
            for owner, name, replacement in self._replacements():
                stack.enter_context(replaced(owner, name, replacement))
            yield

    def _replacements(self) -> list[tuple[Any, str, Any]]:
        from triton.runtime import autotuner, interpreter

        builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
        wrapped = [
            (builder, "create_masked_load", self._access(builder.create_masked_load, "load", 1)),
            (builder, "create_masked_store", self._access(builder.create_masked_store, "store", 2)),
            (builder, "create_atomic_rmw", self._atomic(builder.create_atomic_rmw)),
            (builder, "create_atomic_cas", self._access(builder.create_atomic_cas, "atomic", None)),
            (builder, "set_grid_dim", self._grid(builder.set_grid_dim)),
            (executor, "_init_args_hst", self._launch(executor._init_args_hst)),
        ]
        return [*wrapped, (autotuner.Autotuner, "_bench", _first_wins)]

    def _access(self, original: Any, kind: str, mask_at: int | None) -> Any:
        def replacement(builder: Any, pointers: Any, *rest: Any, **named: Any) -> Any:
            mask = None if mask_at is None else named.get("mask")
            if mask is None and mask_at is not None and len(rest) >= mask_at:
                mask = rest[mask_at - 1]
            self._check(kind, pointers, mask)
            return original(builder, pointers, *rest, **named)

        return replacement

    def _atomic(self, original: Any) -> Any:
        def replacement(
            builder: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any
        ) -> Any:
            self._check("atomic", pointers, mask)
            return original(builder, operation, pointers, value, mask, *rest)

        return replacement

    def _grid(self, original: Any) -> Any:
        def replacement(builder: Any, *sizes: int) -> Any:
            programs = 1
            for size in sizes:
                programs *= int(size)
            self.largest_grid = max(self.largest_grid, programs)
            if programs > self.most_programs:
                raise TooManyPrograms(f"{programs} programs are too many for the interpreter")
            self.counter.programs += programs
            return original(builder, *sizes)

        return replacement

    def _launch(self, original: Any) -> Any:
        def replacement(executor: Any, *args: Any, **kwargs: Any) -> Any:
            arguments, named = original(executor, *args, **kwargs)
            self._ranges = [self._range(t) for t in _tensors((arguments, named))]
            return arguments, named

        return replacement

    def _range(self, tensor: Any) -> tuple[int, int]:
        """Addresses that belong to a tensor: its guarded interior, else its whole storage."""
        storage = tensor.untyped_storage()
        start = int(storage.data_ptr())
        for buffer in self._known():
            if int(buffer.raw.data_ptr()) == start:
                return buffer.addresses
        return start, start + int(storage.nbytes())

    def _check(self, kind: str, pointers: Any, mask: Any) -> None:
        import numpy as np
        from triton.runtime import interpreter

        size = np.dtype(interpreter._get_np_dtype(pointers.get_element_ty())).itemsize
        addresses = np.asarray(pointers.data).reshape(-1).astype(np.uint64)
        active = np.ones(addresses.shape, dtype=bool)
        if mask is not None:
            given = np.asarray(mask.data).reshape(-1).astype(bool)
            active = np.broadcast_to(given, addresses.shape)
        inside = np.zeros(addresses.shape, dtype=bool)
        for start, end in self._ranges:
            inside |= (addresses >= start) & (addresses + np.uint64(size) <= end)
        wrong = int((active & ~inside).sum())
        if wrong:
            lanes = int(active.sum())
            raise OutOfBounds(f"{kind} out of bounds in {wrong} of {lanes} active lanes")
        self.counter.access(kind, addresses, active, size)


def out_of_bounds(error: BaseException, file: str) -> tuple[str, int | None] | None:
    """Message and 0-based line in ``file`` if the error comes from an access out of bounds."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OutOfBounds):
            frames = traceback.extract_tb(found.__traceback__)
            lines = [f.lineno for f in frames if f.filename == file and f.lineno is not None]
            return str(found), lines[-1] - 1 if lines else None
        found = found.__cause__ or found.__context__
    return None


def _first_wins(*_arguments: Any, **_named: Any) -> list[float]:
    """Autotuners cannot measure anything here: they take their first configuration."""
    return [0.0, 0.0, 0.0]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    value = getattr(value, "base", value) if not hasattr(value, "untyped_storage") else value
    return [value] if hasattr(value, "untyped_storage") else []


@contextlib.contextmanager
def replaced(owner: Any, name: str, replacement: Any) -> Generator[None]:
    """A context in which the attribute ``name`` of ``owner`` is another."""
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)
