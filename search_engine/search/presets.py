"""The shape of a search at each effort, and budgets with the user's own limits."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.run import BUDGETS, Budget, Effort


@dataclass(frozen=True, slots=True)
class Shape:
    """How wide and how deep a search goes."""

    generations: int
    beam: int
    """Structures that are developed further in a generation."""
    rewrites: int
    """Most candidates taken from the rules for one node."""
    configurations: int
    """Most configurations tried for one node in one generation."""
    search_share: float
    """Share of wall and device seconds for searching; the rest is reserved for verification."""


SHAPES = {
    Effort.QUICK: Shape(2, 1, 24, 12, 0.5),
    Effort.NORMAL: Shape(4, 2, 40, 20, 0.6),
    Effort.THOROUGH: Shape(10, 3, 80, 40, 0.75),
}


class BudgetError(ValueError):
    """A budget that cannot be used; the message names the setting."""


def make_budget(effort: Effort, limits: dict[str, float] | None = None) -> Budget:
    """The preset's budget with the user's limits over it.

    ``limits`` has ``wallSeconds``, ``deviceSeconds`` and ``evaluations``. Raises BudgetError for an
    unknown name and for amounts that are zero or negative.
    """
    preset = BUDGETS[effort]
    values = {
        "wallSeconds": preset.wall_seconds,
        "deviceSeconds": preset.device_seconds,
        "evaluations": float(preset.evaluations),
    }
    for name, amount in (limits or {}).items():
        if name not in values:
            known = ", ".join(values)
            raise BudgetError(f"kernelLsp.budget.{name} is not a budget; known are {known}")
        if not amount > 0:
            raise BudgetError(f"kernelLsp.budget.{name} is {amount:g}; it must be above zero")
        values[name] = float(amount)
    return Budget(
        values["wallSeconds"], values["deviceSeconds"], max(1, int(values["evaluations"]))
    )
