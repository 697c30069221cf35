"""All proposers: those that change a structure, and those that set the meta-parameters of one.

A search asks every structure proposer for a node, then the configuration proposers for the node and
for each new structure, since a rewrite must not be judged by its first configuration.
"""

from __future__ import annotations

from collections.abc import Callable

from search_engine.domain.ports import Proposer
from search_engine.proposers.configurations import Configurations
from search_engine.proposers.rules import Rules
from search_engine.rules._base import Rule
from search_engine.rules.registry import RULES

STRUCTURES: tuple[Callable[[tuple[Rule, ...]], Proposer], ...] = (Rules,)
"""Each is made with the rules that a run may use."""

CONFIGURATIONS: tuple[Callable[[int], Proposer], ...] = (Configurations,)
"""Each is made with the most candidates that it may propose."""


def structure_proposers(rule_names: tuple[str, ...] = ()) -> tuple[Proposer, ...]:
    """Proposers of other structures; with names, restricted to the rules of these names."""
    rules = tuple(rule for rule in RULES if not rule_names or rule.name in rule_names)
    return tuple(make(rules) for make in STRUCTURES)


def configuration_proposers(limit: int) -> tuple[Proposer, ...]:
    """Proposers of other meta-parameters, with at most ``limit`` candidates each."""
    return tuple(make(limit) for make in CONFIGURATIONS)
