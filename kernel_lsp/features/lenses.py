"""Code lenses. Each kernel always has one, so that text never jumps when a result arrives."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.features.action import Command, start_command
from kernel_lsp.features.actions import offer_command
from kernel_lsp.features.blockers import Cause, blocker
from kernel_lsp.features.state import FileState, UnitState
from search_engine.domain.run import Outcome, RunState


@dataclass(frozen=True, slots=True)
class Lens:
    """One lens above the byte ``[start, end)`` of the snapshot."""

    start: int
    end: int
    command: Command


def lenses(state: FileState) -> tuple[Lens, ...]:
    """Lenses of all kernels, in file order; at most three for one kernel."""
    found: list[Lens] = []
    for unit in state.units:
        span = unit.view.unit.kernel.name_span
        found += [Lens(span.start, span.end, command) for command in _commands(state, unit)]
    return tuple(found)


def _commands(state: FileState, unit: UnitState) -> list[Command]:
    if unit.run is not None:
        return [_running(unit)]
    if unit.best is not None:
        factor = unit.best.factor
        return [
            offer_command("review", f"{factor} available · Review", unit.best),
            offer_command("apply", "Apply", unit.best),
        ]
    if unit.untimed:
        title = f"{len(unit.untimed)} CPU-checked, not timed · Review"
        return [offer_command("review", title, unit.untimed[0])]
    return [_start(state, unit)]


def _running(unit: UnitState) -> Command:
    assert unit.run is not None
    gain = f" · {unit.run.best_verified.value:.2f}x verified" if unit.run.best_verified else ""
    version = "" if unit.run_is_current else " (the version at start)"
    verb = "queued" if unit.run.state is RunState.QUEUED else "optimizing"
    title = f"{verb}{version}{gain} · Cancel"
    return Command(title, "kernelLsp.cancel", {"runId": unit.run.id})


def _start(state: FileState, unit: UnitState) -> Command:
    blocked = blocker(state, unit)
    target = {"uri": state.snapshot.uri, "kernel": unit.name}
    if blocked is not None and blocked.cause is Cause.NO_WORKLOAD:
        return Command("⚡ no workload · Declare one", "kernelLsp.declareWorkload", target)
    if blocked is not None and blocked.cause is Cause.UNTRUSTED:
        argument = {"uri": state.snapshot.uri}
        return Command(
            "⚡ not trusted · Trust this workspace", "kernelLsp.trustWorkspace", argument
        )
    if blocked is not None:
        return Command(f"⚡ {blocked.reason} · Why?", "kernelLsp.explain", target)
    verb = "Optimize…" if state.device else "Find CPU-checked rewrites"
    return start_command(state, unit, f"⚡ {standing(unit)} · {verb}")


def standing(unit: UnitState) -> str:
    """What is known about this form of the kernel, in a few words."""
    if unit.applied is not None:
        return f"{unit.applied.factor} rewrite applied" if unit.applied.timed else "rewrite applied"
    if unit.stale is not None:
        return "edited since the last run"
    if unit.last is None:
        return "not profiled"
    if unit.last.outcome in (Outcome.NOT_IMPROVED, Outcome.INCONCLUSIVE):
        return "no verified gain found"
    return unit.last.message[:50] if unit.last.message else "not profiled"
