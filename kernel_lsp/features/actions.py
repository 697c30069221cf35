"""Code actions: the one entry point that every client has."""

from __future__ import annotations

from typing import Any

from kernel_lsp.features.action import Action, Command, start_command, target_of
from kernel_lsp.features.blockers import Blocker, Cause, blocker, helper_blocker
from kernel_lsp.features.finding_actions import Lines, finding_actions, listing_actions
from kernel_lsp.features.kinds import CANCEL, DETAILS, QUICK_FIX, REWRITE
from kernel_lsp.features.state import FileState, UnitState, start_title
from kernel_lsp.offers import Offer

UNTIMED_SHOWN = 3
"""CPU-checked rewrites offered at once; nothing ranks them, so a long list would not help."""


def actions(
    state: FileState, first_line: int, last_line: int, only: tuple[str, ...] = ()
) -> tuple[Action, ...]:
    """Actions for the lines ``[first_line, last_line]``; ``only`` are wanted kinds or prefixes."""
    views = state.snapshot.units_at(first_line, last_line)
    lines = Lines(first_line, last_line)
    found: list[Action] = []
    for unit in state.units:
        found += finding_actions(state, unit, lines)
        if unit.view in views:
            found += _unit_actions(state, unit)
            found += listing_actions(state, unit, lines)
    if not found:
        found += _helper_actions(state, first_line)
    return tuple(action for action in found if _wanted(action.kind, only))


def _wanted(kind: str, only: tuple[str, ...]) -> bool:
    return not only or any(not k or kind == k or kind.startswith(f"{k}.") for k in only)


def _unit_actions(state: FileState, unit: UnitState) -> list[Action]:
    found = [*_offer_actions(state, unit)]
    if unit.run is not None:
        found.append(_cancel_action(unit))
    if not unit.run_is_current:
        found += _start_actions(state, unit)
    found.append(_details_action(state, unit))
    return found


def _start_actions(state: FileState, unit: UnitState) -> list[Action]:
    title = start_title(state, unit)
    blocked = blocker(state, unit)
    if blocked is None:
        if unit.run is not None:
            return []  # the earlier form is being searched: cancel it first
        return [Action(title, REWRITE, start_command(state, unit, title))]
    why = f"Why can't I optimize {unit.name}?"
    explain = Command(why, "kernelLsp.explain", target_of(state, unit))
    return [
        Action(title, REWRITE, disabled=blocked.reason),
        Action(why, REWRITE, explain),
        *_remedies(state, unit, blocked),
    ]


def offer_command(name: str, title: str, offer: Offer) -> Command:
    """A command about one offer."""
    argument = {"runId": offer.run_id, "candidateId": offer.id}
    return Command(title, f"kernelLsp.{name}", argument)


def _remedies(state: FileState, unit: UnitState, blocked: Blocker) -> list[Action]:
    if blocked.cause is Cause.UNTRUSTED:
        title = "Trust this workspace"
        command = Command(title, "kernelLsp.trustWorkspace", {"uri": state.snapshot.uri})
        return [Action(title, QUICK_FIX, command, codes=("KL002",))]
    if blocked.cause is Cause.NO_WORKLOAD:
        title = f"Declare a workload for {unit.name}"
        data = {"action": "declare", **target_of(state, unit)}
        record = f"Record workloads of {unit.name}…"
        return [
            Action(title, QUICK_FIX, data=data, codes=("KL803",)),
            Action(
                record,
                QUICK_FIX,
                Command(record, "kernelLsp.recordWorkloads", target_of(state, unit)),
                codes=("KL803",),
            ),
        ]
    return []


def _offer_actions(state: FileState, unit: UnitState) -> list[Action]:
    found: list[Action] = []
    if unit.best is not None:
        found += _timed_actions(state, unit, unit.best)
    for offer in unit.untimed[:UNTIMED_SHOWN]:
        found += _untimed_actions(state, unit, offer)
    if unit.applied is not None:
        found.append(_revert_action(state, unit, unit.applied))
    if unit.stale is not None and unit.best is None and not unit.run:
        found += _stale_actions(state, unit, unit.stale)
    return found


def _timed_actions(state: FileState, unit: UnitState, offer: Offer) -> list[Action]:
    review = f"Review {offer.factor} rewrite of {unit.name}"
    return [
        Action(
            f"Apply {offer.factor} rewrite of {unit.name}",
            REWRITE,
            data=_apply_data(state, unit, offer),
            preferred=True,
            model_made=offer.model_made,
        ),
        Action(review, REWRITE, offer_command("review", review, offer)),
    ]


def _untimed_actions(state: FileState, unit: UnitState, offer: Offer) -> list[Action]:
    what = offer.candidate.title
    review = f"Review CPU-checked rewrite of {unit.name} (not timed): {what}"
    return [
        Action(
            f"Apply CPU-checked rewrite of {unit.name} (not timed): {what}",
            REWRITE,
            data=_apply_data(state, unit, offer),
            model_made=offer.model_made,
        ),
        Action(review, REWRITE, offer_command("review", review, offer)),
    ]


def _stale_actions(state: FileState, unit: UnitState, offer: Offer) -> list[Action]:
    verify = f"Re-verify {unit.name}: it changed since the {offer.label} was made"
    review = f"Review {offer.label} of an earlier {unit.name}"
    found = [Action(review, REWRITE, offer_command("review", review, offer))]
    if blocker(state, unit) is None:
        command = Command(verify, "kernelLsp.verify", target_of(state, unit))
        found.insert(0, Action(verify, REWRITE, command))
    return found


def _revert_action(state: FileState, unit: UnitState, offer: Offer) -> Action:
    data = {**_apply_data(state, unit, offer), "action": "revert"}
    return Action(f"Revert {unit.name} to its form before {offer.run_id}", REWRITE, data=data)


def _cancel_action(unit: UnitState) -> Action:
    assert unit.run is not None
    title = f"Cancel optimization of {unit.name}"
    return Action(title, CANCEL, Command(title, "kernelLsp.cancel", {"runId": unit.run.id}))


def _details_action(state: FileState, unit: UnitState) -> Action:
    verb = "Hide" if unit.details else "Show"
    title = f"{verb} performance details for {unit.name}"
    argument = {**target_of(state, unit), "show": not unit.details}
    return Action(title, DETAILS, Command(title, "kernelLsp.details", argument))


def _helper_actions(state: FileState, line: int) -> list[Action]:
    kernel = state.snapshot.kernel_at(line)
    if kernel is None:
        return []
    users = tuple(u.name for u in state.units if kernel in u.view.unit.helpers)
    title = f"Why can't I optimize {kernel.name}?"
    argument = {"uri": state.snapshot.uri, "kernel": kernel.qualified_name}
    return [
        Action(f"Optimize {kernel.name}…", REWRITE, disabled=helper_blocker(kernel, users).reason),
        Action(title, REWRITE, Command(title, "kernelLsp.explain", argument)),
    ]


def _apply_data(state: FileState, unit: UnitState, offer: Offer) -> dict[str, Any]:
    return {
        "action": "apply",
        **target_of(state, unit),
        "runId": offer.run_id,
        "candidateId": offer.id,
        "hash": unit.view.hash,
    }
