"""What a proposer may look at, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.candidate import Candidate
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.target import Target
from search_engine.domain.workload import Workload


@dataclass(frozen=True, slots=True)
class Context:
    """A node with its parsed text, the unit in that text, the workload and the target."""

    node: Candidate
    module: Module
    unit: Unit
    workload: Workload
    target: Target
