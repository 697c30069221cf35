"""The search finds what is there, claims nothing that is not, and spends little on the way."""

from __future__ import annotations

from search_engine.domain.run import Effort, ExitReason, Rung
from search_engine.domain.verdict import Improved
from search_engine.search.engine import Engine, Evaluate, Expand
from search_engine.search.presets import SHAPES, Shape

from .space import TARGET, Space, baseline, drive

SHAPE = Shape(generations=4, beam=2, rewrites=8, configurations=8, search_share=0.6)
BLOCKS = (128, 256, 512, 1024, 2048, 4096)


def times(best: float, at: int) -> dict[int, float]:
    """A bowl over block sizes whose minimum ``best`` lies at ``at``."""
    return {b: best * (1.0 + 0.25 * abs(BLOCKS.index(b) - BLOCKS.index(at))) for b in BLOCKS}


def two_step_space(**changes: object) -> Space:
    """Rewrite A helps only after tuning; B on top of A is the best; C is slow everywhere."""
    fields: dict = {
        "times": {
            (): times(800.0, 4096),
            ("A",): times(500.0, 4096),
            ("C",): times(2000.0, 128),
            ("A", "B"): times(130.0, 512),
        },
        "rewrites": {(): ("A", "C"), ("A",): ("B",)},
        "baseline_us": 820.0,
    }
    return Space(**{**fields, **changes})


def test_second_rewrite_on_top_of_a_tuned_first_is_found_and_verified() -> None:
    engine, reason = drive(two_step_space(), SHAPE)
    assert engine.audited is not None
    candidate, proof = engine.audited
    assert candidate.steps == ("A", "B")
    assert candidate.configuration[0].value == "512"
    assert proof.speedup.value == 820.0 / 130.0
    assert reason is ExitReason.STALLED
    assert isinstance(engine.tree[candidate.id].verdict, Improved)


def test_nothing_is_claimed_where_nothing_is_to_be_gained() -> None:
    flat = dict.fromkeys(BLOCKS, 100.0)
    space = Space({(): flat, ("A",): dict.fromkeys(BLOCKS, 101.0)}, {(): ("A",)}, 100.0)
    for seed in range(20):
        engine, _ = drive(space, SHAPE, seed)
        assert engine.audited is None
        assert engine.proved == []


def test_wrong_candidates_never_reach_a_timer() -> None:
    space = two_step_space(wrong=frozenset({"A/B/None"}))
    engine, _ = drive(space, SHAPE)
    assert "A/B/None" not in space.timed
    assert engine.audited is not None


def test_fastest_that_fails_full_correctness_gives_way_to_the_next() -> None:
    space = two_step_space(wrong_in_full=frozenset({"A/B/512"}))
    engine, _ = drive(space, SHAPE)
    assert engine.audited is not None
    assert engine.audited[0].steps == ("A", "B")
    assert engine.audited[0].configuration[0].value in ("256", "1024")


def test_winner_that_fails_the_audit_is_not_offered() -> None:
    space = two_step_space(fails_audit=frozenset({"A/B/512"}))
    engine, _ = drive(space, SHAPE)
    assert engine.audited is not None
    assert engine.audited[0].text != "A/B/512"
    assert all(candidate.text != "A/B/512" for candidate, _ in engine.proved)


def test_first_improvement_is_audited_before_the_search_goes_on() -> None:
    space = two_step_space()
    drive(space, SHAPE)
    rungs = [rung for rung, _ in space.asked]
    first_audit = rungs.index(Rung.AUDIT)
    assert Rung.QUICK_TIMING in rungs[first_audit:]


def test_same_answers_give_the_same_search() -> None:
    first, second = two_step_space(), two_step_space()
    drive(first, SHAPE, seed=3)
    drive(second, SHAPE, seed=3)
    assert first.asked == second.asked


def test_stopping_the_search_still_verifies_what_is_there() -> None:
    engine = Engine(baseline(), SHAPE, TARGET, measured=True)
    space = two_step_space()
    stopped = False
    import random

    from .space import _answer

    rng = random.Random(0)
    while not hasattr(engine.ask(), "reason"):
        ask = engine.ask()
        if isinstance(ask, Expand):
            engine.tell(space.propose(ask))
            continue
        assert isinstance(ask, Evaluate)
        if ask.rung is Rung.QUICK_TIMING and not stopped:
            engine.stop_searching(ExitReason.BUDGET)
            stopped = True
        engine.tell(_answer(space, ask, rng))
    assert engine.ask().reason is ExitReason.BUDGET  # type: ignore[union-attr]
    assert engine.audited is not None


def test_screening_costs_a_quarter_of_timing_everything_fully() -> None:
    """Against 20 rounds on every candidate that was timed, at no more than 2 % regret."""
    ratios, regrets = [], []
    for seed in range(10):
        space = two_step_space()
        engine, _ = drive(space, SHAPES[Effort.NORMAL], seed)
        full = 0.0
        for node in engine.tree:
            if node.candidate.text in space.timed:
                full += 20 * space.time_us(node.candidate)
        ratios.append(space.spent_us / full)
        assert engine.audited is not None
        regrets.append(space.time_us(engine.audited[0]) / 130.0 - 1.0)
    assert max(regrets) <= 0.02
    assert sum(ratios) / len(ratios) <= 0.25
