"""Compare a candidate with the baseline and the truth on the device, over the input plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from search_engine.domain.job import (
    CheckJob,
    CheckReply,
    Comparison,
    Depth,
    Mismatch,
    Refusal,
    RefusalKind,
)
from search_engine.domain.workload import Case
from search_engine.worker import plan, precision
from search_engine.worker.extents import Group, pinned_groups
from search_engine.worker.plan import PlannedInput
from search_engine.worker.reach import tiles
from search_engine.worker.run import Output, Version, load_version
from search_engine.worker.session import UNSTEADY, Outside, Prepared, Session
from search_engine.worker.values import Variant


def check(job: CheckJob) -> CheckReply | Refusal:
    """Run the plan of the job's depth; it ends at the first mismatch.

    Refuses with COMPILE for versions that do not load, RUNTIME if either raises, WORKLOAD and
    REFERENCE for declarations that cannot serve. On a machine without CUDA it runs on the CPU.
    """
    started = time.perf_counter()
    session = Session(job.baseline, job.workload, device())
    checker = Checker(session, load_version(job.candidate))
    chosen = legal_groups(session, job.seed)
    if job.depth is Depth.SMOKE:
        inputs = plan.smoke(job.workload, job.seed, chosen)
    else:
        small = small_case(session, chosen, job.seed)
        inputs = plan.full(job.workload, job.seed, chosen, _tiles(job), small)
    refusal = checker.run_all(inputs)
    if refusal is not None:
        return refusal
    return checker.reply(time.perf_counter() - started, _not_checked(session))


def device() -> str:
    """Where tensors live: the first CUDA device, or the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def legal_groups(session: Session, seed: int) -> tuple[Group, ...]:
    """Groups of extents that may vary: the largest set on which the reference still evaluates."""
    case = plan.smallest(session.workload)
    for chosen in plan.candidate_groups(case, session.independent):
        item = PlannedInput(plan.odd(case, chosen), Variant.TRIPLED, seed + 1, False)
        if session.makes_sense(item):
            return chosen
    return ()


def small_case(session: Session, chosen: tuple[Group, ...], seed: int) -> Case:
    """A case for value variants and layouts: as small as the baseline accepts."""
    forms = plan.small_forms(plan.smallest(session.workload), chosen)
    for form in forms[:-1]:
        item = PlannedInput(form, Variant.TRIPLED, seed + 1, False)
        if isinstance(session.prepare(item), Prepared):
            return form
    return forms[-1]


class Checker:
    """Collects what comparisons of one candidate say."""

    def __init__(self, session: Session, candidate: Version) -> None:
        self._session = session
        self._candidate = candidate
        self._comparisons: list[Comparison] = []
        self._outside: list[str] = []
        self._mismatch: Mismatch | None = None
        self._nondeterministic = False

    def run_all(self, inputs: tuple[PlannedInput, ...]) -> Refusal | None:
        """Compare on each input until one fails; a refusal if the job cannot be done."""
        for item in inputs:
            outcome = self._compare(item)
            if isinstance(outcome, Refusal):
                return outcome
            if isinstance(outcome, Mismatch):
                self._mismatch = outcome
                return None
            if isinstance(outcome, Outside):
                self._outside.append(f"{item.label}, {item.variant.value}: {outcome.reason}")
            else:
                self._comparisons.append(outcome)
                self._mismatch = self._lowered(item)
            if self._mismatch is not None:
                return None
        if not self._comparisons:
            reason = self._outside[0] if self._outside else "the plan is empty"
            return Refusal(RefusalKind.REFERENCE, f"nothing could be compared: {reason}")
        return None

    def reply(self, seconds: float, not_checked: tuple[str, ...]) -> CheckReply:
        """Everything that was found."""
        return CheckReply(
            comparisons=tuple(self._comparisons),
            mismatch=self._mismatch,
            outside_domain=tuple(self._outside),
            nondeterministic=self._nondeterministic,
            independent_reference=self._session.independent,
            not_checked=not_checked,
            device_seconds=seconds,
        )

    def _compare(self, item: PlannedInput) -> Comparison | Mismatch | Outside | Refusal:
        prepared = self._session.prepare(item)
        if not isinstance(prepared, Prepared):
            return prepared
        first: tuple[Output, ...] = ()
        worst: Comparison | None = None
        for turn in range(item.repetitions):
            outcome, outputs = self._session.judge(item, prepared, self._candidate, turn)
            if isinstance(outcome, Mismatch) and not self._session.steady(item, prepared):
                return Refusal(RefusalKind.REFERENCE, f"{UNSTEADY} ({item.label})")
            if not isinstance(outcome, Comparison):
                return outcome
            if turn == 0:
                first = outputs
            elif not _same_bits(first, outputs):
                self._nondeterministic = True
            if worst is None or outcome.error > worst.error:
                worst = outcome
        assert worst is not None
        if self._nondeterministic and self._session.workload.deterministic:
            return _statement(
                item, "two runs on the same input differ, and `deterministic` forbids it"
            )
        return worst

    def _lowered(self, item: PlannedInput) -> Mismatch | None:
        """Narrow arithmetic that the baseline does not have, unless the user allows it."""
        if "lowers-precision" in self._session.workload.allow:
            return None
        new = precision.narrowings(self._candidate.module) - precision.narrowings(
            self._session.baseline.module
        )
        if not new or self._candidate.module is self._session.baseline.module:
            return None
        return _statement(item, f"lowers precision: rounds to {', '.join(sorted(new))}")


def _statement(item: PlannedInput, reason: str) -> Mismatch:
    nothing = float("nan")
    return Mismatch(
        item.label, item.variant.value, item.seed, "", (), nothing, nothing, 0.0, reason
    )


def _same_bits(first: tuple[Output, ...], second: tuple[Output, ...]) -> bool:
    import torch

    def bits(output: Output) -> Any:
        return output.tensor.contiguous().reshape(-1).view(torch.uint8)

    return all(torch.equal(bits(a), bits(b)) for a, b in zip(first, second, strict=True))


def _tiles(job: CheckJob) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*tiles(job.candidate), *tiles(job.baseline))))


def _not_checked(session: Session) -> tuple[str, ...]:
    notes = list(_walk_pinned(session))
    notes.extend(session.notes)
    notes.append("races that did not show, and accesses outside that change nothing")
    return tuple(notes)


def _walk_pinned(session: Session) -> Iterator[str]:
    pinned = pinned_groups(plan.smallest(session.workload))
    if pinned:
        sizes = ", ".join(map(str, pinned))
        yield f"other sizes of {sizes}: a scalar or recorded values depend on them"
