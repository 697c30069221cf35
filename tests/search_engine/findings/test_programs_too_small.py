"""Launches limited by the number of their programs are named at the grid."""

from __future__ import annotations

from launch_subjects import FLAT_KERNEL, code, line_of, load, make_subject, run, trace

from search_engine.domain.finding import Finding
from search_engine.domain.kernel import OperationKind
from search_engine.findings.programs_too_small import ProgramsTooSmall

LAUNCH = line_of(FLAT_KERNEL, "flat_kernel[")
LOAD, STORE = line_of(FLAT_KERNEL, "x = tl.load"), line_of(FLAT_KERNEL, "tl.store")


def copying(programs: int, block: int, *, compiled: bool = True, warps: int = 4) -> list[Finding]:
    """A copy of ``programs`` blocks of floats."""
    lanes, tensor_bytes, grid = 24 * block, 4 * programs * block, (programs, 1, 1)
    accesses = (
        load(LOAD, executions=24, lanes=lanes, tensor_bytes=tensor_bytes),
        load(STORE, "out_ptr", executions=24, lanes=lanes, tensor_bytes=tensor_bytes,
             kind=OperationKind.STORE),
    )  # fmt: skip
    launches = (code(LAUNCH, grid, warps=warps),) if compiled else ()
    subject = make_subject(FLAT_KERNEL, (trace(LAUNCH, grid, *accesses),), launches)
    return run(ProgramsTooSmall(), subject)


def test_a_million_tiny_programs_are_named() -> None:
    (found,) = copying(917_504, 128)
    assert found.message == "917,504 programs of 128 elements"
    assert FLAT_KERNEL[found.start : found.end] == "(triton.cdiv(x.numel(), 64),)"
    assert found.related[0].message == "BLOCK sizes the block"
    assert found.cost > 0.5


def test_blocks_that_fill_a_program_are_silent() -> None:
    assert copying(262_144, 1024) == []


def test_a_few_tiny_programs_are_silent() -> None:
    assert copying(2000, 128) == []


def test_one_warp_lets_more_programs_run() -> None:
    assert copying(4_000_000, 64, warps=1)[0].cost < copying(4_000_000, 64)[0].cost


def test_without_compiled_code_the_places_are_not_known() -> None:
    assert copying(917_504, 128, compiled=False) == []
