"""Candidates keep the line ends of the file, whatever the rules write."""

import random
from pathlib import Path

import pytest

from proposers.sources import context
from search_engine.domain.candidate import TextEdit
from search_engine.proposers.configurations import Configurations
from search_engine.proposers.line_ends import edited
from search_engine.proposers.rules import Rules
from search_engine.rules.registry import RULES

ROW_SUM = (Path(__file__).parents[3] / "examples" / "row_sum.py").read_text()
CRLF = ROW_SUM.replace("\n", "\r\n")


def candidates(text: str) -> list[str]:
    made = context(text, {"x": (1024, 4096)})
    rewrites = Rules(RULES).propose(made, random.Random(0))
    configured = Configurations().propose(made, random.Random(0))
    assert rewrites
    assert configured
    return [candidate.text for candidate in (*rewrites, *configured)]


def test_every_line_of_every_candidate_ends_in_crlf():
    found = candidates(CRLF)
    assert all(text.count("\n") == text.count("\r\n") > 0 for text in found)
    assert [text.replace("\r\n", "\n") for text in found] == candidates(ROW_SUM)


def test_mixed_line_ends_of_untouched_lines_stay():
    lines = CRLF.splitlines(keepends=True)
    odd = next(i for i, line in enumerate(lines) if line.startswith("import triton.language"))
    lines[odd] = lines[odd].replace("\r\n", "\n")
    for text in candidates("".join(lines)):
        single = [line for line in text.splitlines(keepends=True) if not line.endswith("\r\n")]
        assert single == [lines[odd]]


@pytest.mark.parametrize(
    ("text", "edit", "wanted"),
    [
        ("a\r\nb\r\nc\n", TextEdit(3, 6, "x\ny\n"), "a\r\nx\r\ny\r\nc\n"),
        ("a\nb\nc\r\n", TextEdit(2, 4, "x\r\ny\n"), "a\nx\ny\nc\r\n"),
        ("a\r\nb\nc\r\n", TextEdit(0, 8, "a\nb\nnew\nc\n"), "a\r\nb\nnew\r\nc\r\n"),
        ("a\r\nb\r\n", TextEdit(3, 6, "x\ny"), "a\r\nx\r\ny"),
        ("a\nb", TextEdit(2, 3, "x\ny"), "a\nx\ny"),
    ],
    ids=["mostly crlf", "mostly lf", "repeated lines", "no end", "lf"],
)
def test_new_lines_end_like_most_lines(text: str, edit: TextEdit, wanted: str):
    assert edited(text, (edit,)) == wanted


def test_a_byte_order_mark_stays_and_disturbs_no_proposer():
    assert candidates("\ufeff" + ROW_SUM) == ["\ufeff" + text for text in candidates(ROW_SUM)]
