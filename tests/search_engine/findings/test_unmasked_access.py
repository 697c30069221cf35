"""Lanes outside every tensor are a warning with their number and the sizes."""

from __future__ import annotations

from launch_subjects import FLAT_KERNEL, line_of, load, make_subject, run, trace

from search_engine.domain.access import OutOfBounds
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import OperationKind
from search_engine.findings.unmasked_access import UnmaskedAccess

LAUNCH, LOAD = line_of(FLAT_KERNEL, "flat_kernel["), line_of(FLAT_KERNEL, "x = tl.load")


def outside(
    found: OutOfBounds | None,
    *,
    kind: OperationKind = OperationKind.LOAD,
    argument: str = "x_ptr",
    sampled: int = 16,
) -> list[Finding]:
    access = load(
        LOAD, argument, executions=16, lanes=1024, tensor_bytes=4000, kind=kind, outside=found
    )
    traces = (trace(LAUNCH, (16, 1, 1), access, sampled=sampled),)
    return run(UnmaskedAccess(), make_subject(FLAT_KERNEL, traces))


def test_lanes_past_the_end_are_a_warning_with_the_size() -> None:
    (found,) = outside(OutOfBounds(24, "x_ptr", (15, 0, 0), 96))
    assert found.message == "24 lanes read up to 96 B past x_ptr at x=f32[1000]"
    assert found.severity is Severity.WARNING
    assert found.line == LOAD
    assert found.related[0].message == "for example in program (15, 0, 0)"


def test_a_sample_is_a_lower_bound() -> None:
    (found,) = outside(OutOfBounds(24, "x_ptr", (15, 0, 0), 96), sampled=8)
    assert found.message.startswith("at least 24 lanes")


def test_before_the_start_and_writes_are_said() -> None:
    found = outside(
        OutOfBounds(1, "out_ptr", (0, 0, 0), -4), kind=OperationKind.STORE, argument="out_ptr"
    )
    assert [item.message for item in found] == ["1 lane writes up to 4 B before out_ptr"]


def test_accesses_inside_are_silent() -> None:
    assert outside(None) == []
