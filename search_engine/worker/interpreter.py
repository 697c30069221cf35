"""Check a candidate without a device: Triton's CPU interpreter on shrunk inputs.

The interpreter computes bf16 and fp8 wrongly, so such arguments become float32 and bodies that
name those types are refused; inline assembly and libdevice are not there. It says nothing about
races, and lanes run one after another.
"""

from __future__ import annotations

import dataclasses
import os
import re

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
from search_engine.worker import loader, plan
from search_engine.worker.extents import elements, widen
from search_engine.worker.fake_driver import stop_benchmarking
from search_engine.worker.interpreter_hooks import Watch, missing, out_of_bounds
from search_engine.worker.interpreter_repairs import repair
from search_engine.worker.plan import PlannedInput
from search_engine.worker.reach import reached_text
from search_engine.worker.run import Version, load_version
from search_engine.worker.session import Outside, Prepared, Session
from search_engine.worker.values import Variant

_CANNOT = re.compile(r"\b(?:tl\.(?:bfloat16|float8\w*)|inline_asm\w*|libdevice|tl\.extra)\b")
_VARIANTS = (Variant.TRIPLED, Variant.NORMAL, Variant.OUTLIER, Variant.NEGATED)
_MOST_CASES = 2

_traffic: dict[tuple[str, str], Traffic] = {}
"""Traffic of versions already counted, by text and shape; the baseline's is asked for often."""


def interpret(job: InterpretJob) -> CheckReply | Refusal:
    """Compare on a few shrunk inputs, every access checked against the bounds of its tensor.

    Refuses with RUNTIME (and the user's line) for an access out of bounds in the candidate,
    UNSUPPORTED where the interpreter cannot tell, REFERENCE if the baseline is wrong itself.
    """
    os.environ["TRITON_INTERPRET"] = "1"  # before the first version is decorated
    repair()
    stop_benchmarking()
    unsupported = _unsupported(job)
    if unsupported is not None:
        return Refusal(RefusalKind.UNSUPPORTED, f"cannot tell: {unsupported}")
    workload, notes = _widened(job.workload)
    watch = Watch()
    session = Session(job.baseline, workload, "cpu", watch.around)
    candidate = load_version(job.candidate)
    inputs = _inputs(session, job.seed)
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
        not_checked=(*notes, *session.notes, *_LIMITS),
        device_seconds=0.0,
        baseline_traffic=_count(session, session.baseline, inputs[0], watch),
        candidate_traffic=None if mismatch else _count(session, candidate, inputs[0], watch),
    )


_LIMITS = (
    "the declared sizes: the interpreter ran on small ones",
    "races between programs and the compiled code itself",
)


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


def _inputs(session: Session, seed: int) -> tuple[PlannedInput, ...] | Refusal:
    """Inputs that the baseline accepts and computes correctly, or why there are none."""
    found: list[PlannedInput] = []
    problems: list[Outside | Refusal] = []
    for case in sorted(session.workload.cases, key=elements)[:_MOST_CASES]:
        for chosen in (*plan.candidate_groups(case, session.independent), ()):
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
    return _nothing_ran([p.reason for p in problems if isinstance(p, Outside)])


def _beyond(session: Session, seed: int) -> list[PlannedInput]:
    """Shapes longer than any declared one, which reach what a rewrite keeps for them."""
    for chosen in plan.candidate_groups(plan.smallest(session.workload), session.independent):
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
        prepared = session.prepare(item)
        if isinstance(prepared, Prepared):
            accepted.append(item)
        else:
            problems.append(prepared)
    return accepted


def _nothing_ran(reasons: list[str]) -> Refusal:
    wrong = [reason for reason in reasons if "disagrees" in reason]
    if wrong:
        return Refusal(RefusalKind.REFERENCE, wrong[0])
    text = reasons[0] if reasons else "every declared size is too large, and no extent may vary"
    return Refusal(RefusalKind.UNSUPPORTED, f"cannot tell: {text}")


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
            return tuple(comparisons), outcome
        comparisons.append(outcome)
    return tuple(comparisons), None


def _raised(item: PlannedInput, error: BaseException, candidate: Version) -> Refusal:
    file = str(loader.scratch_file(candidate.source))
    bounds = out_of_bounds(error, file)
    if bounds is not None:
        message, line = bounds
        return Refusal(RefusalKind.RUNTIME, f"on {item.label}: {message}", line)
    cause = error.__cause__ or error
    line = loader.line_of(cause, candidate.source)
    text = f"on {item.label}: {type(cause).__name__}: {str(cause)[:1000]}"
    if isinstance(cause, NotImplementedError) or type(cause).__name__ == "TooManyPrograms":
        return Refusal(RefusalKind.UNSUPPORTED, f"cannot tell: {text}", line)
    return Refusal(RefusalKind.RUNTIME, text, line)


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
