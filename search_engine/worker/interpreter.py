"""Check a candidate without a device: Triton's CPU interpreter on shrunk inputs.

The interpreter computes bf16 and fp8 wrongly, so such arguments become float32 and bodies that
name those types are refused; inline assembly and libdevice are not there. It says nothing about
races, and lanes run one after another.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

from search_engine.domain.facts import Traffic
from search_engine.domain.job import (
    CheckReply,
    Comparison,
    InterpretJob,
    Mismatch,
    Refusal,
    RefusalKind,
)
from search_engine.domain.workload import Case, Workload
from search_engine.worker import plan
from search_engine.worker.extents import elements, widen
from search_engine.worker.fake_driver import stop_benchmarking
from search_engine.worker.guards import POISON
from search_engine.worker.interpreter_faults import explained
from search_engine.worker.interpreter_hooks import MOST_PROGRAMS, Watch, missing
from search_engine.worker.interpreter_repairs import repair
from search_engine.worker.plan import PlannedInput
from search_engine.worker.reach import reached_text
from search_engine.worker.reference import why_no_oracle
from search_engine.worker.run import Version, load_version
from search_engine.worker.session import UNSTEADY, Outside, Prepared, Session
from search_engine.worker.values import Variant

_CANNOT = re.compile(r"\b(?:tl\.(?:bfloat16|float8\w*)|inline_asm\w*|libdevice|tl\.extra)\b")
_VARIANTS = (Variant.TRIPLED, Variant.NORMAL, Variant.OUTLIER, Variant.NEGATED)
_MOST_CASES = 2
_OTHER_SEED = 500
_MOST_LAUNCHED = 1 << 20
"""Elements of a declared case that is run; of larger ones only what precedes a launch is run."""
_MOST_BUILT = 1 << 26
"""Elements of a declared case that is built at all: 256 MiB of float32."""

_traffic: dict[tuple[str, str], Traffic] = {}
"""Traffic of versions already counted, by text and shape; the baseline's is asked for often."""


def interpret(job: InterpretJob) -> CheckReply | Refusal:
    """Compare on a few shrunk inputs, every access checked against the bounds of its tensor.

    Refuses with RUNTIME (and the user's line) for an access out of bounds in the candidate,
    RUNTIME too if the baseline raises on a declared size, REFERENCE if it is wrong or does not
    repeat itself or the reference raises, UNSUPPORTED for what the interpreter cannot do.
    """
    os.environ["TRITON_INTERPRET"] = "1"  # before the first version is decorated
    repair()
    stop_benchmarking()
    unsupported = _unsupported(job)
    if unsupported is not None:
        return Refusal(RefusalKind.UNSUPPORTED, unsupported)
    workload, notes = _widened(job.workload)
    watch = Watch()
    session = Session(job.baseline, workload, "cpu", watch.around, explained)
    candidate = load_version(job.candidate)
    inputs = _inputs(session, watch, job.seed)
    if isinstance(inputs, Refusal):
        return inputs
    checked = _check_all(session, candidate, inputs)
    if isinstance(checked, Refusal):
        return checked
    comparisons, mismatch = checked
    return CheckReply(
        comparisons=comparisons,
        mismatch=mismatch,
        outside_domain=(),
        nondeterministic=False,
        independent_reference=session.independent,
        not_checked=(*notes, *session.notes, *_not_checked(workload, inputs)),
        device_seconds=0.0,
        baseline_traffic=_count(session, session.baseline, inputs[0], watch),
        candidate_traffic=None if mismatch else _count(session, candidate, inputs[0], watch),
    )


def _not_checked(workload: Workload, inputs: tuple[PlannedInput, ...]) -> tuple[str, ...]:
    races = "races between programs and the compiled code itself"
    ran = [item.case for item in inputs]
    left = [case.label for case in workload.cases if case not in ran]
    if not left:
        return (races,)
    if len(left) == len(workload.cases):
        return ("the declared sizes: the interpreter ran on small ones", races)
    return (f"other declared sizes, too large for the interpreter: {'; '.join(left)}", races)


