"""Resident blocks, against figures from NVIDIA's and LLVM's own calculators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_engine.predict.occupancy import occupancy
from search_engine.targets.registry import TARGETS, target_named


@pytest.mark.parametrize(
    ("target", "registers", "shared", "warps", "blocks", "limiters"),
    [
        ("sm_90", 74, 16416, 8, 3, ("registers",)),
        ("sm_90", 32, 0, 8, 8, ("warps", "registers")),
        ("sm_90", 16, 0, 1, 32, ("blocks",)),
        ("sm_90", 255, 0, 16, 0, ("registers",)),
        ("sm_90", 128, 227 * 1024, 8, 1, ("shared memory",)),
        ("sm_90", 128, 227 * 1024 + 1, 8, 0, ("shared memory",)),
        ("sm_80", 40, 48 * 1024, 4, 3, ("shared memory",)),
        ("sm_89", 32, 0, 32, 1, ("warps",)),
        # One wavefront more than 256 registers a lane leaves one a SIMD.
        ("gfx942", 264, 0, 4, 1, ("registers",)),
        ("gfx942", 64, 32 * 1024, 4, 2, ("shared memory",)),
        ("gfx942", 32, 0, 1, 32, ("warps", "blocks")),
        ("gfx950", 64, 32 * 1024, 4, 4, ("shared memory",)),
    ],
)
def test_known_cases(target, registers, shared, warps, blocks, limiters):
    got = occupancy(target_named(target), registers, shared, warps)
    assert (got.blocks, got.limiters) == (blocks, limiters)


def test_llvm_example_of_eight_wavefronts():
    # llvm-calc-occupancy: 512 work-items (8 wavefronts) and 50 registers fill a unit of 32.
    assert occupancy(target_named("gfx942"), 50, 0, 8).fraction == 1.0


@given(
    target=st.sampled_from(TARGETS),
    registers=st.integers(1, 255),
    shared=st.integers(0, 64 * 1024),
    warps=st.sampled_from([1, 2, 4, 8, 16]),
)
def test_more_of_anything_never_raises_occupancy(target, registers, shared, warps):
    base = occupancy(target, registers, shared, warps)
    assert 0 <= base.fraction <= 1
    assert occupancy(target, registers + 8, shared, warps).blocks <= base.blocks
    assert occupancy(target, registers, shared + 4096, warps).blocks <= base.blocks
    assert occupancy(target, registers, shared, 2 * warps).blocks <= base.blocks


def test_a_block_without_warps_is_an_error():
    with pytest.raises(ValueError, match="at least one warp"):
        occupancy(target_named("sm_90"), 32, 0, 0)
