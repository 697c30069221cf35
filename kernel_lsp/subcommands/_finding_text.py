"""Findings as lines for people, targets side by side, and a summary of each kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from kernel_lsp.subcommands._file_findings import FileFindings
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import OperationKind
from search_engine.domain.summary import KernelSummary

_PLURALS = {
    OperationKind.LOAD: "loads",
    OperationKind.STORE: "stores",
    OperationKind.ATOMIC: "atomics",
}


def finding_lines(file: FileFindings, findings: Iterable[Finding]) -> Iterator[str]:
    """``path:line:column: KL105 narrow-access: message [kernel, sm_90]``.

    What several targets have in common is one line; the costliest of them words it.
    """
    groups: dict[tuple[int, str, str | None], list[Finding]] = {}
    for item in findings:
        groups.setdefault((item.line, item.code, item.kernel), []).append(item)
    for group in groups.values():
        first = max(group, key=lambda item: item.cost)
        targets = [item.target for item in group if item.target is not None]
        yield _line(file, first, tuple(dict.fromkeys(targets)))


def summary_lines(file: FileFindings) -> Iterator[str]:
    """One line for each kernel and target; what is uncertain stands once below its kernel."""
    for kernel, summaries in itertools.groupby(file.summaries, lambda item: item.kernel):
        notes: dict[str, None] = {}
        for summary in summaries:
            yield f"{file.file.shown}: {kernel} on {summary.target}: {_figures(summary)}"
            notes |= dict.fromkeys(file.notes(kernel, summary.target))
        yield from (f"    {note}" for note in notes)


def _line(file: FileFindings, finding: Finding, targets: tuple[str, ...]) -> str:
    place = f"{finding.path}:{finding.line + 1}:{file.column(finding.start)}"
    about = [finding.kernel, *targets, "assumed launch" if finding.assumed else None]
    shown = ", ".join(item for item in about if item)
    loud = "warning: " if finding.severity is Severity.WARNING else ""
    message = " ".join(finding.message.split())
    line = f"{place}: {finding.code} {finding.name}: {loud}{message}"
    return f"{line} [{shown}]" if shown else line


def _figures(summary: KernelSummary) -> str:
    parts = [
        f"{summary.registers} registers",
        f"{summary.spill_bytes} B spilled" if summary.spill_bytes else "no spills",
        f"{summary.shared_bytes:,} B shared",
        f"occupancy {summary.occupancy:.0%} ({' and '.join(summary.limiters)})",
    ]
    parts.extend(_widths(summary))
    if summary.matrix_instructions:
        parts.append(f"{summary.matrix_instructions} matrix instructions")
    if summary.bytes is not None:
        parts.append(_least(summary.bytes, summary.floor_us))
    if summary.launches > 1:
        parts.append(f"of {summary.launches} launches the largest")
    if summary.assumed:
        parts.append("launch assumed")
    return ", ".join(parts)


def _widths(summary: KernelSummary) -> Iterator[str]:
    for kind, plural in _PLURALS.items():
        counts: dict[int, int] = {}
        for access in summary.accesses:
            if access.kind is kind:
                counts[access.width_bytes] = counts.get(access.width_bytes, 0) + access.count
        if counts:
            yield f"{plural} " + " + ".join(f"{n}×{width} B" for width, n in sorted(counts.items()))


def _least(count: int, floor_us: float | None) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            text = f"{count / size:.1f} {unit}"
            break
    else:
        text = f"{count} B"
    if floor_us is None:
        return f"moves at least {text}"
    return f"moves at least {text}: {floor_us:.3g} µs at full bandwidth (a bound, not measured)"
