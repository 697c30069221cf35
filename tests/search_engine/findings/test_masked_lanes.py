"""Blocks much larger than what they cover are named; ragged ends are not."""

from __future__ import annotations

from launch_subjects import FLAT_KERNEL, line_of, load, make_subject, run, trace

from search_engine.domain.finding import Finding
from search_engine.findings.masked_lanes import MaskedLanes

LAUNCH = line_of(FLAT_KERNEL, "flat_kernel[")
LOAD = line_of(FLAT_KERNEL, "x = tl.load")


def covering(
    programs: int, block: int, active: int, *, empty: int = 0, elements: int = 77_000_000
) -> list[Finding]:
    """24 sampled programs of one block, ``active`` lanes on in all of them together."""
    access = load(
        LOAD, executions=24, empty=empty, lanes=24 * block, active=active,
        tensor_bytes=4 * elements,
    )  # fmt: skip
    subject = make_subject(FLAT_KERNEL, (trace(LAUNCH, (programs, 1, 1), access),))
    return run(MaskedLanes(), subject)


def test_a_power_of_two_over_an_image_loses_lanes() -> None:
    (found,) = covering(512, 262_144, 24 * 150_528)
    assert found.message == "43 % of lanes are masked off"
    assert found.line == LOAD
    assert found.related[0].message == "BLOCK sizes the block"
    assert 0.1 < found.cost < 0.2


def test_a_ragged_last_block_is_normal() -> None:
    assert covering(1_000_000, 1024, 23 * 1024 + 1) == []


def test_a_few_lanes_lost_everywhere_are_silent() -> None:
    assert covering(100_000, 1024, 24 * 800) == []


def test_accesses_that_are_off_altogether_are_no_masked_lanes() -> None:
    assert covering(100_000, 1024, 12 * 1024, empty=12) == []


def test_a_launch_that_is_over_at_once_is_silent() -> None:
    assert covering(24, 1024, 24 * 512, elements=24 * 512) == []
