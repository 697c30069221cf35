"""Time versions of the entry against each other on one case of the workload.

Timed is the entry: all device work between its call and its return, allocations included. The
first calls (compilation, the user's own autotuner) are not. Inputs are shared by all versions;
tensors that the entry may write are restored before each call, outside the span.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from search_engine.domain.job import Refusal, RefusalKind, Source, TimeJob, TimeReply
from search_engine.domain.workload import Workload
from search_engine.worker.attempt import Attempt
from search_engine.worker.correctness import device
from search_engine.worker.failure import refusal_for
from search_engine.worker.inputs import Inputs, WorkloadError, build
from search_engine.worker.interleave import Contender, interleave
from search_engine.worker.run import backward, load_version, prepared
from search_engine.worker.stopwatch import stopwatch


def time_sources(job: TimeJob) -> TimeReply | Refusal:
    """Samples of every version; refuses with WORKLOAD if the inputs cannot be built."""
    inputs = timed_inputs(job.workload, job.case, job.seed, Path(job.sources[0].root))
    if isinstance(inputs, Refusal):
        return inputs
    contenders = tuple(contender(s, job.workload, inputs, job.seed) for s in job.sources)
    watch = stopwatch(job.cold)
    return interleave(contenders, restorer(inputs), job.rounds, watch, job.seed)


def timed_inputs(workload: Workload, case: int, seed: int, root: Path) -> Inputs | Refusal:
    """Arguments of a case on the device."""
    try:
        return build(workload.cases[case], workload, seed, device(), root)
    except WorkloadError as error:
        return Refusal(RefusalKind.WORKLOAD, str(error))


def contender(source: Source, workload: Workload, inputs: Inputs, seed: int) -> Contender:
    """A version with its arguments bound; one that does not load carries the refusal."""
    with Attempt() as attempt:
        version = load_version(source)
        call = prepared(version, workload, inputs.arguments)
        return Contender(source.id, _with_backward(call, workload, inputs, seed))
    assert attempt.error is not None
    return Contender(source.id, None, refusal_for(attempt.error))


def restorer(inputs: Inputs) -> Callable[[], None] | None:
    """What puts written tensors back, or None if the entry writes none."""
    return inputs.restore if inputs.written else None


def _with_backward(
    call: Callable[[], Any], workload: Workload, inputs: Inputs, seed: int
) -> Callable[[], Any]:
    if not workload.gradients:
        return call

    def both() -> Any:
        for name in workload.gradients:
            inputs.arguments[name].requires_grad_()
            inputs.arguments[name].grad = None
        result = call()
        backward(result, seed)
        return result

    return both
