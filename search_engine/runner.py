"""Drives one run: baseline, then ask, propose, ladder, tell, until there is a reason to end.

This is the only place that reads a clock. Everything it learns goes out as events; everything it
may offer is in the archive before it is announced.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import random
import time
from dataclasses import dataclass

from search_engine.archive.sqlite import SqliteArchive
from search_engine.domain.candidate import Candidate, Numerics, candidate_id
from search_engine.domain.event import (
    BaselineMeasured,
    CandidateEvaluated,
    ImprovementFound,
    Progress,
    StateChanged,
)
from search_engine.domain.job import (
    BaselineJob,
    BaselineReply,
    CheckReply,
    Completed,
    Crashed,
    Expired,
    InterpretJob,
    JobResult,
    Lane,
    Refusal,
    RefusalKind,
)
from search_engine.domain.kernel import OperationKind
from search_engine.domain.ports import Executor, Listener
from search_engine.domain.run import (
    Correctness,
    Evidence,
    ExitReason,
    Rung,
    RunId,
    RunState,
    Spend,
)
from search_engine.domain.target import Device, Environment, Target
from search_engine.frontends.triton import parse_module
from search_engine.frontends.unit import find_unit
from search_engine.ladder import Ladder, Ledger, device_seconds
from search_engine.proposers.context import Context
from search_engine.proposers.registry import configuration_proposers, structure_proposers
from search_engine.request import Prepared
from search_engine.rungs._base import Failed, Proof, Pruned, RungOutcome, Task, last_line
from search_engine.rungs.profile import roofline_fraction
from search_engine.search.engine import Done, Engine, EngineFault, Evaluate, Expand
from search_engine.search.presets import SHAPES

_BASELINE_DEADLINE_SECONDS = 120.0
_SANITIZER = "compute-sanitizer was not run"
_PORTION = 32
"""Candidates of one portion: enough to keep sixteen compile workers busy twice over."""
_CONFIGURATIONS_PER_REWRITE = 4
"""A structure is judged by the best of a few configurations, not by its first."""
_AT_ROOFLINE = 0.9
"""The best hand-made kernels measured ended at 88 to 103 % of the roofline."""


class BaselineRefused(Exception):
    """The user's own kernel cannot serve as a baseline; the message says why."""

    def __init__(self, message: str, refusal: Refusal | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal


@dataclass(slots=True)
class RunResult:
    """What a driven search leaves behind."""

    reason: ExitReason
    detail: str
    engine: Engine
    ledger: Ledger
    baseline_reply: BaselineReply | None
    spend: Spend


class Runner:
    """One run on an executor that is already there."""

    def __init__(
        self,
        prepared: Prepared,
        executor: Executor,
        archive: SqliteArchive | None,
        run: RunId,
        environment: Environment,
        device: Device | None,
        target: Target,
        emit: Listener,
    ) -> None:
        self._prepared = prepared
        self._executor = executor
        self._archive = archive
        self._run_id = run
        self._environment = environment
        self._device = device
        self._emit = emit
        self._started = time.monotonic()
        self._ledger = Ledger(prepared.budget)
        self._rng = random.Random(prepared.request.seed)
        self._target = target
        self._rejected = 0
        self._offered: set[tuple[str, bool]] = set()
        self._reply: BaselineReply | None = None
        shape = SHAPES[prepared.request.effort]
        self.engine = Engine(self._baseline(), shape, target, device is not None)
        self._structures = structure_proposers(prepared.request.rules)

    async def run(self) -> RunResult:
        """Drive the search to its end. A cancelled await leaves the archive as it stands."""
        self._state(RunState.BASELINE, "measuring the baseline")
        self._reply = reply = await self._measure_baseline()
        ladder = Ladder(self._task(reply), self._executor, self._ledger)
        await ladder.run(Rung.COMPILE, (self._baseline(),), 0)
        self._state(RunState.SEARCHING, "searching")
        try:
            reason, detail = await self._drive(ladder)
        except EngineFault as fault:
            reason, detail = ExitReason.FAULTED, str(fault)
        return RunResult(reason, detail, self.engine, self._ledger, reply, self.spend())

    def spend(self) -> Spend:
        """What has been used so far."""
        ledger = self._ledger
        return Spend(
            wall_seconds=self._elapsed(),
            device_seconds=ledger.device_seconds,
            evaluations=ledger.evaluations,
            device_seconds_per_rung=dict(ledger.per_rung),
            evaluations_per_proposer=dict(ledger.per_proposer),
            full_evaluation_device_seconds=ledger.full_evaluation_device_seconds,
            screening_device_seconds=ledger.per_rung.get(Rung.QUICK_TIMING.value, 0.0),
        )

    def _baseline(self) -> Candidate:
        text = self._prepared.request.text
        identity = candidate_id(text)
        return Candidate(identity, text, None, identity, "user", (), (), (), Numerics.EXACT)

    def _task(self, reply: BaselineReply | None) -> Task:
        prepared = self._prepared
        return Task(
            path=prepared.request.path.resolve(),
            module=prepared.module,
            unit=prepared.unit,
            baseline=self._baseline(),
            workload=prepared.workload,
            target=self._target,
            seed=prepared.request.seed + 1,
            measured=self._device is not None,
            baseline_reply=reply,
        )

    async def _measure_baseline(self) -> BaselineReply | None:
        task = self._task(None)
        source = task.source(task.baseline)
        if self._device is None:
            job = InterpretJob(source, source, task.workload, task.seed)
            result = await self._executor.run(job, Lane.INTERPRET, self._baseline_deadline())
            self._refuse_baseline(result)
            return None
        baseline = BaselineJob(source, task.workload, task.seed)
        result = await self._executor.run(baseline, Lane.DEVICE, self._baseline_deadline())
        self._refuse_baseline(result)
        assert isinstance(result, Completed) and isinstance(result.reply, BaselineReply)
        reply = self._with_honest_roofline(result.reply)
        self._ledger.charge(Rung.FULL_TIMING, device_seconds(reply))
        self._emit(
            BaselineMeasured(
                reply.median_us, reply.low_us, reply.high_us, reply.noise,
                self._device.name, self._elapsed(),
            )
        )  # fmt: skip
        return reply

    def _baseline_deadline(self) -> float:
        """The baseline may not take more than the whole budget."""
        return min(_BASELINE_DEADLINE_SECONDS, self._prepared.budget.wall_seconds)

    def _with_honest_roofline(self, reply: BaselineReply) -> BaselineReply:
        """Bytes alone say nothing about the limit of a kernel with matrix products."""
        unit = self._prepared.unit
        kernels = (unit.kernel, *unit.helpers, *unit.siblings)
        dots = any(o.kind is OperationKind.DOT for k in kernels for o in k.operations)
        if dots and reply.operations is None:
            return dataclasses.replace(reply, compulsory_bytes=None)
        return reply

    def _refuse_baseline(self, result: JobResult) -> None:
        match result:
            case Completed(reply=CheckReply(mismatch=mismatch)) if mismatch is not None:
                raise BaselineRefused(
                    f"your kernel disagrees with its reference on {mismatch.case} "
                    f"({mismatch.values}): {mismatch.got:g} where {mismatch.expected:g} is expected"
                )
            case Completed(reply=Refusal(kind=kind, message=message) as refusal):
                raise BaselineRefused(_baseline_sentence(kind, message), refusal)
            case Completed():
                return
            case Expired(deadline_seconds=seconds):
                raise BaselineRefused(f"your kernel did not return within {seconds:.0f} s")
            case Crashed(detail=detail):
                raise BaselineRefused(f"your kernel ended its process: {last_line(detail)}")

    async def _drive(self, ladder: Ladder) -> tuple[ExitReason, str]:
        share = SHAPES[self._prepared.request.effort].search_share
        while True:
            spent = self._ledger.exhausted(self._elapsed(), share)
            if spent is not None:
                self.engine.stop_searching(ExitReason.BUDGET)
            ask = self.engine.ask()
            match ask:
                case Done(reason=reason):
                    return reason, spent or ""
                case Expand():
                    self.engine.tell(await asyncio.to_thread(self._propose, ask, share))
                case Evaluate(rung=rung, candidates=candidates):
                    over = self._ledger.exhausted(self._elapsed(), 1.0)
                    if over is not None and rung is not Rung.AUDIT:
                        return ExitReason.BUDGET, over
                    if rung in (Rung.FULL_CORRECTNESS, Rung.AUDIT):
                        self._state(RunState.VERIFYING, f"verifying {candidates[0].title}")
                    outcomes = await self._evaluate(ladder, ask, share)
                    self.engine.tell(outcomes)
                    self._announce(rung, candidates, outcomes)

    async def _evaluate(
        self, ladder: Ladder, ask: Evaluate, share: float
    ) -> tuple[RungOutcome, ...]:
        """Run a rung; a large field in portions, so that a spent budget ends it half-way."""
        if ask.rung not in (Rung.COMPILE, Rung.SMOKE):
            return await ladder.run(ask.rung, ask.candidates, ask.rounds)
        outcomes: list[RungOutcome] = []
        while len(outcomes) < len(ask.candidates):
            rest = ask.candidates[len(outcomes) :]
            spent = self._ledger.exhausted(self._elapsed(), share)
            if spent is not None:
                outcomes.extend(Pruned(f"the budget of {spent} was spent") for _ in rest)
            else:
                outcomes.extend(await ladder.run(ask.rung, rest[:_PORTION], ask.rounds))
        return tuple(outcomes)

    def _propose(self, ask: Expand, share: float) -> tuple[Candidate, ...]:
        """Rewrites of a node, each with a few configurations, then configurations of the node."""
        if self._ledger.exhausted(self._elapsed(), share) is not None:
            return ()
        context = self._context(ask.node)
        if context is None:
            return ()
        proposed = [c for p in self._structures for c in p.propose(context, self._rng)]
        found: list[Candidate] = []
        for rewrite in proposed[: ask.rewrites]:
            found.append(rewrite)
            if ask.configurations:
                found.extend(self._configure(rewrite, _CONFIGURATIONS_PER_REWRITE))
        if ask.configurations:
            found.extend(self._configure(ask.node, ask.configurations))
        return tuple(found)

    def _configure(self, node: Candidate, limit: int) -> tuple[Candidate, ...]:
        context = self._context(node)
        if context is None:
            return ()
        proposers = configuration_proposers(limit)
        return tuple(c for p in proposers for c in p.propose(context, self._rng))

    def _context(self, node: Candidate) -> Context | None:
        """What proposers may look at; None if the unit is not found in the node's text."""
        module = parse_module(node.text, str(self._prepared.request.path))
        unit = find_unit(module, self._prepared.unit.kernel.qualified_name)
        if unit is None:
            return None
        return Context(node, module, unit, self._prepared.workload, self._target)

    def _announce(
        self, rung: Rung, candidates: tuple[Candidate, ...], outcomes: tuple[RungOutcome, ...]
    ) -> None:
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            verdict = outcome.verdict if isinstance(outcome, Failed) else None
            self._rejected += verdict is not None
            self._emit(
                CandidateEvaluated(candidate.id, candidate.title, rung, verdict, self._elapsed())
            )
        self._offer_new()
        incumbent = self.engine.incumbent()
        best = None if incumbent is None else incumbent[1].speedup
        self._emit(
            Progress(
                self._ledger.evaluations, self._rejected, best, self._elapsed(),
                self._prepared.budget.wall_seconds,
            )
        )  # fmt: skip

    def _offer_new(self) -> None:
        if self._device is None:
            for node in self.engine.unmeasured()[:1]:
                assert node.check is not None
                self._offer(node.candidate, self.evidence(node.candidate, None, node.check), False)
            return
        incumbent, audited = self.engine.incumbent(), self.engine.audited
        if incumbent is not None:
            candidate, proof = incumbent
            verified = audited is not None and audited[0].id == candidate.id
            check = proof.check or self.engine.tree[candidate.id].check
            if check is not None:
                self._offer(candidate, self.evidence(candidate, proof, check), verified)
            fraction = self._fraction(proof)
            self.engine.at_roofline = fraction is not None and fraction >= _AT_ROOFLINE

    def _offer(self, candidate: Candidate, evidence: Evidence, verified: bool) -> None:
        if (candidate.id, verified) in self._offered:
            return
        self._offered.add((candidate.id, verified))
        event = ImprovementFound(candidate, evidence, verified, self._elapsed())
        if self._archive is not None:
            self._archive.append_improvement(self._run_id, event)
        self._emit(event)

    def evidence(self, candidate: Candidate, proof: Proof | None, check: CheckReply) -> Evidence:
        """Everything a person needs to believe a rewrite."""
        return Evidence(
            candidate=candidate.id,
            correctness=correctness(check, self._device is not None),
            speedup=proof.speedup if proof is not None else None,
            timings=proof.timings if proof is not None else (),
            noise=self._reply.noise if self._reply is not None else None,
            roofline_fraction=None if proof is None else self._fraction(proof),
            environment=self._environment,
            steps=candidate.steps or (candidate.title,),
            measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )

    def _fraction(self, proof: Proof) -> float | None:
        if self._reply is None:
            return None
        cases = self._prepared.workload.cases
        main = max(cases, key=lambda case: case.weight).label
        time_us = next(t.candidate_us for t in proof.timings if t.cold and t.case == main)
        return roofline_fraction(self._reply, time_us)

    def _state(self, state: RunState, detail: str) -> None:
        self._emit(StateChanged(state, detail, self._elapsed()))

    def _elapsed(self) -> float:
        return time.monotonic() - self._started


def correctness(check: CheckReply, measured: bool) -> Correctness:
    """What was compared, in terms for people."""
    return Correctness(
        method="device" if measured else "CPU interpreter",
        inputs=len(check.comparisons),
        cases=tuple(dict.fromkeys(item.case for item in check.comparisons)),
        worst_error=max((item.error for item in check.comparisons), default=0.0),
        independent_reference=check.independent_reference,
        nondeterministic=check.nondeterministic,
        outside_domain=check.outside_domain,
        not_checked=(*check.not_checked, *((_SANITIZER,) if measured else ())),
    )


def _baseline_sentence(kind: RefusalKind, message: str) -> str:
    if message.startswith("your kernel"):
        return message
    match kind:
        case RefusalKind.COMPILE:
            return f"your kernel does not compile: {message}"
        case RefusalKind.RUNTIME:
            return f"your kernel fails: {message}"
        case RefusalKind.WORKLOAD:
            return f"the workload cannot be used: {message}"
        case RefusalKind.REFERENCE | RefusalKind.ENVIRONMENT:
            return message
        case RefusalKind.UNSUPPORTED:
            return f"cannot tell without a GPU: {message}"
