"""What the rules proposer accepts from a rule."""

import logging
import random

import pytest

from proposers.sources import SPELLINGS, context
from search_engine.domain.candidate import Assignment, Numerics, Rewrite, TextEdit
from search_engine.proposers.rules import Rules

TEXT = SPELLINGS["constant"].replace("tl.program_id(0)", "tl.program_id(0).to(tl.int64)")
SHAPES = {"x": (1 << 20,)}


class Replace:
    """A rule that replaces one text by another wherever it stands first."""

    def __init__(self, old, new, numerics=Numerics.EXACT, name="replace-text"):
        self.name = name
        self.numerics = numerics
        self._old, self._new = old, new

    def rewrites(self, subject):
        start = subject.text.index(self._old)
        edit = TextEdit(start, start + len(self._old), self._new)
        hints = ((Assignment("BLOCK", "1024"),),)
        return (Rewrite(self.name, "Replace it", (edit,), self.numerics, hints),)


class Broken:
    name = "broken-rule"
    numerics = Numerics.EXACT

    def rewrites(self, subject):
        raise AttributeError("no such node")


def proposed(*rules, made=None):
    return Rules(rules).propose(made or context(TEXT, SHAPES), random.Random(0))


GOOD = Replace("2 * tl.load", "tl.load")


def test_a_rewrite_becomes_a_structure_of_its_own():
    made = context(TEXT, SHAPES, steps=("First",), rules=("first",))
    (candidate,) = proposed(GOOD, made=made)
    assert candidate.structure == candidate.id != made.node.id
    assert candidate.parent == made.node.id
    assert candidate.steps == ("First", "Replace it")
    assert candidate.rules == ("first", "replace-text")
    assert candidate.hints == ((Assignment("BLOCK", "1024"),),)
    assert candidate.text == TEXT.replace("2 * tl.load", "tl.load")


def test_numerics_of_a_lineage_are_the_weakest():
    made = context(TEXT, SHAPES, numerics=Numerics.REASSOCIATES)
    assert proposed(GOOD, made=made)[0].numerics is Numerics.REASSOCIATES


def test_a_rule_that_raises_costs_its_own_candidates_only(caplog):
    with caplog.at_level(logging.ERROR):
        assert len(proposed(Broken(), GOOD)) == 1
    assert "broken-rule" in caplog.text


def test_two_rules_with_one_result_give_one_candidate():
    assert len(proposed(GOOD, Replace("2 * tl.load", "tl.load", name="other"))) == 1


@pytest.mark.parametrize(
    "rule",
    [
        Replace("2 * tl.load", "2 *** tl.load"),
        Replace("2 * tl.load", "2 * tl.load"),
        Replace("import torch\n", "import torch, os\n"),
        Replace(".to(tl.int64)", ""),
        Replace(".to(tl.int64)", ".to(tl.int32)"),
        Replace("+ tl.arange(0, BLOCK)", "+ tl.multiple_of(tl.arange(0, BLOCK), 16)"),
        Replace("+ tl.arange(0, BLOCK)", "+ tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)"),
        Replace("2 * tl.load", "1 * tl.load", Numerics.LOWERS_PRECISION),
    ],
    ids=["no Python", "the parent itself", "outside the unit", "cast dropped", "cast narrowed",
         "multiple_of", "max_contiguous", "precision"],
)  # fmt: skip
def test_what_is_not_accepted(rule):
    assert proposed(rule) == ()


def test_lower_precision_with_permission():
    import dataclasses

    made = context(TEXT, SHAPES)
    allowed = dataclasses.replace(made.workload, allow=("lowers-precision",))
    made = dataclasses.replace(made, workload=allowed)
    rule = Replace("2 * tl.load", "1 * tl.load", Numerics.LOWERS_PRECISION)
    assert proposed(rule, made=made)[0].numerics is Numerics.LOWERS_PRECISION


def test_merging_two_equal_casts_is_no_loss():
    text = TEXT.replace(
        "    mask = offsets < n\n",
        "    mask = offsets < n\n    again = tl.program_id(0).to(tl.int64)\n",
    )
    rule = Replace("    again = tl.program_id(0).to(tl.int64)\n", "")
    assert len(proposed(rule, made=context(text, SHAPES))) == 1
