"""The search as ask and tell: coarse to fine, a generation at a time.

The engine is deterministic from its seed and answers, does no I/O and reads no clock. ``ask`` gives
the next thing to do, ``tell`` takes what came of it. Inside, the search is written as a generator,
so that its steps read in their order.

A generation develops the selected nodes (rewrites of their structure first, configurations after),
climbs the cheap rungs with what is new, screens the survivors against the incumbent, and proves the
fastest if it gained. The first proof is audited at once, so that a verified improvement is there
early; the last incumbent is audited at the end.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from search_engine.domain.candidate import Candidate, CandidateId
from search_engine.domain.facts import CompileFacts
from search_engine.domain.job import CheckReply
from search_engine.domain.ordering import is_better
from search_engine.domain.run import ExitReason, Rung
from search_engine.domain.statistics import median
from search_engine.domain.target import Target
from search_engine.domain.verdict import Improved, Unmeasured
from search_engine.predict.cost import Untimed, order_unmeasured
from search_engine.rungs._base import Failed, Fault, Passed, Proof, Pruned, RungOutcome, Screened
from search_engine.search.halving import STAGES, keep
from search_engine.search.presets import Shape
from search_engine.search.select_beam import select
from search_engine.search.tree import Node, NodeState, Tree

_PROOF_ATTEMPTS = 3
"""How many of the fastest are proved in one generation if the first ones fail."""
_UNMEASURED_CANDIDATES = 8
"""Candidates that go to the interpreter in one generation; each takes seconds there."""


@dataclass(frozen=True, slots=True)
class Expand:
    """Ask the proposers for at most this many candidates from a node."""

    node: Candidate
    rewrites: int
    configurations: int


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Run a rung for some candidates. In screening the first one is the anchor."""

    rung: Rung
    candidates: tuple[Candidate, ...]
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do."""

    reason: ExitReason
    detail: str


Ask: TypeAlias = Expand | Evaluate | Done
Answer: TypeAlias = tuple[Candidate, ...] | tuple[RungOutcome, ...]
_Steps: TypeAlias = Generator[Expand | Evaluate, Answer, ExitReason]


class EngineFault(Exception):
    """The machine failed under the search; the message says how."""


class Engine:
    """One search."""

    def __init__(self, baseline: Candidate, shape: Shape, target: Target, measured: bool) -> None:
        self.tree = Tree(baseline)
        self.proved: list[tuple[Candidate, Proof]] = []
        """Candidates with full correctness and timing, in the order of proof."""
        self.audited: tuple[Candidate, Proof] | None = None
        self.at_roofline = False
        """Set by the driver when the incumbent reached the roofline."""
        self._shape = shape
        self._target = target
        self._measured = measured
        self._search_over: ExitReason | None = None
        self._developed: set[CandidateId] = set()
        self._steps = self._plan()
        self._next: Expand | Evaluate | None = None
        self._reason: ExitReason | None = None
        self._advance(None)

    def stop_searching(self, reason: ExitReason) -> None:
        """Start nothing new; finish by verifying what is there."""
        if self._search_over is None:
            self._search_over = reason

    def ask(self) -> Ask:
        """What to do next. The same answer until ``tell`` is called."""
        if self._next is not None:
            return self._next
        assert self._reason is not None
        return Done(self._reason, "")

    def tell(self, answer: Answer) -> None:
        """What came of the last ``ask``. Raises EngineFault if a rung met a fault."""
        self._advance(answer)

    def incumbent(self) -> tuple[Candidate, Proof] | None:
        """The fastest proved candidate."""
        return max(self.proved, key=lambda item: item[1].speedup.value, default=None)

    def unmeasured(self) -> tuple[Node, ...]:
        """Correct but untimed candidates, the most promising first."""
        found = (n for n in self.tree if isinstance(n.verdict, Unmeasured))
        untimed = (Untimed(node.candidate, node.traffic, node.facts) for node in found)
        ordered = order_unmeasured(untimed, self._target)
        return tuple(self.tree[item.candidate.id] for item in ordered)

    def _advance(self, answer: Answer | None) -> None:
        try:
            if answer is None:
                self._next = next(self._steps)
            else:
                self._next = self._steps.send(answer)
        except StopIteration as stop:
            self._next, self._reason = None, stop.value

    def _plan(self) -> _Steps:
        for _ in range(self._shape.generations):
            nodes = self._select()
            if not nodes:
                return (yield from self._finish(ExitReason.STALLED))
            fresh = yield from self._develop(nodes)
            survivors = yield from self._climb(fresh)
            if self._measured:
                yield from self._screen(survivors)
                yield from self._prove()
            if self.at_roofline:
                return (yield from self._finish(ExitReason.ROOFLINE))
            if self._search_over is not None:
                return (yield from self._finish(self._search_over))
        return (yield from self._finish(ExitReason.STALLED))

    def _select(self) -> tuple[Node, ...]:
        if self._measured:
            return select(self.tree, self._shape.beam, frozenset(self._developed))
        leaders = [self.tree[self.tree.root], *self.unmeasured()]
        waiting = [node for node in leaders if node.candidate.id not in self._developed]
        return tuple(waiting[: self._shape.beam])

    def _develop(self, nodes: tuple[Node, ...]) -> Generator[Expand, Answer, tuple[Candidate, ...]]:
        fresh: list[Candidate] = []
        for node in nodes:
            self._developed.add(node.candidate.id)
            configurations = self._shape.configurations if self._measured else 0
            answer = yield Expand(node.candidate, self._shape.rewrites, configurations)
            node.state = NodeState.EXPANDED if node.state is NodeState.OPEN else node.state
            candidates = tuple(item for item in answer if isinstance(item, Candidate))
            fresh.extend(self.tree.insert(candidates))
        return tuple(fresh)

    def _climb(
        self, candidates: tuple[Candidate, ...]
    ) -> Generator[Evaluate, Answer, tuple[Candidate, ...]]:
        for rung in (Rung.PARSE, Rung.COMPILE, Rung.ESTIMATE):
            candidates = yield from self._evaluate(rung, candidates)
        if not self._measured:
            candidates = candidates[:_UNMEASURED_CANDIDATES]
        return (yield from self._evaluate(Rung.SMOKE, candidates))

    def _screen(self, candidates: tuple[Candidate, ...]) -> Generator[Evaluate, Answer, None]:
        """Add rounds for fewer and fewer; the anchor is the fastest node so far."""
        ranked = self.tree.ranked()
        anchor = ranked[0] if ranked else self.tree[self.tree.root]
        anchor_ratio = anchor.ratio or 1.0
        samples: dict[CandidateId, tuple[list[float], list[float]]] = {}
        for stage in STAGES:
            if not candidates:
                return
            group = (anchor.candidate, *candidates)
            answer = yield Evaluate(Rung.QUICK_TIMING, group, stage.rounds)
            ratios: dict[str, float] = {}
            for candidate, outcome in zip(candidates, answer[1:], strict=True):
                if not self._take(Rung.QUICK_TIMING, candidate, outcome):
                    continue
                assert isinstance(outcome, Passed) and isinstance(outcome.finding, Screened)
                held = samples.setdefault(candidate.id, ([], []))
                held[0].extend(outcome.finding.anchor_us)
                held[1].extend(outcome.finding.candidate_us)
                ratio = median([a / c for a, c in zip(*held, strict=True)])
                ratios[candidate.id] = ratio
                self.tree[candidate.id].ratio = ratio * anchor_ratio
            kept = keep(ratios, stage)
            candidates = tuple(self.tree[CandidateId(item)].candidate for item in kept)

    def _prove(self) -> Generator[Evaluate, Answer, None]:
        """Full correctness and full timing for the fastest, if it gained on what is proved."""
        incumbent = self.incumbent()
        bar = incumbent[1].speedup.value if incumbent is not None else 1.0
        known = {candidate.id for candidate, _ in self.proved}
        for node in self.tree.ranked()[:_PROOF_ATTEMPTS]:
            if node.candidate.id in known or not is_better(node.ratio or 0.0, bar):
                break
            passed = yield from self._evaluate(Rung.FULL_CORRECTNESS, (node.candidate,))
            passed = yield from self._evaluate(Rung.FULL_TIMING, passed)
            if passed:
                break
        if self.proved and self.audited is None:
            yield from self._audit()

    def _finish(self, reason: ExitReason) -> _Steps:
        """Prove what the search left unproved, and audit the incumbent."""
        if self._measured:
            yield from self._prove()
            yield from self._audit()
        return reason

    def _audit(self) -> Generator[Evaluate, Answer, None]:
        """Audit the incumbent; if it fails, the next one."""
        for _ in range(_PROOF_ATTEMPTS):
            incumbent = self.incumbent()
            if incumbent is None:
                return
            if self.audited is not None and self.audited[0].id == incumbent[0].id:
                return
            if (yield from self._evaluate(Rung.AUDIT, (incumbent[0],))):
                return
            self.proved = [item for item in self.proved if item[0].id != incumbent[0].id]

    def _evaluate(
        self, rung: Rung, candidates: tuple[Candidate, ...]
    ) -> Generator[Evaluate, Answer, tuple[Candidate, ...]]:
        if not candidates:
            return ()
        answer = yield Evaluate(rung, candidates)
        pairs = zip(candidates, answer, strict=True)
        return tuple(c for c, outcome in pairs if self._take(rung, c, outcome))

    def _take(self, rung: Rung, candidate: Candidate, outcome: object) -> bool:
        """Note an outcome; True if the candidate goes on."""
        node = self.tree[candidate.id]
        node.rung = rung
        match outcome:
            case Failed(verdict=verdict):
                node.verdict, node.state = verdict, NodeState.SETTLED
                return False
            case Pruned():
                node.state = NodeState.PRUNED
                return False
            case Fault(message=message):
                raise EngineFault(message)
            case Passed(finding=finding):
                self._learn(rung, node, finding)
                return True
            case _:
                raise TypeError(f"{outcome!r} is not an outcome")

    def _learn(self, rung: Rung, node: Node, finding: object) -> None:
        match finding:
            case CompileFacts():
                node.facts = finding
            case CheckReply():
                node.check = finding
                if not self._measured:
                    traffic = (finding.candidate_traffic, finding.baseline_traffic)
                    node.verdict, node.state = Unmeasured(*traffic), NodeState.SETTLED
            case Proof():
                self._note_proof(rung, node, finding)
            case _:
                pass

    def _note_proof(self, rung: Rung, node: Node, proof: Proof) -> None:
        entry = (node.candidate, proof)
        if rung is Rung.AUDIT:
            self.audited = entry
            node.verdict = Improved(proof.speedup, proof.timings, verified=True)
            self.proved = [entry if c.id == node.candidate.id else (c, p) for c, p in self.proved]
        else:
            self.proved.append(entry)
