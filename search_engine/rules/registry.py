"""All rewrite rules, those that gain most first where several fit."""

from __future__ import annotations

from search_engine.rules._base import Rule
from search_engine.rules.group_programs import GroupPrograms
from search_engine.rules.one_block_per_row import OneBlockPerRow
from search_engine.rules.online_reduction import OnlineReduction
from search_engine.rules.privatise_histogram import PrivatiseHistogram
from search_engine.rules.several_rows_per_program import SeveralRowsPerProgram
from search_engine.rules.specialise_sizes import SpecialiseSizes
from search_engine.rules.split_long_reduction import SplitLongReduction
from search_engine.rules.tile_strided_access import TileStridedAccess
from search_engine.rules.vector_accumulator import VectorAccumulator
from search_engine.rules.widen_matmul_tiles import WidenMatmulTiles

RULES: tuple[Rule, ...] = (
    SpecialiseSizes(),
    SeveralRowsPerProgram(),
    OneBlockPerRow(),
    OnlineReduction(),
    VectorAccumulator(),
    PrivatiseHistogram(),
    TileStridedAccess(),
    SplitLongReduction(),
    WidenMatmulTiles(),
    GroupPrograms(),
)


class UnknownRuleError(KeyError):
    """No rule of that name; the message lists the names that exist."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        names = ", ".join(rule.name for rule in RULES)
        return f"unknown rule {self.name!r}; known rules are {names}"


def rule_named(name: str) -> Rule:
    """The rule called ``name``. Raises UnknownRuleError."""
    for rule in RULES:
        if rule.name == name:
            return rule
    raise UnknownRuleError(name)
