"""The result of a run for people and programs: the report, its JSON document and its card."""

from __future__ import annotations

from typing import Any

from search_engine.archive.sqlite import StoredRun
from search_engine.domain.candidate import Candidate
from search_engine.domain.run import Evidence, ExitReason, Outcome, RunId, RunReport, Spend
from search_engine.domain.target import Device, Environment
from search_engine.domain.verdict import Inconclusive, NotImproved, Timing
from search_engine.edits import unified_diff
from search_engine.request import Prepared
from search_engine.rungs.profile import bound
from search_engine.runner import Runner, RunResult

NOT_TIMED = "correct on the CPU interpreter, not timed"


def make_report(
    prepared: Prepared, runner: Runner, result: RunResult, run: RunId, target: str,
    device: Device | None, environment: Environment,
) -> RunReport:  # fmt: skip
    """The report of a driven search."""
    best, evidence, outcome = _best(runner, result, device is not None)
    timing = _main_timing(prepared, evidence)
    reply = result.baseline_reply
    baseline_us = timing.baseline_us if timing else (reply.median_us if reply else None)
    best_us = timing.candidate_us if timing else None
    shown = best_us if best_us is not None else baseline_us
    limit = bound(reply, shown) if reply is not None and shown is not None else None
    path = str(prepared.request.path)
    rungs: dict[str, int] = {}
    for node in result.engine.tree:
        rungs[node.rung.value] = rungs.get(node.rung.value, 0) + 1
    return RunReport(
        run=run,
        kernel=prepared.unit.kernel.qualified_name,
        path=path,
        unit_hash=prepared.unit.hash,
        target=target,
        device=device.name if device else None,
        outcome=outcome,
        exit_reason=result.reason,
        message=_message(outcome, result, evidence, limit),
        baseline_us=baseline_us,
        best_us=best_us,
        best=best,
        evidence=evidence,
        spend=result.spend,
        rungs=rungs,
        diff=unified_diff(prepared.request.text, best.text, path) if best else "",
        bound=limit,
        environment=environment,
    )


def stopped_report(stored: StoredRun) -> RunReport:
    """The report of a run that was cut off: the best of what it had verified or checked."""
    offered = [item for item in stored.improvements if item.verified]
    untimed = [item for item in stored.improvements if item.evidence.speedup is None]
    best = (offered or untimed or [None])[-1]
    outcome = Outcome.NOT_IMPROVED
    if best is not None:
        outcome = Outcome.IMPROVED if best.verified else Outcome.UNMEASURED
    timings = best.evidence.timings if best is not None else ()
    return RunReport(
        run=stored.id,
        kernel=stored.kernel,
        path=stored.path,
        unit_hash=stored.unit_hash,
        target=stored.target,
        device=None,
        outcome=outcome,
        exit_reason=ExitReason.STOPPED,
        message="The run was cut off; optimise again to resume it.",
        baseline_us=timings[0].baseline_us if timings else None,
        best_us=timings[0].candidate_us if timings else None,
        best=best.candidate if best is not None else None,
        evidence=best.evidence if best is not None else None,
        spend=Spend(0.0, 0.0, 0),
        rungs={},
        diff="",
        environment=best.evidence.environment if best is not None else None,
    )


def document(report: RunReport) -> dict[str, Any]:
    """The contract of ``optimize --json``; its schema is ``schemas/optimize.json``."""
    evidence, speedup = report.evidence, report.evidence.speedup if report.evidence else None
    return {
        "kernel": report.kernel,
        "path": report.path,
        "target": report.target,
        "device": report.device,
        "outcome": report.outcome.value,
        "speedup": None if speedup is None else _speedup(speedup.value, speedup.low, speedup.high),
        "baseline_us": report.baseline_us,
        "best_us": report.best_us,
        "roofline_fraction": evidence.roofline_fraction if evidence else None,
        "correctness": _correctness(evidence),
        "spend": {
            "wall_seconds": report.spend.wall_seconds,
            "device_seconds": report.spend.device_seconds,
            "evaluations": report.spend.evaluations,
            "device_seconds_per_rung": report.spend.device_seconds_per_rung,
            "evaluations_per_proposer": report.spend.evaluations_per_proposer,
            "screening_device_seconds": report.spend.screening_device_seconds,
            "full_evaluation_device_seconds": report.spend.full_evaluation_device_seconds,
        },
        "exit_reason": report.exit_reason.value,
        "message": report.message,
        "candidates": report.rungs,
        "steps": list(evidence.steps) if evidence else [],
        "diff": report.diff,
    }


def card(evidence: Evidence, kernel: str) -> str:
    """The evidence as a person reads it; no number without its unit and sample."""
    speedup = evidence.speedup
    if speedup is None:
        head = f"{kernel}  {NOT_TIMED}"
    else:
        interval = f"95% CI {speedup.low:.2f}-{speedup.high:.2f}"
        head = f"{kernel}  {speedup.value:.2f}x  ({interval})  {evidence.environment.key}"
    lines = [head, *_timing_lines(evidence), *_correctness_lines(evidence)]
    lines.append(f"changed: {'; '.join(evidence.steps)}")
    if evidence.roofline_fraction is not None:
        lines.append(f"roofline: {evidence.roofline_fraction:.0%} (measured bandwidth and rate)")
    lines.append(f"{'checked' if speedup is None else 'measured'}: {evidence.measured_at}")
    return "\n".join(lines)


