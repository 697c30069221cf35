"""Atomics that queue for one address are named with how many there are."""

from __future__ import annotations

from launch_subjects import HEADER, code, line_of, load, make_subject, run, trace

from search_engine.domain.finding import Finding
from search_engine.domain.kernel import OperationKind
from search_engine.findings.atomic_contention import AtomicContention

TEXT = (
    HEADER
    + """@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr + offsets * 0, x, mask=offsets < n)


def total(x, out):
    sum_kernel[(262144,)](x, out, x.numel(), BLOCK=1024)
"""
)
LAUNCH, LOAD = line_of(TEXT, "sum_kernel["), line_of(TEXT, "tl.load")
ATOMIC = line_of(TEXT, "tl.atomic")


def adding(
    programs: int, per_program: int, most: int, sampled: int = 24, addresses: int = 1 << 20
) -> list[Finding]:
    """Blocks of 1024 floats; ``most`` of the sampled atomics fall on one address."""
    lanes = sampled * 1024
    accesses = (
        load(LOAD, executions=sampled, lanes=lanes, tensor_bytes=4096 * programs),
        load(ATOMIC, "out_ptr", executions=sampled, lanes=sampled * per_program, distinct=4,
             tensor_bytes=4 * addresses, kind=OperationKind.ATOMIC, most_same_address=most),
    )  # fmt: skip
    grid = (programs, 1, 1)
    traces = (trace(LAUNCH, grid, *accesses, sampled=sampled),)
    return run(AtomicContention(), make_subject(TEXT, traces, (code(LAUNCH, grid),)))


def test_all_atomics_on_one_address_are_counted_for_the_launch() -> None:
    (found,) = adding(262_144, 1024, 24 * 1024)
    assert found.message == "about 268,435,456 atomics on one address"
    assert found.line == ATOMIC
    assert found.related[0].message == "262,144 programs"
    assert found.cost > 0.9


def test_a_part_on_one_address_is_a_lower_bound() -> None:
    (found,) = adding(262_144, 1024, 24 * 100, addresses=1 << 20)
    assert found.message == ("at least 2,400 atomics on one address (from 24 of 262,144 programs)")


def test_few_addresses_share_all_atomics() -> None:
    (found,) = adding(131_072, 1024, 130, addresses=256)
    assert found.message == "about 134,217,728 atomics on 256 addresses"


def test_every_program_sampled_is_an_exact_count() -> None:
    (found,) = adding(20, 1024, 20 * 1024, sampled=20)
    assert found.message == "20,480 atomics on one address"


def test_one_atomic_a_program_of_a_small_grid_is_silent() -> None:
    assert adding(2000, 1, 24) == []


def test_addresses_of_one_program_are_not_those_of_all() -> None:
    # Each program has its own counter: the queue is as long as the block.
    assert adding(262_144, 1024, 1024) == []
