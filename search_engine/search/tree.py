"""The search tree: nodes, their states, and what is known about each. Insert-only."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.domain.candidate import Candidate, CandidateId
from search_engine.domain.facts import CompileFacts, Traffic
from search_engine.domain.job import CheckReply
from search_engine.domain.run import CandidateRecord, Rung
from search_engine.domain.verdict import Improved, Verdict


class NodeState(enum.Enum):
    """What the search does with a node."""

    OPEN = "open"
    EXPANDED = "expanded"
    """Its rewrites were asked for."""
    PRUNED = "pruned"
    """No more is spent on it; not a failure."""
    SETTLED = "settled"
    """It has a verdict."""


@dataclass(slots=True)
class Node:
    """A candidate and what the ladder found out about it."""

    candidate: Candidate
    state: NodeState = NodeState.OPEN
    rung: Rung = Rung.PARSE
    verdict: Verdict | None = None
    ratio: float | None = None
    """Baseline time over its time in screening; an order, never a claim."""
    facts: CompileFacts | None = None
    check: CheckReply | None = None

    @property
    def traffic(self) -> Traffic | None:
        """Bytes counted by the interpreter, if it ran there."""
        return self.check.candidate_traffic if self.check is not None else None

    @property
    def alive(self) -> bool:
        """No failing verdict and not pruned."""
        standing = self.verdict is None or isinstance(self.verdict, Improved)
        return standing and self.state is not NodeState.PRUNED


class Tree:
    """All nodes of a run in insertion order; the baseline is the root."""

    def __init__(self, baseline: Candidate) -> None:
        self._nodes: dict[CandidateId, Node] = {baseline.id: Node(baseline, ratio=1.0)}
        self.root = baseline.id

    def insert(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Add candidates that are new by content; returns those."""
        fresh: list[Candidate] = []
        for candidate in candidates:
            if candidate.id not in self._nodes:
                self._nodes[candidate.id] = Node(candidate)
                fresh.append(candidate)
        return tuple(fresh)

    def __getitem__(self, candidate: CandidateId) -> Node:
        return self._nodes[candidate]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def ranked(self) -> tuple[Node, ...]:
        """Living nodes with a screened ratio, fastest first; the root is left out."""
        nodes = [n for n in self if n.ratio is not None and n.alive and n.candidate.id != self.root]
        return tuple(sorted(nodes, key=lambda node: -(node.ratio or 0.0)))

    def records(self) -> tuple[CandidateRecord, ...]:
        """Every candidate with its highest rung and verdict."""
        return tuple(CandidateRecord(n.candidate, n.rung, n.verdict, n.ratio) for n in self)
