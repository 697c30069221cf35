"""Run an entry with stand-ins and sample the programs of every launch that it makes."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import time
import types
import warnings
from collections.abc import Callable, Generator
from typing import Any

from search_engine.domain.access import LaunchTrace
from search_engine.domain.job import Refusal, RefusalKind, Source
from search_engine.domain.workload import TensorArgument
from search_engine.worker.attempt import Attempt
from search_engine.worker.interpreter_faults import explained
from search_engine.worker.trace_interpreter import traced
from search_engine.worker.trace_launch import Launch
from search_engine.worker.trace_loops import LoopCounter
from search_engine.worker.trace_memory import AddressSpace, Region
from search_engine.worker.trace_programs import CannotTrace, Programs
from search_engine.worker.trace_sample import Program, programs
from search_engine.worker.trace_values import KnownValues

_ENOUGH = 5
"""Programs that are sampled even if they are slow: the middle, first, last and corners."""
_PATIENCE_SECONDS = 2.5
"""Time after which a job samples no more than that."""
_LEAST_SECONDS = 0.5
_LIKELY_REGISTERS = 64
_LIKELY_SHARED_BYTES = 16384


class Tracer:
    """Traces the launches of one call of an entry.

    ``file`` is where the version's text is; ``most`` and ``seconds`` are the job's limits.
    """

    def __init__(
        self, source: Source, file: str, known: KnownValues, most: int, seconds: float
    ) -> None:
        self.file = file
        self.space = AddressSpace()
        self.loops = LoopCounter(self._at_iteration)
        self.current = Launch("", None, file, self.space)
        self.positioned: dict[int, TensorArgument] = {}
        """Declared arguments whose values are drawn by position, by storage."""
        self.refusals: list[Refusal] = []
        """Why launches could not be traced."""
        self._source = source
        self._known = known
        self._most = most
        self._seconds = seconds
        self._spent = 0.0
        """Seconds in which programs were sampled."""
        self._notes: dict[str, None] = {}
        """For every further launch."""
        self._launches: dict[tuple[str, int | None], Launch] = {}
        self._placed: list[tuple[Any, Region]] = []

    @contextlib.contextmanager
    def active(self) -> Generator[None]:
        """A context in which launches are traced."""
        import numpy as np

        with traced(self), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    def traces(self) -> tuple[LaunchTrace, ...]:
        """One trace per launch site and kernel of which a program was sampled, in launch order."""
        return tuple(launch.total() for launch in self._launches.values() if launch.sampled)

    def note(self, text: str) -> None:
        """Add a note to every launch so far."""
        for launch in self._launches.values():
            launch.notes[text] = None

    def launch(self, executor: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """Sample the first launch of each site and count the others."""
        key = executor.fn.__name__, self._site()
        grid = _grid(executor, args, kwargs)
        if 0 in grid:
            return
        known = self._launches.get(key)
        if known is not None:
            known.times += 1
            if known.grid != grid:
                known.notes["the grid differs between the launches of this site; the first one is "
                            "counted"] = None  # fmt: skip
            return
        launch = self.current = self._launches[key] = Launch(*key, self.file, self.space)
        launch.grid = grid
        launch.notes.update(self._notes)
        if executor.fn.__code__.co_filename != self.file:
            text = f"`{launch.kernel}` is not defined in this file"
            self.refusals.append(Refusal(RefusalKind.UNSUPPORTED, text, launch.line))
            return
        executor.grid = lambda arguments: self._sample(executor.fn, arguments)
        with Attempt() as attempt:
            original(executor, *args, **kwargs)
        if attempt.error is not None:
            launch.sampled = 0
            self.refusals.append(self._refusal(attempt.error))
        self._leave()

    def aliases(self, executor: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments with each tensor under an address of its own."""
        named = [
            self._alias(value, name) for value, name in zip(args, executor.arg_names, strict=False)
        ]
        return named, {name: self._alias(value, name) for name, value in kwargs.items()}

    def warmup(self, function: Any, grid: Any) -> Any:
        """What stands for a compiled kernel: it says likely figures and launches the function."""
        del grid
        self._notes["registers and shared memory that the entry asked for are guessed"] = None
        return _Warm(function)

    def _sample(self, function: Any, arguments: dict[str, Any]) -> tuple[int]:
        """Run programs of the current launch; the interpreter itself is left none to run."""
        from triton.runtime import interpreter

        builder: Any = interpreter.interpreter_builder
        launch = self.current
        sampler = Programs(function, arguments, builder, launch, self.loops)
        builder.set_grid_dim(*launch.grid)
        launch.deadline = time.monotonic() + self._seconds
        begun = time.monotonic()
        patience = max(_PATIENCE_SECONDS - self._spent, _LEAST_SECONDS)
        elapsed = 0.0
        for number, program in enumerate(programs(launch.grid, self._most)):
            late = self._spent + elapsed > self._seconds
            if number and (late or (number >= _ENOUGH and elapsed > patience)):
                break
            sampler.counted(program)
            elapsed = time.monotonic() - begun
        self._spent += time.monotonic() - begun
        return (0,)

    def _alias(self, value: Any, name: str) -> Any:
        import torch
        from triton.runtime.jit import TensorWrapper
        from triton.tools.tensor_descriptor import TensorDescriptor

        if isinstance(value, TensorDescriptor):
            return dataclasses.replace(value, base=self._alias(value.base, name))
        if isinstance(value, TensorWrapper):
            return TensorWrapper(self._alias(value.base, name), value.dtype)
        if isinstance(value, tuple):
            items = [self._alias(item, name) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if not isinstance(value, torch.Tensor):
            return value
        alias = value.detach()
        region = self.space.place(alias, name)
        region.contents = self._known.contents(alias)
        region.drawn = self.positioned.get(value.untyped_storage()._cdata)
        self._placed.append((alias, region))
        return alias

    def _leave(self) -> None:
        """The launch is over: what it wrote is not known to later ones."""
        for alias, region in self._placed:
            if region.stale:
                self._known.forget(alias)
                self.positioned.pop(alias.untyped_storage()._cdata, None)
        self._placed.clear()
        self.space.leave()

    def _at_iteration(self, line: int, is_while: bool) -> None:
        self.current.at_iteration(line, is_while)

    def _site(self) -> int | None:
        """Line of the user's file from which the kernel is launched."""
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return frame.f_lineno - 1
            frame = frame.f_back
        return None

    def _refusal(self, error: BaseException) -> Refusal:
        if isinstance(error, CannotTrace):
            return Refusal(RefusalKind.UNSUPPORTED, str(error), self.current.line)
        return explained(error, self._source)


class _Warm:
    """A kernel that was warmed up, as tutorials ask it for its registers and launch it."""

    n_regs = _LIKELY_REGISTERS
    n_spills = 0
    metadata = types.SimpleNamespace(shared=_LIKELY_SHARED_BYTES, num_warps=4, num_ctas=1)

    def __init__(self, function: Any) -> None:
        self._function = function

    def _init_handles(self) -> None:
        """There are none."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self._function[grid]


def _grid(executor: Any, args: Any, kwargs: Any) -> Program:
    """The grid as compiled code gets it: computed from the arguments as they were given."""
    grid: Any = executor.grid
    if callable(grid):
        signature = inspect.signature(executor.fn)
        named = {name: value for name, value in kwargs.items() if name in signature.parameters}
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        grid = grid({**kwargs, **bound.arguments})
    sizes: list[int] = [
        int(size) for size in (grid if isinstance(grid, (tuple, list)) else (grid,))
    ]
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z
