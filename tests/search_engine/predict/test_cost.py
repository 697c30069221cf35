"""Which candidates are dropped before timing, and which untimed one is offered."""

import dataclasses
import math

from search_engine.domain.candidate import Candidate, CandidateId, Numerics
from search_engine.domain.facts import CompileFacts, LaunchFacts, Traffic
from search_engine.predict.cost import Untimed, order_unmeasured, predicted_cost
from search_engine.targets.registry import target_named

H200 = target_named("sm_90")
LAUNCH = LaunchFacts(
    "k", (1024, 1, 1), 4, 3, (), registers=64, spill_bytes=0, shared_bytes=16384,
    binary_hash="", tensor_instructions=0, instructions=500, widest_load_bytes=16,
)  # fmt: skip


def facts(*launches: LaunchFacts, **changes) -> CompileFacts:
    chosen = launches or (dataclasses.replace(LAUNCH, **changes),)
    return CompileFacts("sm_90", chosen, 0.1)


def untimed(name: str, traffic: Traffic | None, compiled: CompileFacts | None = None) -> Untimed:
    identity = CandidateId(name)
    node = Candidate(identity, "", None, identity, "test", (), (), (), Numerics.EXACT)
    return Untimed(node, traffic, compiled)


def test_the_baseline_itself_is_kept():
    cost = predicted_cost(facts(), H200, facts())
    assert not cost.drop
    assert math.isfinite(cost.relative)


def test_what_cannot_launch_is_dropped_with_the_reason():
    too_much = predicted_cost(facts(shared_bytes=300_000), H200, None)
    assert too_much.drop
    assert "300000 bytes of shared memory" in too_much.impossible
    no_block = predicted_cost(facts(registers=255, warps=16), H200, None)
    assert "registers" in no_block.impossible


def test_spills_alone_are_a_hint():
    some = predicted_cost(facts(spill_bytes=1464), H200, facts())
    assert not some.drop
    assert some.relative > predicted_cost(facts(), H200, facts()).relative


def test_massive_spills_are_dropped_only_beside_a_baseline_that_does_not_spill():
    assert predicted_cost(facts(spill_bytes=20_000), H200, facts()).drop
    assert not predicted_cost(facts(spill_bytes=20_000), H200, facts(spill_bytes=9000)).drop
    assert not predicted_cost(facts(spill_bytes=20_000), H200, None).drop


def test_a_handful_of_programs_is_dropped_only_where_the_baseline_had_many():
    few = facts(grid=(4, 1, 1))
    assert predicted_cost(few, H200, facts()).drop
    assert not predicted_cost(few, H200, facts(grid=(8, 1, 1))).drop


def test_a_small_second_launch_does_not_count_as_few_programs():
    combine = dataclasses.replace(LAUNCH, grid=(2, 1, 1))
    assert not predicted_cost(facts(LAUNCH, combine), H200, facts()).drop


def test_fuller_and_wider_is_ordered_first():
    base = predicted_cost(facts(), H200, None).relative
    assert predicted_cost(facts(grid=(16, 1, 1)), H200, None).relative > base
    assert predicted_cost(facts(widest_load_bytes=4), H200, None).relative > base
    assert predicted_cost(facts(registers=255), H200, None).relative > base


def test_untimed_candidates_are_ordered_by_counted_traffic_then_atomics_then_facts():
    lean = Traffic(1000, 1000, 0, 64, 10)
    ordered = order_unmeasured(
        (
            untimed("uncounted", None),
            untimed("scattered", Traffic(1000, 1000, 0, 500, 10)),
            untimed("atomics", Traffic(1000, 1000, 900, 64, 10)),
            untimed("spilling", lean, facts(spill_bytes=2000)),
            untimed("lean", lean, facts()),
        ),
        H200,
    )
    names = [item.candidate.id for item in ordered]
    assert names == ["lean", "spilling", "atomics", "scattered", "uncounted"]


def test_a_difference_of_one_percent_in_traffic_does_not_outweigh_atomics():
    ordered = order_unmeasured(
        (
            untimed("atomics", Traffic(100_000, 0, 500, 3000, 1)),
            untimed("none", Traffic(100_010, 0, 0, 3000, 1)),
        ),
        H200,
    )
    assert ordered[0].candidate.id == "none"
