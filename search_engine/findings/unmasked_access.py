"""Lanes that read or write outside every tensor.

Cause
    A load or store is not masked, or its mask does not cover a size that is not a multiple of the
    block. A read past the end gives whatever lies there or a fault; a write destroys it.

Fix
    Mask the access with the extent: `mask=offsets < n`, with `other=` for the lanes that a
    reduction sees. With block pointers, `boundary_check` for each axis that can be ragged.

Shown when
    At the sizes of the workload, lanes that no mask switches off lie outside of all tensors that
    the entry passed or made. The count is of the sampled programs, so there may be more.

False positives
    Padding that belongs to a tensor's storage but not to the tensor the workload declares.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace, LineAccess, OutOfBounds
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import OperationKind
from search_engine.findings._base import Subject, finding
from search_engine.findings._launch import launch_at, passed_tensor, related_grid, traced_launches
from search_engine.findings._trace import size

_VERBS = {
    OperationKind.LOAD: ("reads", "read"),
    OperationKind.STORE: ("writes", "write"),
}
_OTHER_VERB = ("goes", "go")


class UnmaskedAccess:
    """Accesses that need a mask."""

    code = "KL251"
    name = "unmasked-access"
    severity = Severity.WARNING
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each load, store or atomic, at its line."""
        told: set[int] = set()
        for trace, _ in traced_launches(subject):
            for access in trace.accesses:
                if access.out_of_bounds is not None and access.line not in told:
                    told.add(access.line)
                    yield self._at(subject, trace, access, access.out_of_bounds)

    def _at(
        self, subject: Subject, trace: LaunchTrace, access: LineAccess, outside: OutOfBounds
    ) -> Finding:
        launch = launch_at(subject, trace.line)
        tensor = passed_tensor(subject, launch, outside.argument)
        shape = "" if tensor is None else f" at {_label(tensor.name, tensor.dtype, tensor.shape)}"
        program = ", ".join(str(index) for index in outside.program)
        return finding(
            self,
            subject,
            subject.line_span(access.line),
            f"{_lanes(trace, access, outside)} {_where(outside)}{shape}",
            1.0,
            facts={
                "lanes": outside.lanes,
                "bytes_past": outside.bytes_past,
                "program": program,
                "sampled": trace.sampled,
            },
            related=related_grid(subject, launch, f"for example in program ({program})"),
        )


def _lanes(trace: LaunchTrace, access: LineAccess, outside: OutOfBounds) -> str:
    """``at least 24 lanes read``."""
    one, many = _VERBS.get(access.kind, _OTHER_VERB)
    count = "1 lane" if outside.lanes == 1 else f"{outside.lanes:,} lanes"
    bound = "at least " if trace.sampled < trace.programs else ""
    return f"{bound}{count} {one if outside.lanes == 1 else many}"


def _where(outside: OutOfBounds) -> str:
    name = outside.argument or "every tensor"
    if outside.bytes_past < 0:
        return f"up to {size(-outside.bytes_past)} before {name}"
    return f"up to {size(outside.bytes_past)} past {name}"


def _label(name: str, dtype: str, shape: tuple[int, ...]) -> str:
    return f"{name}={dtype}[{','.join(str(extent) for extent in shape)}]"
