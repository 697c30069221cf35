"""A made-up search space with known times, and a driver that answers the engine from it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from search_engine.domain.candidate import Assignment, Candidate, Numerics, candidate_id
from search_engine.domain.facts import CompileFacts
from search_engine.domain.job import CheckReply, Mismatch
from search_engine.domain.run import ExitReason, Rung
from search_engine.domain.verdict import Incorrect, NotImproved, Speedup, Timing
from search_engine.rungs._base import Failed, Passed, Proof, RungOutcome, Screened
from search_engine.search.engine import Done, Engine, Evaluate, Expand
from search_engine.search.presets import Shape
from search_engine.targets.registry import target_named

TARGET = target_named("sm_90")

CHECK = CheckReply((), None, (), False, True, (), 0.01)
MISMATCH = Mismatch("x", "normal", 1, "out", (0,), 1.0, 2.0, 0.1, "too far")


def baseline() -> Candidate:
    identity = candidate_id("baseline")
    return Candidate(identity, "baseline", None, identity, "user", (), (), (), Numerics.EXACT)


def child(parent: Candidate, step: str | None, block: int | None) -> Candidate:
    """A rewrite (``step``) or a configuration (``block``) of a candidate."""
    steps = (*parent.steps, step) if step else parent.steps
    setting = (Assignment("BLOCK", str(block)),) if block else ()
    text = "/".join((*steps, str(block)))
    identity = candidate_id(text)
    structure = identity if step else parent.structure
    proposer = "rules" if step else "configurations"
    return Candidate(
        identity, text, parent.id, structure, proposer, steps, steps, setting, Numerics.EXACT
    )


@dataclass
class Space:
    """``times[steps]`` maps a block size to microseconds; ``wrong`` texts are incorrect."""

    times: dict[tuple[str, ...], dict[int, float]]
    rewrites: dict[tuple[str, ...], tuple[str, ...]]
    baseline_us: float
    wrong: frozenset[str] = frozenset()
    wrong_in_full: frozenset[str] = frozenset()
    fails_audit: frozenset[str] = frozenset()
    noise: float = 0.003
    spent_us: float = 0.0
    timed: set[str] = field(default_factory=set)
    asked: list[tuple[Rung, tuple[str, ...]]] = field(default_factory=list)

    def time_us(self, candidate: Candidate) -> float:
        if candidate.text == "baseline":
            return self.baseline_us
        blocks = self.times[candidate.steps]
        default = next(iter(blocks))
        block = int(candidate.configuration[0].value) if candidate.configuration else default
        return blocks[block]

    def propose(self, ask: Expand) -> tuple[Candidate, ...]:
        steps = ask.node.steps
        found: list[Candidate] = []
        for step in self.rewrites.get(steps, ())[: ask.rewrites]:
            rewrite = child(ask.node, step, None)
            found.append(rewrite)
            # As the runner does: every rewrite comes with a few configurations.
            found.extend(child(rewrite, None, b) for b in list(self.times[rewrite.steps])[1::2])
        blocks = list(self.times.get(steps, {}))
        found.extend(child(ask.node, None, block) for block in blocks[: ask.configurations])
        return tuple(found)


def drive(space: Space, shape: Shape, seed: int = 0) -> tuple[Engine, ExitReason]:
    """Run an engine on a space to its end."""
    rng = random.Random(seed)
    engine = Engine(baseline(), shape, TARGET, measured=True)
    for _ in range(10_000):
        ask = engine.ask()
        match ask:
            case Done(reason=reason):
                return engine, reason
            case Expand():
                engine.tell(space.propose(ask))
            case Evaluate():
                space.asked.append((ask.rung, tuple(c.text for c in ask.candidates)))
                engine.tell(_answer(space, ask, rng))
    raise AssertionError("the engine does not end")


def _answer(space: Space, ask: Evaluate, rng: random.Random) -> tuple[RungOutcome, ...]:
    match ask.rung:
        case Rung.COMPILE:
            return tuple(Passed(CompileFacts("sm_90", (), 0.1)) for _ in ask.candidates)
        case Rung.SMOKE:
            return tuple(_check(space.wrong, c) for c in ask.candidates)
        case Rung.QUICK_TIMING:
            return _screen(space, ask, rng)
        case Rung.FULL_CORRECTNESS:
            return tuple(_check(space.wrong_in_full, c) for c in ask.candidates)
        case Rung.FULL_TIMING:
            return tuple(_prove(space, c) for c in ask.candidates)
        case Rung.AUDIT:
            return tuple(_audit(space, c) for c in ask.candidates)
        case _:
            return tuple(Passed(None) for _ in ask.candidates)


def _check(wrong: frozenset[str], candidate: Candidate) -> RungOutcome:
    return Failed(Incorrect(MISMATCH)) if candidate.text in wrong else Passed(CHECK)


def _screen(space: Space, ask: Evaluate, rng: random.Random) -> tuple[RungOutcome, ...]:
    drift = [rng.gauss(1.0, 0.05) for _ in range(ask.rounds)]
    samples = {
        c.id: tuple(space.time_us(c) * d * rng.gauss(1.0, space.noise) for d in drift)
        for c in ask.candidates
    }
    space.spent_us += sum(sum(item) for item in samples.values())
    space.timed.update(c.text for c in ask.candidates)
    anchor = samples[ask.candidates[0].id]
    return tuple(
        Passed(Screened(anchor, samples[c.id], space.time_us(c) / 1e6)) for c in ask.candidates
    )


def _prove(space: Space, candidate: Candidate) -> RungOutcome:
    ratio = space.baseline_us / space.time_us(candidate)
    speedup = Speedup(ratio, ratio * 0.995, ratio * 1.005)
    if speedup.low <= 1.02:
        return Failed(NotImproved(speedup, "within noise"))
    timing = Timing("x", True, space.baseline_us, space.time_us(candidate), speedup, 20)
    return Passed(Proof(speedup, (timing,), CHECK))


def _audit(space: Space, candidate: Candidate) -> RungOutcome:
    if candidate.text in space.fails_audit:
        return Failed(NotImproved(Speedup(1.0, 0.99, 1.01), "did not hold"))
    return _prove(space, candidate)
