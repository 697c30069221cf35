from __future__ import annotations

import dataclasses

import pytest

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import InstructionCount, LaunchCode, LineCode, MachineOperation
from search_engine.domain.facts import LaunchFacts
from search_engine.domain.kernel import OperationKind
from search_engine.predict.summary import least_bytes, summarize
from search_engine.targets.registry import target_named

MIB = 1 << 20
FACTS = LaunchFacts("k", (64, 1, 1), 4, 3, (), 128, 48, 1024, "ab", 16, 300, 16)


def code(lines: tuple[LineCode, ...] = (), **changes: object) -> LaunchCode:
    facts = dataclasses.replace(FACTS, **changes)
    return LaunchCode(facts, 0, (), lines, (), (), ())


def access(
    argument: str | None, moved: int, tensor: int, distinct: int | None = None,
    kind: OperationKind = OperationKind.LOAD, line: int = 3,
) -> LineAccess:  # fmt: skip
    return LineAccess(
        line, kind, argument, 4, 1, 0, 1, 1, moved, moved if distinct is None else distinct,
        1, 1, 1, tensor, 0,
    )  # fmt: skip


def trace(*accesses: LineAccess, programs: int = 100, sampled: int = 10) -> LaunchTrace:
    return LaunchTrace("k", 0, 1, (programs, 1, 1), sampled, accesses, ())


def test_a_summary_of_the_largest_launch() -> None:
    lines = (
        LineCode(4, 1, (InstructionCount(MachineOperation.GLOBAL_LOAD, 16, 2),)),
        LineCode(4, 0, (InstructionCount(MachineOperation.GLOBAL_LOAD, 16, 1),)),
        LineCode(4, 0, (InstructionCount(MachineOperation.ASYNC_COPY, 4, 1),)),
        LineCode(3, 0, (InstructionCount(MachineOperation.GLOBAL_STORE, 8, 5),)),
        LineCode(None, 0, (InstructionCount(MachineOperation.GLOBAL_LOAD, 4, 9),)),
        LineCode(5, 0, (InstructionCount(MachineOperation.FP32, 0, 9),)),
        LineCode(6, 1, (InstructionCount(MachineOperation.MATRIX, 0, 4),)),
    )
    small, large = code(grid=(4, 1, 1), registers=40), code(lines)
    found = summarize("K.k", target_named("sm_90"), (small, large), ())
    assert found is not None
    assert (found.kernel, found.target, found.launches) == ("K.k", "sm_90", 2)
    assert (found.registers, found.spill_bytes, found.grid) == (128, 48, (64, 1, 1))
    assert (found.occupancy, found.limiters) == (0.25, ("registers",))
    assert [(a.line, a.kind.value, a.width_bytes, a.count) for a in found.accesses] == [
        (3, "store", 8, 5), (4, "load", 4, 1), (4, "load", 16, 3), (6, "dot", 0, 4),
    ]  # fmt: skip
    assert (found.bytes, found.floor_us) == (None, None)


def test_nothing_compiled_has_no_summary() -> None:
    assert summarize("k", target_named("sm_90"), (), ()) is None


def test_an_assumed_launch_has_no_grid() -> None:
    found = summarize("k", target_named("sm_90"), (code(grid=(0, 0, 0)),), ())
    assert found is not None
    assert found.grid is None


@pytest.mark.parametrize(
    ("accesses", "expected"),
    [
        # read once, written once
        ((access("x", 10, 100), access("y", 10, 100, kind=OperationKind.STORE)), 200),
        # three passes over one tensor must read it once
        (tuple(access("x", 10, 100, line=line) for line in (1, 2, 3)), 100),
        # every program reads all of a small tensor
        ((access("w", 1000, 100, distinct=100),), 100),
        # a tenth of a table, without repeats
        ((access("table", 10, 1000),), 100),
        # a few rows of a table, over and over
        ((access("table", 10, 1000, distinct=2),), 2),
        # updated in place: read and written
        ((access("x", 10, 100), access("x", 10, 100, kind=OperationKind.STORE)), 200),
        # no tensor is known behind the pointer
        ((access(None, 10, 0),), 0),
    ],
)
def test_least_bytes(accesses: tuple[LineAccess, ...], expected: int) -> None:
    assert least_bytes((trace(*accesses),)) == expected


def test_the_floor_is_bytes_over_bandwidth_unless_a_cache_may_hold_them() -> None:
    target = target_named("sm_90")
    large = trace(access("x", 100 * MIB, 1000 * MIB))
    found = summarize("k", target, (code(),), (large,))
    assert found is not None
    assert found.floor_us == pytest.approx(1e6 * 1000 * MIB / target.memory_bandwidth.value)
    small = trace(access("x", MIB, 10 * MIB))
    found = summarize("k", target, (code(),), (small,))
    assert found is not None
    assert (found.bytes, found.floor_us) == (10 * MIB, None)
