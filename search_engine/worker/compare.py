"""Time the declared reference, eager and compiled, in the same rounds as versions of the entry.

The reference runs in the declared dtypes, with TF32 as the user has set it.
"""

from __future__ import annotations

import ast
import functools
import keyword
from collections.abc import Callable
from pathlib import Path
from typing import Any

from search_engine.domain.job import CompareJob, CompareReply, Refusal, RefusalKind, Source
from search_engine.domain.workload import Workload
from search_engine.worker.attempt import Attempt
from search_engine.worker.failure import refusal_for
from search_engine.worker.inputs import Inputs
from search_engine.worker.interleave import Contender, interleave
from search_engine.worker.run import load_version, namespace
from search_engine.worker.stopwatch import stopwatch
from search_engine.worker.timing import contender, restorer, timed_inputs

_PLAIN = (bool, int, float, str, tuple)
EAGER = "eager"
COMPILED = "torch.compile"


def compare(job: CompareJob) -> CompareReply | Refusal:
    """Cold samples of every version, of the eager and of the compiled reference, in this order.

    Refuses with UNSUPPORTED if no reference is declared.
    """
    if not job.workload.references:
        return Refusal(RefusalKind.UNSUPPORTED, "no reference is declared to compare with")
    inputs = timed_inputs(job.workload, job.case, job.seed, Path(job.sources[0].root))
    if isinstance(inputs, Refusal):
        return inputs
    versions = tuple(contender(s, job.workload, inputs, job.seed) for s in job.sources)
    beside = _references(job.sources[0], job.workload, inputs)
    watch = stopwatch(cold=True)
    reply = interleave((*versions, *beside), restorer(inputs), job.rounds, watch, job.seed)
    return reply if isinstance(reply, Refusal) else CompareReply(reply, _tf32())


def reference_function(
    source: Source, workload: Workload, arguments: dict[str, Any]
) -> Callable[..., Any]:
    """A function of the arguments that evaluates the declared references. Raises LoadError.

    Other names that the expressions use, a default such as ``eps``, become default values: the
    compiler of ``torch.compile`` looks globals up in the module of that name and not here.
    """
    scope = namespace(load_version(source).module, workload, arguments)
    results = ", ".join(f"({item.expression})" for item in workload.references)
    used = {node.id for node in ast.walk(ast.parse(results)) if isinstance(node, ast.Name)}
    others = sorted(used - {*arguments})
    constants = [name for name in others if isinstance(scope.get(name), _PLAIN)]
    names = [*map(_legal, arguments), *(f"{name}={name}" for name in constants)]
    code = f"def reference({', '.join(names)}):\n    return ({results},)\n"
    exec(compile(code, "<reference>", "exec"), scope)
    return scope["reference"]


def _references(source: Source, workload: Workload, inputs: Inputs) -> tuple[Contender, ...]:
    import torch

    with Attempt() as attempt:
        values = list(inputs.arguments.values())
        function = reference_function(source, workload, inputs.arguments)
        compiled = torch.compile(function, dynamic=False)
        return (
            Contender(EAGER, functools.partial(function, *values)),
            Contender(COMPILED, functools.partial(compiled, *values)),
        )
    assert attempt.error is not None
    refusal = refusal_for(attempt.error)
    return Contender(EAGER, None, refusal), Contender(COMPILED, None, refusal)


def _legal(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _tf32() -> bool:
    import torch

    return torch.get_float32_matmul_precision() != "highest"
