"""Many atomics on one address, which run one after another.

Cause
    Atomics on one address are done in turn, about a nanosecond each, however many programs issue
    them. A sum in one counter, or a histogram whose values crowd in few bins, waits for them.

Fix
    Reduce first: add up the block in registers and issue one atomic a program, let fewer programs
    walk more blocks, or write partial results that a second kernel combines. A histogram counts in
    each program and adds its counts at the end (`privatise-histogram`).

Shown when
    The most used address of an atomic gets so many that their turns take an estimated 5 us or more
    and at least a fifth of the launch: as counted, or because there are so few addresses.

False positives
    Addresses that depend on data are those of the declared values; other data may spread better.
    Counts are of the sampled programs and said to be a lower bound where others remain.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import OperationKind
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import launch_times
from search_engine.findings._launch import launch_at, related_grid, traced_launches
from search_engine.findings._trace import certain, scale

_TURN_S = 1e-9
_LEAST_S = 5e-6
_LEAST_SHARE = 0.2


class AtomicContention:
    """Atomics that queue for one address."""

    code = "KL208"
    name = "atomic-contention"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each atomic, at its line."""
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            for access in trace.accesses if certain(trace) else ():
                if access.kind is OperationKind.ATOMIC and access.line not in told:
                    for found in self._judge(subject, trace, code, access):
                        told.add(access.line)
                        yield found

    def _judge(
        self, subject: Subject, trace: LaunchTrace, code: LaunchCode | None, access: LineAccess
    ) -> Iterator[Finding]:
        most = max(_busiest(trace, access), _atomics(trace, access) / _addresses(access))
        waiting = most * _TURN_S
        moving = launch_times(subject, trace, code).total
        share = waiting / (waiting + moving) if waiting else 0.0
        if waiting < _LEAST_S or share < _LEAST_SHARE:
            return
        yield finding(
            self,
            subject,
            subject.line_span(access.line),
            _message(trace, access),
            share,
            facts={
                "sampled_atomics": access.most_same_address,
                "sampled": trace.sampled,
                "programs": trace.programs,
            },
            related=related_grid(
                subject, launch_at(subject, trace.line), f"{trace.programs:,} programs"
            ),
            rule=answering(subject, "privatise-histogram"),
        )


def _atomics(trace: LaunchTrace, access: LineAccess) -> float:
    """Of the whole launch."""
    return scale(trace) * access.active_lanes


def _addresses(access: LineAccess) -> int:
    """There are no more in the tensor, so one of them gets at least the mean."""
    return max(1, access.tensor_bytes // access.element_bytes)


def _busiest(trace: LaunchTrace, access: LineAccess) -> float:
    """Atomics on the most used address of the sample; of the launch, if all programs use it."""
    shared = access.most_same_address > access.active_lanes / trace.sampled
    return access.most_same_address * (scale(trace) if shared else 1.0)


def _message(trace: LaunchTrace, access: LineAccess) -> str:
    about = "" if trace.sampled == trace.programs else "about "
    if access.most_same_address == access.active_lanes:
        return f"{about}{_atomics(trace, access):,.0f} atomics on one address"
    if _atomics(trace, access) / _addresses(access) >= _busiest(trace, access) / 2:
        return f"{about}{_atomics(trace, access):,.0f} atomics on {_addresses(access):,} addresses"
    if trace.sampled == trace.programs:
        return f"{access.most_same_address:,} atomics on one address"
    sample = f"{trace.sampled:,} of {trace.programs:,} programs"
    return f"at least {access.most_same_address:,} atomics on one address (from {sample})"
