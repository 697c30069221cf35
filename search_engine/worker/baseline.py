"""Run the user's kernel on every case before anything is compared with it."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from search_engine.domain.job import BaselineJob, BaselineReply, Refusal, RefusalKind, TimeReply
from search_engine.domain.workload import Case, Distribution, TensorArgument, Workload
from search_engine.worker import plan, roofline
from search_engine.worker.attempt import Attempt
from search_engine.worker.correctness import Checker, device, legal_groups
from search_engine.worker.extents import elements
from search_engine.worker.inputs import Inputs
from search_engine.worker.interleave import interleave
from search_engine.worker.plan import PlannedInput
from search_engine.worker.reach import tiles
from search_engine.worker.reference import why_no_oracle
from search_engine.worker.run import load_version, namespace, run
from search_engine.worker.session import Outside, Prepared, Session
from search_engine.worker.statistics import median_interval, noise
from search_engine.worker.stopwatch import stopwatch
from search_engine.worker.timing import contender, restorer, timed_inputs
from search_engine.worker.values import Variant

_ROUNDS = 20


def baseline(job: BaselineJob) -> BaselineReply | Refusal:
    """Gate against the reference on all elements of all cases, then time against itself.

    Refuses with REFERENCE if the kernel disagrees with its reference or its output cannot tell
    right from wrong, with RUNTIME or COMPILE if it does not run.
    """
    started = time.perf_counter()
    session = Session(job.source, job.workload, device())
    checker = Checker(session, load_version(job.source))
    refusal = checker.run_all(_gated(job)) or _no_oracle(session, job)
    if refusal is not None:
        return refusal
    gate = checker.reply(0.0, ())
    if gate.mismatch is not None:
        reason = "two runs of your kernel on the same input differ by more than rounding"
        return Refusal(RefusalKind.REFERENCE, f"{reason} ({gate.mismatch.reason})")
    timed = _against_itself(job)
    if isinstance(timed, Refusal):
        return timed
    reply, inputs = timed
    return _reply(job, session, reply, inputs, not gate.nondeterministic, started)


def main_case(workload: Workload) -> int:
    """The case with the largest weight: timing, bytes and operations are its own."""
    return max(range(len(workload.cases)), key=lambda i: workload.cases[i].weight)


def compulsory_bytes(workload: Workload, case: Case, moved: int, scope: Any) -> int | None:
    """Bytes that any kernel must move: declared, or every input and output once.

    None for data-dependent accesses, where only a declaration knows what is touched.
    """
    if workload.bytes_expression is not None:
        return int(eval(workload.bytes_expression, scope))
    return None if _depends_on_data(case) else moved


def _gated(job: BaselineJob) -> tuple[PlannedInput, ...]:
    """Every case with declared values, smallest first, three runs each."""
    return tuple(
        PlannedInput(case, Variant.NORMAL, job.seed + i, True, repetitions=plan.REPETITIONS)
        for i, case in enumerate(sorted(job.workload.cases, key=elements))
    )


def _no_oracle(session: Session, job: BaselineJob) -> Refusal | None:
    """A refusal if the outputs on two inputs show that they cannot be judged."""
    case = plan.smallest(job.workload)
    pair = [
        session.prepare(PlannedInput(case, Variant.NORMAL, job.seed + extra, True))
        for extra in (0, 1)
    ]
    first, second = pair
    if isinstance(first, Prepared) and isinstance(second, Prepared):
        reason = why_no_oracle(first.expected, second.expected)
        return (
            None
            if reason is None
            else Refusal(
                RefusalKind.REFERENCE, f"{reason}: it cannot tell a right kernel from a wrong one"
            )
        )
    failed = first if not isinstance(first, Prepared) else second
    if isinstance(failed, Refusal):
        return failed
    assert isinstance(failed, Outside)
    return Refusal(RefusalKind.WORKLOAD, failed.reason)


def _against_itself(job: BaselineJob) -> tuple[TimeReply, Inputs] | Refusal:
    case = main_case(job.workload)
    inputs = timed_inputs(job.workload, case, job.seed, Path(job.source.root))
    if isinstance(inputs, Refusal):
        return inputs
    one = contender(job.source, job.workload, inputs, job.seed)
    watch = stopwatch(cold=True)
    reply = interleave((one, one), restorer(inputs), _ROUNDS, watch, job.seed)
    if isinstance(reply, Refusal):
        return reply
    if reply.failures:
        return Refusal(RefusalKind.RUNTIME, f"your kernel: {reply.failures[0].message}")
    return reply, inputs


def _reply(
    job: BaselineJob,
    session: Session,
    timed: TimeReply,
    inputs: Inputs,
    deterministic: bool,
    started: float,
) -> BaselineReply | Refusal:
    first, second = timed.samples_us
    middle, low, high = median_interval((*first, *second), job.seed)
    figures: list[tuple[int | None, int | None, int]] = []
    with Attempt() as attempt:
        figures.append(_figures(job, session, inputs))
    if attempt.error is not None:
        return Refusal(RefusalKind.WORKLOAD, f"`bytes` or `flops`: {attempt.error}")
    moved, operations, working_set = figures[0]
    chosen = legal_groups(session, job.seed)
    smoke = plan.smoke(job.workload, job.seed, chosen)
    full = plan.full(job.workload, job.seed, chosen, tiles(job.source))
    return BaselineReply(
        median_us=middle,
        low_us=low,
        high_us=high,
        noise=noise(first, second, job.seed),
        deterministic=deterministic,
        independent_reference=session.independent,
        compulsory_bytes=moved,
        operations=operations,
        copy_bandwidth=roofline.copy_bandwidth(),
        matrix_rate=roofline.matrix_rate(),
        peak_memory_bytes=timed.peak_memory_bytes[0],
        working_set_bytes=working_set,
        device_seconds=time.perf_counter() - started,
        smoke_cases=tuple(dict.fromkeys(item.case for item in smoke)),
        full_cases=tuple(dict.fromkeys(item.case for item in full)),
    )


def _figures(
    job: BaselineJob, session: Session, inputs: Inputs
) -> tuple[int | None, int | None, int]:
    """Compulsory bytes, operations, working set of the main case."""
    workload, case = job.workload, job.workload.cases[main_case(job.workload)]
    made = run(session.baseline, workload, inputs, job.seed)
    if made.error is not None:
        raise made.error
    written = sum(output.tensor.numel() * output.tensor.element_size() for output in made.outputs)
    read = sum(_stored_bytes(buffer.tensor) for buffer in inputs.buffers)
    restored = sum(
        _stored_bytes(buffer.tensor) for buffer in inputs.buffers if _is_output(case, buffer.name)
    )
    moved = read - restored + written
    scope = namespace(session.baseline.module, workload, inputs.arguments)
    needed = compulsory_bytes(workload, case, moved, scope)
    text = workload.flops_expression
    return needed, None if text is None else int(eval(text, scope)), read + written


def _stored_bytes(tensor: Any) -> int:
    """Bytes of distinct elements: dimensions of stride 0 count once."""
    sizes = (n for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s != 0)
    return math.prod(sizes) * int(tensor.element_size())


def _is_output(case: Case, name: str) -> bool:
    """True for a buffer that the entry only writes."""
    return any(
        isinstance(item, TensorArgument) and item.name == name and item.role.value == "output"
        for item in case.arguments
    )


def _depends_on_data(case: Case) -> bool:
    """True if integers of one tensor can pick leading rows of another."""
    tensors = [item for item in case.arguments if isinstance(item, TensorArgument)]
    kinds = (Distribution.INTEGERS, Distribution.SORTED, Distribution.DISTINCT)
    for index in tensors:
        if index.values.distribution is Distribution.RECORDED and len(tensors) > 1:
            return True
        if index.values.distribution not in kinds:
            continue
        high = index.values.parameters[-1]
        if index.values.distribution is Distribution.DISTINCT:
            high -= 1
        for other in tensors:
            if other is not index and len(other.shape) >= 2 and other.shape[0] == high + 1:
                return True
    return False
