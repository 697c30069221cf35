"""Greedy beam: the fastest structures, each by its best configuration, and one wild card.

A structure is judged by the best of its configurations, not by its first. The wild card is a living
structure outside the beam that has not been developed yet, so that a lineage whose first children
were slow still gets one chance.
"""

from __future__ import annotations

from search_engine.domain.candidate import CandidateId
from search_engine.search.tree import Node, Tree


def best_of_structures(tree: Tree) -> tuple[Node, ...]:
    """The fastest living node of each structure, fastest structure first; the root's included."""
    best: dict[CandidateId, Node] = {}
    for node in (tree[tree.root], *tree.ranked()):
        held = best.get(node.candidate.structure)
        if held is None or (node.ratio or 0.0) > (held.ratio or 0.0):
            best[node.candidate.structure] = node
    return tuple(sorted(best.values(), key=lambda node: -(node.ratio or 0.0)))


def select(tree: Tree, width: int, developed: frozenset[CandidateId]) -> tuple[Node, ...]:
    """Up to ``width`` nodes to develop and one wild card.

    ``developed`` holds the ids of nodes that were developed already; a structure whose best node is
    among them has nothing new to offer and is passed over.
    """
    leaders = [node for node in best_of_structures(tree) if node.candidate.id not in developed]
    structures = {tree[item].candidate.structure for item in developed}
    wild = [node for node in leaders[width:] if node.candidate.structure not in structures]
    return (*leaders[:width], *wild[:1])
