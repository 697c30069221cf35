"""Sample configurations for the structure of a node.

Hints of the rule that made the structure come first, then the list for its kind of kernel, then
neighbours of the present values drawn at random. Values that would narrow the kernel's domain are
on no ladder, and values that cannot fit the target are dropped before anything is compiled.
"""

from __future__ import annotations

import itertools
import random

from search_engine.domain.candidate import Assignment, Candidate, Numerics
from search_engine.domain.kernel import OperationKind, Unit
from search_engine.domain.ports import ProposalContext
from search_engine.proposers.configuration_space import Space, read_space
from search_engine.proposers.lineage import configured
from search_engine.proposers.tunables import UnknownTunableError

_REORDERING = (
    OperationKind.REDUCTION, OperationKind.DOT, OperationKind.SCAN, OperationKind.ATOMIC,
)  # fmt: skip


class Configurations:
    """Other values for the meta-parameters of a node."""

    name = "configurations"

    def __init__(self, limit: int = 24) -> None:
        self._limit = limit
        """Most candidates of one proposal, hints included."""

    def propose(self, context: ProposalContext, rng: random.Random) -> tuple[Candidate, ...]:
        """Up to ``limit`` candidates with the node's structure, most promising first."""
        try:
            space = read_space(context)
        except (SyntaxError, ValueError):
            return ()
        numerics = _numerics(context.unit)
        # A rule may know more than a ladder: its hints are taken as they stand.
        points = itertools.chain(context.node.hints, space.ordered(rng, self._limit))
        found: dict[str, Candidate] = {}
        for assignments in points:
            text = _assigned(space, assignments)
            if text is None or text == context.module.text:
                continue
            made = configured(context.node, text, assignments, numerics, self.name)
            found.setdefault(made.id, made)
            if len(found) == self._limit:
                break
        return tuple(found.values())


def _numerics(unit: Unit) -> Numerics:
    """A block size decides in which order a sum is taken."""
    kernels = (unit.kernel, *unit.helpers, *unit.siblings)
    kinds = {operation.kind for kernel in kernels for operation in kernel.operations}
    return Numerics.REASSOCIATES if kinds & set(_REORDERING) else Numerics.EXACT


def _assigned(space: Space, assignments: tuple[Assignment, ...]) -> str | None:
    """The new text; None for a hint that names what the unit lacks."""
    if not assignments:
        return None
    try:
        return space.source.assign(assignments)
    except (UnknownTunableError, ValueError):
        return None
