"""Figures in words: with their units, and never as if they were measured."""

import fake_facts_host
import pytest

from kernel_lsp.facts.places import TargetFacts
from kernel_lsp.features import figures
from search_engine.domain.kernel import OperationKind
from search_engine.domain.summary import AccessWidth
from search_engine.frontends.triton import parse_module


def facts(kernel, target="sm_90", accesses=(), **changes):
    unit = parse_module(kernel, "k.py").units[0]
    made = fake_facts_host.summary(unit, target, accesses, **changes)
    return TargetFacts(target, made, (), (), None)


def test_short_figures_name_what_binds_and_what_is_assumed(kernel):
    assert figures.short((facts(kernel),)) == "40 registers, 56 % occupancy (registers)"
    spilling = facts(kernel, spill_bytes=48, limiters=("registers", "shared memory"))
    assert figures.short((spilling,)) == (
        "40 registers, 48 B spilled, 56 % occupancy (registers and shared memory)"
    )
    full = facts(kernel, occupancy=1.0, limiters=("warps",), assumed=True, grid=None)
    assert figures.short((full,)) == "40 registers, 100 % occupancy, assumed launch"
    assert figures.short(()) is None


def test_tables_have_a_column_for_each_target(kernel):
    rows = figures.table((facts(kernel), facts(kernel, "gfx942", bytes=None, floor_us=None)))
    by_label = {row[0]: row[1:] for row in rows}
    assert by_label[""] == ("sm_90", "gfx942")
    assert by_label["moves at least"] == ("8 KiB", "–")
    assert by_label["memory floor"] == ("2.5 µs (datasheet bound)", "–")
    assert by_label["launch"] == ("8×1×1 programs", "8×1×1 programs")
    widths = {len(line) for line in figures.markdown(rows).splitlines()}
    assert len(widths) == 1, "cells are padded: some clients show the source"
    assert "|" not in figures.plain(rows)


def test_instructions_of_a_line_are_told_widest_first(kernel):
    made = facts(
        kernel,
        accesses=(
            AccessWidth(3, OperationKind.LOAD, 4, 1),
            AccessWidth(3, OperationKind.LOAD, 16, 8),
            AccessWidth(3, OperationKind.STORE, 2, 1),
            AccessWidth(4, OperationKind.DOT, 0, 2),
        ),
    )
    assert figures.line_accesses(made, 3, 3) == "8 loads of 16 B, 1 of 4 B, 1 store of 2 B"
    assert figures.line_accesses(made, 4, 6) == "2 matrix instructions"
    assert figures.line_accesses(made, 5, 9) is None


@pytest.mark.parametrize(("count", "text"), [(512, "512 B"), (98304, "96 KiB"), (2**31, "2 GiB")])
def test_sizes_have_binary_units(count, text):
    assert figures.size(count) == text
