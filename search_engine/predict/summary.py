"""A kernel's summary from what the compiler made of it and what its programs ask of memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode, MachineOperation
from search_engine.domain.kernel import OperationKind
from search_engine.domain.summary import AccessWidth, KernelSummary
from search_engine.domain.target import Target
from search_engine.predict.occupancy import occupancy

_ACCESSES = {
    MachineOperation.GLOBAL_LOAD: OperationKind.LOAD,
    MachineOperation.ASYNC_COPY: OperationKind.LOAD,
    MachineOperation.GLOBAL_STORE: OperationKind.STORE,
    MachineOperation.ATOMIC: OperationKind.ATOMIC,
    MachineOperation.ATOMIC_CAS: OperationKind.ATOMIC,
    MachineOperation.MATRIX: OperationKind.DOT,
}
_NO_REPEATS = 0.99
"""Share of the sampled bytes that are distinct, from which the whole launch is taken to repeat
none: a sample may see the edge of a neighbour's rows."""


def summarize(
    kernel: str, target: Target, launches: Sequence[LaunchCode], traces: Sequence[LaunchTrace]
) -> KernelSummary | None:
    """Figures of the launch with the most programs; None if nothing was compiled."""
    if not launches:
        return None
    code = max(launches, key=lambda launch: math.prod(launch.facts.grid))
    facts = code.facts
    resident = occupancy(target, facts.registers, facts.shared_bytes, facts.warps)
    least = least_bytes(traces)
    floor = None
    if least is not None and least > target.l2_bytes:  # less may never come from memory
        floor = 1e6 * least / target.memory_bandwidth.value
    return KernelSummary(
        kernel=kernel,
        target=target.name,
        assumed=code.assumed,
        launches=len(launches),
        grid=facts.grid if math.prod(facts.grid) else None,
        warps=facts.warps,
        stages=facts.stages,
        registers=facts.registers,
        spill_bytes=facts.spill_bytes,
        shared_bytes=facts.shared_bytes,
        occupancy=resident.fraction,
        limiters=resident.limiters,
        instructions=facts.instructions,
        matrix_instructions=facts.tensor_instructions,
        accesses=_accesses(code),
        bytes=least,
        floor_us=floor,
    )


def least_bytes(traces: Sequence[LaunchTrace]) -> int | None:
    """Bytes that the launch with the most programs moves at least; None if none was traced.

    Each tensor counts once for reading and once for writing, and only as far as one line of the
    kernel covers it: a gather that looks at a tenth of a table counts a tenth.
    """
    if not traces:
        return None
    trace = max(traces, key=lambda item: item.programs)
    groups: dict[tuple[str, bool], list[LineAccess]] = {}
    for access in trace.accesses:
        if access.argument is not None:
            written = access.kind is not OperationKind.LOAD
            groups.setdefault((access.argument, written), []).append(access)
    scale = trace.programs / max(1, trace.sampled)
    return sum(max(_covered(access, scale) for access in group) for group in groups.values())


def _covered(access: LineAccess, scale: float) -> int:
    """Distinct bytes of the tensor that one line reaches in the whole launch, at least."""
    everything = int(access.bytes * scale)
    if 0 < access.tensor_bytes <= everything:
        return access.tensor_bytes
    if access.distinct_bytes >= _NO_REPEATS * access.bytes:
        return int(access.distinct_bytes * scale)
    return access.distinct_bytes


def _accesses(code: LaunchCode) -> tuple[AccessWidth, ...]:
    totals: dict[tuple[int, OperationKind, int], int] = {}
    for line in code.lines:
        for item in line.counts:
            kind = _ACCESSES.get(item.operation)
            if kind is not None and line.line is not None:
                key = (line.line, kind, item.width_bytes)
                totals[key] = totals.get(key, 0) + item.count
    return tuple(AccessWidth(*key, count) for key, count in _ordered(totals.items()))


def _ordered(
    items: Iterable[tuple[tuple[int, OperationKind, int], int]],
) -> list[tuple[tuple[int, OperationKind, int], int]]:
    return sorted(items, key=lambda item: (item[0][0], item[0][1].value, item[0][2]))