def _unsupported(job: InterpretJob) -> str | None:
    lacking = missing()
    if lacking is not None:
        return f"this Triton's interpreter has no {lacking}"
    for source in (job.baseline, job.candidate):
        found = _CANNOT.search(reached_text(source))
        if found is not None:
            return f"the interpreter does not compute `{found.group()}` correctly"
    return None


def _widened(workload: Workload) -> tuple[Workload, tuple[str, ...]]:
    """The workload with float32 instead of the types that the interpreter computes wrongly."""
    widened = [widen(case) for case in workload.cases]
    names = dict.fromkeys(name for _, found in widened for name in found)
    notes = (f"bf16 and fp8: {', '.join(names)} were given as f32",) if names else ()
    cases = tuple(case for case, _ in widened)
    return dataclasses.replace(workload, cases=cases), notes


def _inputs(session: Session, watch: Watch, seed: int) -> tuple[PlannedInput, ...] | Refusal:
    """Inputs that the baseline accepts and computes correctly, or why there are none."""
    found: list[PlannedInput] = []
    problems: list[Outside | Refusal] = []
    for case in sorted(session.workload.cases, key=elements)[:_MOST_CASES]:
        for chosen in (*plan.candidate_groups(case, True), ()):
            odd, even = plan.interpreted(case, chosen)
            if found:  # the first case has shown the loops; of others one shape is enough
                odd, even = odd[:1], even[:1]
            accepted = _accepted(session, odd, seed, problems)
            accepted = accepted or _accepted(session, even, seed, problems)[:2]
            shapes = {item.label for item in found}
            found.extend(item for item in accepted if item.label not in shapes)
            if accepted:
                break
    if found:
        return (*found, *_beyond(session, seed))
    for problem in problems:
        if isinstance(problem, Refusal):
            return problem
    return _at_declared(session, watch, seed, [p for p in problems if isinstance(p, Outside)])


def _beyond(session: Session, seed: int) -> list[PlannedInput]:
    """Shapes longer than any declared one, which reach what a rewrite keeps for them."""
    for chosen in plan.candidate_groups(plan.smallest(session.workload), True):
        forms = plan.interpreted_beyond(session.workload, chosen)
        accepted = _accepted(session, forms, seed + 40, [])
        if accepted:
            return accepted
    return []


def _accepted(
    session: Session, forms: tuple[Case, ...], seed: int, problems: list[Outside | Refusal]
) -> list[PlannedInput]:
    accepted: list[PlannedInput] = []
    for i, form in enumerate(forms):
        variant = _VARIANTS[i % len(_VARIANTS)]
        item = PlannedInput(form, variant, seed + i, False)
        prepared = _serving(session, item)
        if isinstance(prepared, Prepared):
            accepted.append(item)
        else:
            problems.append(prepared)
    return accepted


def _serving(session: Session, item: PlannedInput) -> Prepared | Outside | Refusal:
    """As ``Session.prepare``; a baseline that is its own truth must show that it can be.

    It must write all of its outputs, repeat them, and make them depend on the inputs.
    """
    prepared = session.prepare(item)
    if session.independent or not isinstance(prepared, Prepared):
        return prepared
    if any(_unwritten(output.tensor) for output in prepared.outputs):
        return Outside(f"your kernel leaves elements of its output unwritten on {item.label}")
    if not session.steady(item, prepared):
        return Outside(f"{UNSTEADY} ({item.label})", wrong=True)
    other = session.prepare(dataclasses.replace(item, seed=item.seed + _OTHER_SEED))
    if not isinstance(other, Prepared):
        return other
    reason = why_no_oracle(prepared.expected, other.expected)
    if reason is None:
        return prepared
    return Outside(f"{reason}: it cannot tell a right kernel from a wrong one", wrong=True)


