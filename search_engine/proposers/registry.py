"""All proposers, in the order in which they are asked."""

from __future__ import annotations

from search_engine.domain.ports import Proposer
from search_engine.proposers.configurations import Configurations
from search_engine.proposers.rules import Rules
from search_engine.rules.registry import RULES

PROPOSERS: tuple[Proposer, ...] = (Rules(RULES), Configurations())
