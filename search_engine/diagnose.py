"""Findings of a file: what stands in the text, and what its checks say about gathered facts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from search_engine.domain.finding import Finding, Severity
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import Module, Span, Unit
from search_engine.domain.workload import Workload, WorkloadProblem
from search_engine.facts import LaunchSource, UnitFacts
from search_engine.findings._base import Check, Subject
from search_engine.findings.registry import CHECKS
from search_engine.frontends.ignore_comments import Ignored
from search_engine.frontends.workload import workload_refusal
from search_engine.targets.registry import target_named

log = logging.getLogger(__name__)

NAMES = {
    "KL002": "no-data",
    "KL101": "compile-error",
    "KL801": "workload-syntax",
    "KL802": "workload-mismatch",
    "KL803": "no-workload",
}
"""Stable codes of the findings that no check makes."""

LEAST_COST = 0.02
"""Share of a kernel's time below which a finding cannot matter on its target."""

_LONGEST_MESSAGE = 600


def static_findings(
    module: Module, workloads: tuple[Workload, ...], problems: tuple[WorkloadProblem, ...]
) -> tuple[Finding, ...]:
    """What stands without facts: mistakes in declarations, kernels that nothing runs."""
    found = [_declaration(module, problem) for problem in problems]
    found.extend(_syntax(module))
    found.extend(finding for unit in module.units for finding in _unit(module, unit, workloads))
    return _in_order(found)


def facts_findings(
    module: Module, facts: UnitFacts, everything: bool = False, checks: Iterable[Check] = CHECKS
) -> tuple[Finding, ...]:
    """What the facts of one unit show, in line order.

    Without ``everything``, checks that are off by default are left out, and so are findings that
    cannot matter on the target, unless they are warnings.
    """
    found = [*_refusal(module, facts)]
    if facts.launches or facts.traces:
        subject = Subject(
            module, facts.unit, target_named(facts.target), facts.workload, facts.case,
            facts.launches, facts.traces,
        )  # fmt: skip
        for check in checks:
            if check.shown or everything:
                found.extend(_found_by(check, subject))
    return _in_order(item for item in found if everything or _matters(item))


def without_answered(static: Iterable[Finding], facts: Iterable[UnitFacts]) -> tuple[Finding, ...]:
    """The static findings without those that say there is no data where there is some now.

    Why a workload cannot be run stays, though an assumed launch was compiled instead.
    """
    known = {
        item.unit.kernel.qualified_name
        for item in facts
        if item.launches and (item.source is LaunchSource.WORKLOAD or item.unit.entry is None)
    }
    return tuple(item for item in static if item.code != "KL002" or item.kernel not in known)


def no_interpreter(module: Module, refusal: Refusal) -> Finding:
    """The one finding of a file whose kernels cannot be compiled for want of a module."""
    unit = module.units[0]
    return _finding(
        module, unit.kernel.name_span, None, "KL002", Severity.INFORMATION,
        f"no data: {refusal.message}",
    )  # fmt: skip


def not_ignored(
    findings: Iterable[Finding], comments: Sequence[Ignored], ignore: Iterable[str]
) -> tuple[Finding, ...]:
    """Findings that neither a comment nor a code or name in ``ignore`` hides."""
    hidden = frozenset(ignore)
    return tuple(
        item
        for item in findings
        if not hidden & {item.code, item.name} and not any(c.hides(item) for c in comments)
    )


def _matters(finding: Finding) -> bool:
    if finding.severity is Severity.WARNING or finding.code in NAMES:
        return True
    return finding.cost >= LEAST_COST


def _found_by(check: Check, subject: Subject) -> list[Finding]:
    """The findings of one check; its own faults cost its findings, not those of the others."""
    try:
        return list(check.findings(subject))
    except Exception:
        kernel = subject.unit.kernel.qualified_name
        log.exception("check %s failed on %s of %s", check.code, kernel, subject.module.path)
        return []


def _refusal(module: Module, facts: UnitFacts) -> list[Finding]:
    """Why there are no facts, or none of the workload."""
    refusal, kernel = facts.refusal, facts.unit.kernel
    if refusal is None or refusal.kind is RefusalKind.ENVIRONMENT:
        return []
    message = refusal.message.strip()[:_LONGEST_MESSAGE]
    name = kernel.qualified_name
    if refusal.kind is RefusalKind.COMPILE and facts.source is LaunchSource.WORKLOAD:
        span = kernel.name_span if refusal.line is None else _line_span(module, refusal.line)
        made = _finding(module, span, name, "KL101", Severity.WARNING, message)
    else:
        about = "no data from the workload" if facts.launches else "no data"
        made = _finding(
            module, kernel.name_span, name, "KL002", Severity.INFORMATION, f"{about}: {message}"
        )
    return [replace(made, target=facts.target, assumed=facts.source is LaunchSource.ASSUMED)]


def _line_span(module: Module, line: int) -> Span:
    """The code of a line; the last line if the text has fewer."""
    lines = module.text.encode(errors="surrogatepass").split(b"\n")
    line = min(line, len(lines) - 1)
    start = sum(len(item) + 1 for item in lines[:line])
    text = lines[line]
    indent = len(text) - len(text.lstrip())
    return Span(start + indent, start + max(indent, len(text.rstrip())), line, line)


def _declaration(module: Module, problem: WorkloadProblem) -> Finding:
    span = Span(problem.start, problem.end, problem.line, problem.line)
    return _finding(module, span, None, problem.code, Severity.WARNING, problem.message)


def _syntax(module: Module) -> list[Finding]:
    return [
        _finding(
            module, p.span, None, "KL002", Severity.INFORMATION,
            f"no data: does not parse here: {p.message}",
        )
        for p in module.problems[:1]
    ]  # fmt: skip


def _unit(module: Module, unit: Unit, workloads: tuple[Workload, ...]) -> list[Finding]:
    kernel = unit.kernel
    own = [w for w in workloads if unit.entry and w.entry == unit.entry.qualified_name]
    if unit.entry is None:
        message = "no data: no function in this file launches it"
        severity, code = Severity.INFORMATION, "KL002"
    elif not own:
        message = f"nothing to run {kernel.name} with: declare a workload above {unit.entry.name}"
        severity, code = Severity.HINT, "KL803"
    else:
        refusal = workload_refusal(module, unit, own[0])
        if refusal is None:
            return []
        message, severity, code = f"no data: {refusal}", Severity.INFORMATION, "KL002"
    name = kernel.qualified_name
    return [_finding(module, kernel.name_span, name, code, severity, message)]


def _finding(
    module: Module, span: Span, kernel: str | None, code: str, severity: Severity, message: str
) -> Finding:
    return Finding(
        module.path, span.line, span.end_line, span.start, span.end, kernel, code, NAMES[code],
        severity, message,
    )  # fmt: skip


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda item: (item.line, item.start, item.code)))
