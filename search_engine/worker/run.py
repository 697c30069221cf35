"""Call one version of the entry on given inputs and collect what is compared.

Compared are the return value (tuples, lists and dicts flattened in order, None skipped), then each
buffer that the entry may write and did not itself return, then the gradients asked for.
"""

from __future__ import annotations

import contextlib
import inspect
import keyword
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from search_engine.domain.job import Source
from search_engine.domain.workload import Workload
from search_engine.worker import loader
from search_engine.worker.attempt import Attempt
from search_engine.worker.guards import POISON, GuardedRun
from search_engine.worker.inputs import Inputs
from search_engine.worker.stand_ins import fitting

Around: TypeAlias = Callable[[Inputs, GuardedRun], contextlib.AbstractContextManager[Any]]
"""Makes the context in which the entry is called, from the buffers of that call."""


@dataclass(frozen=True, slots=True)
class Version:
    """A loaded version of the user's module."""

    source: Source
    module: types.ModuleType
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Output:
    """One compared tensor. ``gradient`` is true for the gradient of an input."""

    name: str
    tensor: Any
    gradient: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a call left behind: outputs, or the error it raised, or the harm it did."""

    outputs: tuple[Output, ...]
    error: BaseException | None = None
    harm: str | None = None
    """A sentence about memory that was written and must not be, or None."""


def load_version(source: Source) -> Version:
    """Load a version. Raises LoadError."""
    module = loader.load(source)
    return Version(source, module, loader.entry(module, source))


def run(
    version: Version,
    workload: Workload,
    inputs: Inputs,
    seed: int,
    poison: int = POISON,
    around: Around | None = None,
) -> RunResult:
    """Call the entry once, with guards around every buffer and poison in those it allocates.

    Tensors that may be written are restored before the call; everything is restored after a call
    that did harm. ``around`` makes a further context for the call.
    """
    inputs.restore()
    guarded = GuardedRun(poison)
    outputs: tuple[Output, ...] = ()
    context = contextlib.nullcontext() if around is None else around(inputs, guarded)
    with Attempt() as attempt, guarded.factories(), context:
        outputs = collect(call(version, workload, inputs.arguments, seed), workload, inputs)
        outputs = tuple(Output(o.name, o.tensor.detach(), o.gradient) for o in outputs)
        synchronise()
    if attempt.error is not None:
        return RunResult((), attempt.error)
    harm = _harm(inputs, guarded)
    kept = tuple(_kept(output, inputs) for output in outputs)
    if harm is not None:
        inputs.restore_all()
    return RunResult(kept, None, harm)


def call(version: Version, workload: Workload, arguments: dict[str, Any], seed: int) -> Any:
    """Call the entry, with gradients of the declared inputs added behind its result."""
    with _gradients(workload, arguments):
        result = prepared(version, workload, arguments)()
        if not workload.gradients:
            return result
        backward(result, seed)
        return result, [arguments[name].grad for name in workload.gradients]


def prepared(version: Version, workload: Workload, arguments: dict[str, Any]) -> Callable[[], Any]:
    """The entry with its arguments bound; declared set-up statements have run."""
    if workload.call is None and not workload.setup:
        named = fitting(version.function, arguments)
        function = version.function
        return lambda: function(**named)
    scope = namespace(version.module, workload, arguments)
    if workload.call is not None:
        code = compile(workload.call, "<call>", "eval")
        return lambda: eval(code, scope)
    named, function = fitting(version.function, arguments), version.function
    return lambda: function(**named)


def namespace(
    module: types.ModuleType, workload: Workload, arguments: dict[str, Any]
) -> dict[str, Any]:
    """What declared expressions may name.

    In order of precedence: set-up results, arguments (``in`` as ``in_`` too), defaults of the
    entry's parameters, torch, the module.
    """
    import torch

    scope: dict[str, Any] = {**module.__dict__, "torch": torch, **_defaults(module, workload.entry)}
    for name, value in arguments.items():
        scope[name] = value
        if keyword.iskeyword(name):
            scope[f"{name}_"] = value
    for statement in workload.setup:
        exec(statement, scope)
    return scope


def flatten(result: Any) -> list[Any]:
    """Tensors of a result in order; numbers become tensors, None and the rest are skipped."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (bool, int, float)):
        dtype = torch.float64 if isinstance(result, float) else None
        return [torch.tensor(result, dtype=dtype)]
    if isinstance(result, dict):
        return [tensor for value in result.values() for tensor in flatten(value)]
    if isinstance(result, (tuple, list)):
        return [tensor for value in result for tensor in flatten(value)]
    return []


def collect(result: Any, workload: Workload, inputs: Inputs) -> tuple[Output, ...]:
    """Everything that is compared, in order; a returned buffer carries the buffer's name."""
    gradients: list[Any] = []
    if workload.gradients:
        result, gradients = result
    storages = {_storage(inputs.arguments[name]): name for name in inputs.written}
    outputs: list[Output] = []
    returned: set[str] = set()
    for position, tensor in enumerate(flatten(result)):
        name = storages.get(_storage(tensor), f"result {position}")
        returned.add(name)
        outputs.append(Output(name, tensor))
    outputs.extend(Output(n, inputs.arguments[n]) for n in inputs.written if n not in returned)
    outputs.extend(
        Output(f"gradient of {name}", gradient, gradient=True)
        for name, gradient in zip(workload.gradients, gradients, strict=True)
        if gradient is not None
    )
    return tuple(outputs)


def backward(result: Any, seed: int) -> None:
    """Run backward from every result that has a history, with seeded non-uniform gradients."""
    import torch

    for position, tensor in enumerate(flatten(result)):
        if tensor.requires_grad:
            generator = torch.Generator().manual_seed(seed + position)
            weights = torch.randn(tensor.shape, generator=generator, dtype=torch.float32)
            # bfloat16 holds every value exactly in any output dtype but fp8.
            weights = weights.to(torch.bfloat16).to(tensor.device, tensor.dtype)
            tensor.backward(weights, retain_graph=True)


def synchronise() -> None:
    """Wait for the device, if there is one, so that its errors appear here."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


@contextlib.contextmanager
def _gradients(workload: Workload, arguments: dict[str, Any]):  # noqa: ANN202
    named = [arguments[name] for name in workload.gradients]
    for tensor in named:
        tensor.requires_grad_()
        tensor.grad = None
    try:
        yield
    finally:
        for tensor in named:
            tensor.requires_grad_(False)


def _defaults(module: types.ModuleType, entry: str) -> dict[str, Any]:
    """Default values of the entry's parameters; empty for what has no signature."""
    found: Any = module
    for name in entry.split("."):
        found = getattr(found, name, None)
    with Attempt():
        parameters = inspect.signature(found).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}
    return {}


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _harm(inputs: Inputs, guarded: GuardedRun) -> str | None:
    changed = inputs.changed()
    if changed is not None:
        return f"memory of the input `{changed}` or beside it was written"
    damaged = next((b.name for b in inputs.buffers if bool(b.damage())), None) or guarded.damaged()
    return None if damaged is None else f"memory beside `{damaged}` was written"


def _kept(output: Output, inputs: Inputs) -> Output:
    """A copy where the next run would overwrite the tensor."""
    storages = {_storage(inputs.arguments[name]) for name in inputs.written}
    tensor = output.tensor.clone() if _storage(output.tensor) in storages else output.tensor
    return Output(output.name, tensor, output.gradient)
