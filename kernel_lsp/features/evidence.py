"""The evidence of an offer, as a person reads it before saying yes."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp import engine
from kernel_lsp.offers import Offer
from search_engine.domain.run import Correctness
from search_engine.domain.verdict import Timing


@dataclass(frozen=True, slots=True)
class Review:
    """An offer beside the text it would replace. ``current`` is False for another form."""

    run_id: str
    candidate_id: str
    title: str
    evidence: str
    original: str
    candidate: str
    diff: str
    current: bool


def review(offer: Offer, current: bool) -> Review:
    """Everything needed to show the offer; the diff is computed here."""
    state = "" if current else " (made for an earlier form of the kernel)"
    return Review(
        offer.run_id,
        offer.id,
        f"{offer.name}: {offer.factor}{state}",
        evidence_text(offer),
        offer.original,
        offer.candidate.text,
        engine.unified_diff(offer.original, offer.candidate.text, offer.path),
        current,
    )


def evidence_text(offer: Offer) -> str:
    """Plain text, one fact a line; every number with unit, sample and device."""
    lines = [_headline(offer), _correct_line(offer.evidence.correctness)]
    lines += [_timing_line(timing) for timing in offer.evidence.timings]
    lines += _caveats(offer)
    lines.append(f"changed: {offer.candidate.title}")
    lines.append(f"by: {offer.candidate.proposer}; arithmetic: {offer.candidate.numerics.value}")
    return "\n".join(lines)


def hover_markdown(offer: Offer) -> str:
    """The same for a hover."""
    return f"```text\n{evidence_text(offer)}\n```"


def _headline(offer: Offer) -> str:
    evidence, environment = offer.evidence, offer.evidence.environment
    where = f"{environment.device or 'CPU interpreter'}, torch {environment.torch}, "
    where += f"triton {environment.triton}, {evidence.measured_at}"
    speedup = evidence.speedup
    if speedup is None:
        return f"{offer.name}  correct on the CPU interpreter; NOT TIMED, may be slower   {where}"
    state = "" if offer.verified else ", not yet verified"
    interval = f"95% interval {speedup.low:.2f} to {speedup.high:.2f}"
    return f"{offer.name}  {speedup.value:.2f}x  ({interval}{state})   {where}"


def _correct_line(correctness: Correctness) -> str:
    against = "independent reference" if correctness.independent_reference else "your kernel"
    cases = ", ".join(correctness.cases)
    return (
        f"correct: {correctness.inputs} inputs on {correctness.method} against {against}, "
        f"largest error {correctness.worst_error:.2g} of its limit; cases: {cases}"
    )


def _timing_line(timing: Timing) -> str:
    cache = "cold" if timing.cold else "warm"
    return (
        f"  {timing.case} ({cache} cache, {timing.samples} samples): "
        f"{timing.baseline_us:.4g} → {timing.candidate_us:.4g} µs, {timing.speedup.value:.2f}x"
    )


def _caveats(offer: Offer) -> list[str]:
    correctness = offer.evidence.correctness
    lines: list[str] = []
    if correctness.not_checked:
        lines.append(f"not checked: {'; '.join(correctness.not_checked)}")
    if correctness.outside_domain:
        lines.append(f"inputs outside the kernel's domain: {'; '.join(correctness.outside_domain)}")
    if correctness.nondeterministic:
        lines.append("your kernel's own output differs from run to run")
    if offer.evidence.noise is not None:
        lines.append(f"noise of this machine: ±{100 * offer.evidence.noise:.1f} %")
    if offer.evidence.roofline_fraction is not None:
        lines.append(f"roofline fraction: {100 * offer.evidence.roofline_fraction:.0f} %")
    return lines
