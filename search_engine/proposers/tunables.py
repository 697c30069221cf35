"""The meta-parameters of a unit, and how to give them other values.

Only the unit is edited. A constant of the module is shadowed by a local of the entry, so that the
grid follows; a grid that repeats a block size as a number is edited along with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from search_engine.domain.candidate import Assignment, TextEdit
from search_engine.domain.kernel import Module, Unit
from search_engine.proposers.autotune import config_list
from search_engine.proposers.discovery import discover
from search_engine.proposers.line_ends import edited
from search_engine.proposers.sites import Sites, find_sites
from search_engine.proposers.tunable_types import Tunable, TunableKind


class UnknownTunableError(KeyError):
    """An assignment names no tunable of the unit."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"no tunable {self.name!r}; the unit has {', '.join(self.known) or 'none'}"


@dataclass(frozen=True, slots=True)
class UnitTunables:
    """The tunables of a unit, found once, and any number of texts with other values."""

    module: Module
    unit: Unit
    sites: Sites
    tunables: tuple[Tunable, ...]

    def assign(self, assignments: Iterable[Assignment]) -> str:
        """As the function ``assign``."""
        edits: list[TextEdit] = []
        pinned: dict[str, dict[str, str]] = {}
        for assignment in assignments:
            tunable = _named(self.tunables, assignment.name)
            _check_expression(assignment)
            if tunable.kind is TunableKind.CONFIG:
                own = tunable.name.rpartition(".")[2]
                pinned.setdefault(tunable.kernel, {})[own] = assignment.value
                continue
            edits.extend(
                TextEdit(place.start, place.end, place.template.format(assignment.value))
                for place in tunable.places
            )
        edits.extend(
            _pin(self.sites, self.tunables, kernel, values) for kernel, values in pinned.items()
        )
        _check_inside(self.unit, edits)
        return edited(self.module.text, tuple(edits))


def read_tunables(module: Module, unit: Unit) -> UnitTunables:
    """Find the tunables of a unit. Raises SyntaxError if the text does not parse."""
    sites = find_sites(module, unit)
    return UnitTunables(module, unit, sites, discover(module.text, sites))


def find_tunables(module: Module, unit: Unit) -> tuple[Tunable, ...]:
    """Every meta-parameter of a unit, the unit's own kernel first; empty if it does not parse."""
    try:
        return read_tunables(module, unit).tunables
    except (SyntaxError, ValueError):
        return ()


def assign(module: Module, unit: Unit, assignments: Iterable[Assignment]) -> str:
    """The complete text with new values; only bytes of the unit differ.

    Raises SyntaxError if the text does not parse, UnknownTunableError for a name that the unit
    lacks, and ValueError for a value that is no expression or an edit that would leave the unit.
    """
    return read_tunables(module, unit).assign(assignments)


def _named(tunables: tuple[Tunable, ...], name: str) -> Tunable:
    for tunable in tunables:
        if tunable.answers_to(name):
            return tunable
    raise UnknownTunableError(name, tuple(tunable.name for tunable in tunables))


def _check_expression(assignment: Assignment) -> None:
    try:
        ast.parse(assignment.value, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{assignment.name}={assignment.value!r} is no expression") from error


def _pin(
    sites: Sites, tunables: tuple[Tunable, ...], kernel: str, values: dict[str, str]
) -> TextEdit:
    configs = config_list(sites.tree, sites.kernels[kernel])
    place = next(
        item.places[0]
        for item in tunables
        if item.kernel == kernel and item.kind is TunableKind.CONFIG
    )
    if configs is None:
        raise ValueError(f"the autotune list of {kernel} cannot be read")
    return TextEdit(place.start, place.end, configs.pinned(values))


def _check_inside(unit: Unit, edits: list[TextEdit]) -> None:
    for edit in edits:
        if not any(span.start <= edit.start and edit.end <= span.end for span in unit.spans):
            raise ValueError(f"the edit at byte {edit.start} lies outside the unit")
