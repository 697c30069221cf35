"""What stands in Triton's interpreter while launches are traced.

Arguments become made-up addresses, every access of memory is handed to the launch and none reaches
memory, kernels are rewritten so that their loops are counted, and the language is patched once for
each launch instead of once for each call of a helper.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Generator
from typing import Any, Protocol

from search_engine.domain.kernel import OperationKind
from search_engine.worker import trace_arithmetic, trace_libraries, trace_speed
from search_engine.worker.interpreter_hooks import replaced
from search_engine.worker.trace_fill import Access
from search_engine.worker.trace_launch import Launch
from search_engine.worker.trace_loops import LoopCounter, counting
from search_engine.worker.trace_speed import Replacement

_NEEDED = {
    "InterpreterBuilder": ("create_masked_load", "create_masked_store", "create_atomic_rmw",
                           "create_atomic_cas", "set_grid_dim", "set_grid_idx", "create_dot"),
    "GridExecutor": ("__call__", "_init_args_hst", "_restore_args_dev"),
    "InterpretedFunction": ("rewrite", "run"),
    "FunctionRewriter": ("rewrite_ast",),
    "ReduceOps": ("generic_reduce", "min_max"),
    "ScanOps": ("generic_scan",),
}  # fmt: skip


class Tracer(Protocol):
    """Who is told what the interpreter does."""

    file: str
    current: Launch
    loops: LoopCounter

    def launch(self, executor: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """A kernel is launched; ``original`` is the interpreter's own way to do it."""
        ...

    def aliases(self, executor: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments with each tensor under an address of its own."""
        ...

    def warmup(self, function: Any, grid: Any) -> Any:
        """A kernel is compiled ahead of its launch; what stands for the compiled kernel."""
        ...


def lacks() -> str | None:
    """The name that this Triton's interpreter lacks, or None if launches can be traced."""
    from triton.runtime import interpreter

    for owner, names in _NEEDED.items():
        for name in names:
            if not hasattr(getattr(interpreter, owner, None), name):
                return f"{owner}.{name}"
    for name in ("_patch_lang", "_convert_float", "_get_np_dtype", "interpreter_builder"):
        if not hasattr(interpreter, name):
            return name
    return None


@contextlib.contextmanager
def traced(tracer: Tracer) -> Generator[None]:
    """A context in which launches go to ``tracer``."""
    with contextlib.ExitStack() as stack:
        for owner, name, replacement in _replacements(tracer):
            if hasattr(owner, name):
                stack.enter_context(replaced(owner, name, replacement))
            else:
                setattr(owner, name, replacement)
                stack.callback(delattr, owner, name)
        yield


def _replacements(tracer: Tracer) -> list[Replacement]:
    from triton.runtime import interpreter

    executor, function = interpreter.GridExecutor, interpreter.InterpretedFunction
    builder: Any = interpreter.interpreter_builder
    run, call = function.run, executor.__call__
    quiet = dataclasses.replace(builder.options, sanitize_overflow=False)  # as compiled code is

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        return tracer.launch(self, call, args, kwargs)

    def aliases(self: Any, args: Any, kwargs: Any) -> Any:
        return tracer.aliases(self, args, kwargs)

    def run_or_warm_up(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return tracer.warmup(self, grid)
        return run(self, *args, grid=grid, warmup=False, **kwargs)

    return [
        (executor, "__call__", launch),
        (executor, "_init_args_hst", aliases),
        (executor, "_restore_args_dev", lambda *_arguments: None),
        (function, "run", run_or_warm_up),
        (function, "rewrite", _rewriting(function.rewrite, tracer)),
        (interpreter, "_patch_lang", _patching(interpreter._patch_lang)),
        (builder, "options", quiet),
        *_accesses(interpreter, tracer),
        *trace_arithmetic.replacements(
            lambda: _steers(tracer), lambda what, is_float: tracer.current.unknown(what, is_float)
        ),
        *trace_libraries.replacements(),
        *trace_speed.replacements(),
    ]


def _steers(tracer: Tracer) -> None:
    tracer.current.steers = True


def _rewriting(original: Callable[[Any], Any], tracer: Tracer) -> Callable[[Any], Any]:
    """Kernels of the user's file are rewritten with counted loops, and kept apart."""
    made: dict[Any, Any] = {}

    def rewrite(self: Any) -> Any:
        if self.fn.__code__.co_filename != tracer.file:
            return original(self)
        if self.fn not in made:
            made[self.fn] = counting(self.rewriter, tracer.loops)
        return made[self.fn]

    return rewrite


def _patching(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The first patch of a launch is undone at its end, with all that helpers added to it."""
    scopes: list[Any] = []
    patched: set[int] = set()

    def patch(fn: Any) -> Any:
        names = fn.__globals__
        if id(names) not in patched:
            patched.add(id(names))
            scopes.append(original(fn))
            scopes.append(trace_libraries.bind_names(names))
            if len(scopes) == 2:
                return _Scope(scopes, patched)
        return _Scope([], set())

    return patch


class _Scope:
    """What the interpreter restores at the end of a launch."""

    def __init__(self, scopes: list[Any], patched: set[int]) -> None:
        self._scopes = scopes
        self._patched = patched

    def restore(self) -> None:
        """Undo the patches, the last one first."""
        while self._scopes:
            scope = self._scopes.pop()
            if hasattr(scope, "restore"):  # Triton 3.4 keeps its patches
                scope.restore()
        self._patched.clear()


def _accesses(interpreter: Any, tracer: Tracer) -> list[Replacement]:
    """Loads, stores and atomics, which block pointers and descriptors end in as well."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    operations = _operations(builder.ir_rmw_op_to_interpreter_rmw_op)

    def load(_self: Any, pointers: Any, mask: Any, other: Any, *_rest: Any, **_named: Any) -> Any:
        access, kind = _access(interpreter, OperationKind.LOAD, pointers, mask)
        values = tracer.current.load(access, kind)
        if other is not None and access.active is not None:
            import numpy as np

            values = np.where(access.active, values, other.data).astype(access.dtype)
        return handle(values, kind)

    def store(_self: Any, pointers: Any, value: Any, mask: Any, *_rest: Any) -> None:
        access, _ = _access(interpreter, OperationKind.STORE, pointers, mask)
        tracer.current.store(access, value.data)

    def rmw(_self: Any, what: Any, pointers: Any, value: Any, mask: Any, *_rest: Any) -> Any:
        access, kind = _access(interpreter, OperationKind.ATOMIC, pointers, mask)
        old = tracer.current.atomic(access, kind, operations[what], (value.data,))
        return handle(old, value.dtype.scalar)

    def cas(_self: Any, pointers: Any, expected: Any, value: Any, *_rest: Any) -> Any:
        access, kind = _access(interpreter, OperationKind.ATOMIC, pointers, None)
        old = tracer.current.atomic(access, kind, _swapped, (expected.data, value.data))
        return handle(old, expected.dtype.scalar)

    def reduce(_self: Any, _what: Any, descriptor: Any, value: Any, offsets: Any) -> None:
        pointers, mask = descriptor.materialize_pointers(offsets)
        access, kind = _access(interpreter, OperationKind.ATOMIC, pointers, mask)
        tracer.current.atomic(access, kind, operator.add, (value.data,))

    return [
        (builder, "create_masked_load", load),
        (builder, "create_masked_store", store),
        (builder, "create_atomic_rmw", rmw),
        (builder, "create_atomic_cas", cas),
        (builder, "create_descriptor_reduce", reduce),
    ]


def _access(interpreter: Any, kind: OperationKind, pointers: Any, mask: Any) -> tuple[Access, Any]:
    """The access and Triton's type of its elements; masks are handles or plain arrays."""
    import numpy as np

    element = pointers.get_element_ty()
    addresses = np.atleast_1d(pointers.data).view(np.uint64)
    active = None
    if mask is not None:
        active = np.broadcast_to(np.asarray(mask.data).astype(bool), addresses.shape)
        active = None if active.all() else active
    dtype = interpreter._get_np_dtype(element)
    return Access(kind, addresses, active, dtype, addresses.size), element


def _operations(named: dict[Any, Any]) -> dict[Any, Callable[[int, int], int]]:
    """What an atomic leaves, from the old value and its operand, by Triton's operation."""
    meanings: dict[str, Callable[[int, int], int]] = {
        "ADD": operator.add, "FADD": operator.add, "MIN": min, "UMIN": min, "MAX": max,
        "UMAX": max, "AND": operator.and_, "OR": operator.or_, "XOR": operator.xor,
    }  # fmt: skip
    return {key: meanings.get(key.name, lambda _old, new: new) for key in named}


def _swapped(old: int, expected: int, new: int) -> int:
    return new if old == expected else old