def _unwritten(tensor: Any) -> bool:
    """True if an element has the very bits that buffers hold before they are written."""
    import torch

    if not tensor.dtype.is_floating_point or tensor.numel() == 0:
        return False
    stored = tensor.contiguous().reshape(-1, 1).view(torch.uint8)
    return bool((stored == POISON).all(1).any())


def _at_declared(
    session: Session, watch: Watch, seed: int, problems: list[Outside]
) -> tuple[PlannedInput, ...] | Refusal:
    """No shape served: see what a declared one says, launching nothing if that would take long.

    An entry or reference that raises there is at fault; a launch that is too large is not.
    """
    case = plan.smallest(session.workload)
    item = PlannedInput(case, Variant.NORMAL, seed, True)
    small = elements(case) <= _MOST_LAUNCHED
    found: Prepared | Outside | Refusal = Outside("the declared sizes are too large")
    if elements(case) <= _MOST_BUILT:
        watch.most_programs = MOST_PROGRAMS if small else 0
        found = _serving(session, item)
        watch.most_programs = MOST_PROGRAMS
    if isinstance(found, Prepared) and small:
        return (item,)
    if isinstance(found, Refusal) and found.kind is not RefusalKind.UNSUPPORTED:
        return found
    outside = [*problems, *([found] if isinstance(found, Outside) else [])]
    wrong = next((problem.reason for problem in outside if problem.wrong), None)
    if wrong is not None:
        return Refusal(RefusalKind.REFERENCE, wrong)
    if isinstance(found, Refusal) and watch.largest_grid <= MOST_PROGRAMS and small:
        return found  # it is not the size that is in the way
    return _too_large(session, watch, outside)


def _too_large(session: Session, watch: Watch, problems: list[Outside]) -> Refusal:
    case = plan.smallest(session.workload)
    most = elements(case) * MOST_PROGRAMS // max(watch.largest_grid, MOST_PROGRAMS)
    most = 1 << (max(min(most, _MOST_LAUNCHED), 1).bit_length() - 1)
    first = f": {problems[0].reason}" if problems else ""
    remedy = "a case" if session.independent else "a reference or a case"
    text = f"the interpreter cannot run {case.label}, and no smaller size serves{first}"
    return Refusal(RefusalKind.UNSUPPORTED, f"{text}; declare {remedy} of at most {most} elements")


def _check_all(
    session: Session, candidate: Version, inputs: tuple[PlannedInput, ...]
) -> tuple[tuple[Comparison, ...], Mismatch | None] | Refusal:
    comparisons: list[Comparison] = []
    for item in inputs:
        prepared = session.prepare(item)
        if not isinstance(prepared, Prepared):
            continue
        result = session.call(candidate, prepared.inputs, item.seed)
        if result.error is not None:
            return _raised(item, result.error, candidate)
        outcome = session.judged(item, prepared, result, candidate)
        if isinstance(outcome, Mismatch):
            if not session.steady(item, prepared):
                return Refusal(RefusalKind.REFERENCE, f"{UNSTEADY} ({item.label})")
            return tuple(comparisons), outcome
        comparisons.append(outcome)
    return tuple(comparisons), None


def _raised(item: PlannedInput, error: BaseException, candidate: Version) -> Refusal:
    refusal = explained(error, candidate.source)
    return dataclasses.replace(refusal, message=f"on {item.label}: {refusal.message}")


def _count(session: Session, version: Version, item: PlannedInput, watch: Watch) -> Traffic | None:
    """Traffic of one call; None if it does not run."""
    key = (version.source.text, item.label)
    if key not in _traffic:
        prepared = session.prepare(item)
        if not isinstance(prepared, Prepared):
            return None
        if session.call(version, prepared.inputs, item.seed).error is not None:
            return None
        _traffic[key] = watch.counter.total()
    return _traffic[key]
