"""Findings of a file that need no execution: what keeps its kernels from being searched."""

from __future__ import annotations

from pathlib import Path

from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import Module, Span, Unit
from search_engine.domain.workload import Workload, WorkloadProblem
from search_engine.frontends.workload import workload_refusal
from search_engine.request import RequestError, all_workloads, read_module
from search_engine.targets.registry import UnknownTargetError, target_named

NAMES = {
    "KL002": "no-data",
    "KL801": "workload-syntax",
    "KL802": "workload-mismatch",
    "KL803": "no-workload",
}
"""Stable codes of the findings made here."""


def diagnose(path: Path, text: str, root: Path, target: str | None) -> tuple[Finding, ...]:
    """Findings of one file, in line order.

    ``target`` is noted in each finding; nothing is compiled here. Raises RequestError for a file
    that is not a kernel's and for an unknown target.
    """
    try:
        target = None if target is None else target_named(target).name
    except UnknownTargetError as error:
        raise RequestError(str(error)) from error
    module = read_module(path, text)
    workloads, problems = all_workloads(module, root)
    found = [_declaration(module, problem, target) for problem in problems]
    found.extend(_syntax(module, target))
    found.extend(f for unit in module.units for f in _unit(module, unit, workloads, target))
    return tuple(sorted(found, key=lambda finding: (finding.line, finding.code)))


def _declaration(module: Module, problem: WorkloadProblem, target: str | None) -> Finding:
    span = Span(problem.start, problem.end, problem.line, problem.line)
    return _finding(module, span, None, problem.code, Severity.WARNING, problem.message, target)


def _syntax(module: Module, target: str | None) -> list[Finding]:
    return [
        _finding(
            module, p.span, None, "KL002", Severity.INFORMATION,
            f"no data: does not parse here: {p.message}", target,
        )
        for p in module.problems[:1]
    ]  # fmt: skip


def _unit(
    module: Module, unit: Unit, workloads: tuple[Workload, ...], target: str | None
) -> list[Finding]:
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
    return [_finding(module, kernel.name_span, name, code, severity, message, target)]


def _finding(
    module: Module, span: Span, kernel: str | None, code: str, severity: Severity, message: str,
    target: str | None,
) -> Finding:  # fmt: skip
    return Finding(
        module.path, span.line, span.end_line, span.start, span.end, kernel, code, NAMES[code],
        severity, message, target,
    )  # fmt: skip
