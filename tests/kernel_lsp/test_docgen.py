from __future__ import annotations

import re

from kernel_lsp import docgen
from kernel_lsp.codes_without_check import CODES
from search_engine.diagnose import NAMES
from search_engine.findings.registry import CHECKS

PAGE = docgen.pages()[docgen.ROOT / "docs" / "findings.md"]


def test_every_code_has_one_anchor_and_a_row_in_the_table() -> None:
    codes = {item.code for item in (*CODES, *CHECKS)}
    assert sorted(re.findall(r'<a id="(kl\d{3})"></a>', PAGE)) == sorted(c.lower() for c in codes)
    assert set(re.findall(r"^\| \[(KL\d{3})\]\(#kl\d{3}\) ", PAGE, re.M)) == codes


def test_codes_of_the_text_are_named_as_they_are_found() -> None:
    named = {item.code: item.name for item in CODES}
    assert {code: named[code] for code in NAMES} == NAMES


def test_every_page_says_cause_fix_when_and_what_may_be_wrong() -> None:
    sections = re.split(r'<a id="kl\d{3}"></a>', PAGE)[1:]
    for section in sections:
        headings = re.findall(r"^\*\*(.+)\*\*$", section, re.M)
        assert headings == ["Cause", "Fix", "Shown when", "False positives"], section[:60]
