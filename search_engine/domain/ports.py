"""The Protocols that the search depends on; implementations stand in the packages below."""

from __future__ import annotations

import random
from typing import Protocol

from search_engine.domain.candidate import Candidate
from search_engine.domain.event import SearchEvent
from search_engine.domain.job import Job, JobResult, Lane
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.target import Target
from search_engine.domain.workload import Workload


class Executor(Protocol):
    """Runs jobs somewhere, enforces deadlines from outside, replaces what died."""

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        """Run one job. Never raises for what a job does; a cancelled await kills the job."""
        ...

    async def close(self) -> None:
        """Kill every worker group and wait until none is left."""
        ...


class Proposer(Protocol):
    """One member of the universal operator: node in, candidates out."""

    name: str

    def propose(self, context: ProposalContext, rng: random.Random) -> tuple[Candidate, ...]:
        """Complete candidates derived from ``context.node``, most promising first."""
        ...


class ProposalContext(Protocol):
    """What a proposer may look at."""

    @property
    def node(self) -> Candidate:
        """The candidate to start from."""
        ...

    @property
    def module(self) -> Module:
        """The parsed text of the node."""
        ...

    @property
    def unit(self) -> Unit:
        """The unit in that text."""
        ...

    @property
    def workload(self) -> Workload:
        """Inputs and reference."""
        ...

    @property
    def target(self) -> Target:
        """What is compiled for."""
        ...


class Listener(Protocol):
    """Receives the events of a run, in order."""

    def __call__(self, event: SearchEvent) -> None:
        """Handle one event; must not block."""
        ...
