"""A code action and the command behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernel_lsp.features.state import FileState, UnitState


@dataclass(frozen=True, slots=True)
class Command:
    """A server command with its one argument object."""

    title: str
    name: str
    argument: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One code action. ``data`` asks for its edit to be computed on resolve."""

    title: str
    kind: str
    command: Command | None = None
    data: dict[str, Any] | None = None
    preferred: bool = False
    disabled: str | None = None
    model_made: bool = False
    codes: tuple[str, ...] = field(default=())
    """Codes of the diagnostics that it answers."""


def start_command(
    state: FileState, unit: UnitState, title: str, rules: tuple[str, ...] = ()
) -> Command:
    """The start of a run; with ``rules`` of one that tries those alone."""
    argument = {
        **target_of(state, unit),
        "version": state.snapshot.version,
        "unitHash": unit.view.hash,
        "effort": state.settings.effort,
    }
    if rules:
        argument["rules"] = list(rules)
    return Command(title, "kernelLsp.optimize", argument)


def target_of(state: FileState, unit: UnitState) -> dict[str, Any]:
    """What names a kernel in an argument."""
    return {"uri": state.snapshot.uri, "kernel": unit.name}
