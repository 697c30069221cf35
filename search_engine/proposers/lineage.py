"""Make candidates from their parent: ids, steps and numerics accumulate along a lineage."""

from __future__ import annotations

from collections.abc import Iterable

from search_engine.domain.candidate import (
    Assignment,
    Candidate,
    Numerics,
    Rewrite,
    candidate_id,
)

_ORDER = (Numerics.EXACT, Numerics.REASSOCIATES, Numerics.LOWERS_PRECISION)


def weakest(*numerics: Numerics) -> Numerics:
    """The largest change of arithmetic among several; EXACT for none."""
    return max(numerics, key=_ORDER.index, default=Numerics.EXACT)


def configured(
    node: Candidate, text: str, assignments: Iterable[Assignment], numerics: Numerics, proposer: str
) -> Candidate:
    """A candidate with the parent's structure and other values of its meta-parameters."""
    values = {item.name: item for item in node.configuration}
    values |= {item.name: item for item in assignments}
    return Candidate(
        id=candidate_id(text),
        text=text,
        parent=node.id,
        structure=node.structure,
        proposer=proposer,
        steps=node.steps,
        rules=node.rules,
        configuration=tuple(values.values()),
        numerics=weakest(node.numerics, numerics),
        hints=node.hints,
    )


def rewritten(node: Candidate, text: str, rewrite: Rewrite, proposer: str) -> Candidate:
    """A candidate with a new structure."""
    identity = candidate_id(text)
    return Candidate(
        id=identity,
        text=text,
        parent=node.id,
        structure=identity,
        proposer=proposer,
        steps=(*node.steps, rewrite.title),
        rules=(*node.rules, rewrite.rule),
        configuration=node.configuration,
        numerics=weakest(node.numerics, rewrite.numerics),
        hints=rewrite.configurations,
    )