def _best(
    runner: Runner, result: RunResult, measured: bool
) -> tuple[Candidate | None, Evidence | None, Outcome]:
    engine = result.engine
    if result.reason is ExitReason.FAULTED:
        return None, None, Outcome.FAILED
    if not measured:
        nodes = engine.unmeasured()
        check = nodes[0].check if nodes else None
        if check is None:
            return None, None, Outcome.UNMEASURED
        candidate = nodes[0].candidate
        return candidate, runner.evidence(candidate, None, check), Outcome.UNMEASURED
    if engine.audited is not None:
        candidate, proof = engine.audited
        if proof.check is not None:
            return candidate, runner.evidence(candidate, proof, proof.check), Outcome.IMPROVED
    undecided = any(isinstance(node.verdict, Inconclusive) for node in engine.tree)
    return None, None, Outcome.INCONCLUSIVE if undecided else Outcome.NOT_IMPROVED


def _main_timing(prepared: Prepared, evidence: Evidence | None) -> Timing | None:
    if evidence is None:
        return None
    main = max(prepared.workload.cases, key=lambda case: case.weight).label
    return next((t for t in evidence.timings if t.cold and t.case == main), None)


def _message(
    outcome: Outcome, result: RunResult, evidence: Evidence | None, limit: str | None
) -> str:
    tail = f" {limit[0].upper()}{limit[1:]}." if limit else ""
    match outcome:
        case Outcome.IMPROVED:
            assert evidence is not None and evidence.speedup is not None
            return f"{evidence.speedup.value:.2f}x verified.{tail}"
        case Outcome.UNMEASURED:
            return f"A rewrite that is {NOT_TIMED}." if evidence else _nothing_untimed(result)
        case Outcome.FAILED:
            return result.detail
        case Outcome.INCONCLUSIVE:
            return f"No verified gain: a difference is there but within noise.{tail}"
        case Outcome.NOT_IMPROVED:
            seconds = result.spend.wall_seconds
            return f"No verified gain in {seconds:.0f} s.{_closest(result)}{tail}"


def _nothing_untimed(result: RunResult) -> str:
    """What was tried without a device, when nothing of it can be offered."""
    tried = sum(1 for _ in result.engine.tree) - 1
    if tried == 0:
        return (
            "Nothing was timed: no GPU here. No rewrite rule applies to this kernel, and other "
            "block sizes can only be judged on a GPU."
        )
    return f"Nothing was timed: no GPU here. None of {tried} rewrites passed its checks."


def _closest(result: RunResult) -> str:
    """Why the most promising candidate was not offered, as a sentence; empty if none was timed."""
    refused = [
        (node.verdict.speedup.value, node.candidate.title, node.verdict.reason)
        for node in result.engine.tree
        if isinstance(node.verdict, NotImproved)
    ]
    if not refused:
        return ""
    _, title, reason = max(refused)
    return f" Closest: {title}: {reason}."


def _speedup(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def _correctness(evidence: Evidence | None) -> dict[str, Any]:
    if evidence is None:
        return {"method": None, "inputs": 0, "worst_error": None, "not_checked": []}
    correctness = evidence.correctness
    return {
        "method": correctness.method,
        "inputs": correctness.inputs,
        "cases": list(correctness.cases),
        "worst_error": correctness.worst_error,
        "independent_reference": correctness.independent_reference,
        "nondeterministic": correctness.nondeterministic,
        "outside_domain": list(correctness.outside_domain),
        "not_checked": list(correctness.not_checked),
    }


def _timing_lines(evidence: Evidence) -> list[str]:
    return [
        f"{timing.case} ({'cold' if timing.cold else 'warm'} cache): "
        f"{timing.baseline_us:.1f} -> {timing.candidate_us:.1f} µs, {timing.speedup.value:.2f}x "
        f"({timing.speedup.low:.2f}-{timing.speedup.high:.2f}), {timing.samples} pairs"
        for timing in evidence.timings
    ]


def _correctness_lines(evidence: Evidence) -> list[str]:
    found = evidence.correctness
    truth = "its reference" if found.independent_reference else "your kernel (no reference given)"
    lines = [
        f"compared with {truth} in float64 on {found.inputs} inputs ({found.method}), "
        f"largest error {found.worst_error:.2f} of the limit",
        f"shapes: {', '.join(found.cases)}",
    ]
    if found.nondeterministic:
        lines.append("nondeterministic: repeated runs differ within the limit")
    if found.outside_domain:
        lines.append(f"outside your kernel's own domain: {', '.join(found.outside_domain)}")
    if found.not_checked:
        lines.append(f"not checked: {'; '.join(found.not_checked)}")
    return lines
