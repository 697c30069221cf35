"""What every rewrite rule must satisfy; a new rule inherits this by its registry line."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

import pytest

from search_engine.domain.candidate import Numerics, Rewrite, apply_edits
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.rules._base import Rule, Subject
from search_engine.rules._subject import make_subject
from search_engine.rules.registry import RULES, UnknownRuleError, rule_named
from search_engine.targets.nvidia_sm90 import TARGET

HEADINGS = (
    "What it does", "Why it helps", "When it does not", "Before", "After", "Safety", "Evidence",
)  # fmt: skip

COMMENT = "# a comment that stands outside the unit\n"

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def sections(rule: Rule) -> dict[str, str]:
    """The parts of the docstring of a rule's module, by heading."""
    docstring = inspect.getdoc(sys.modules[type(rule).__module__]) or ""
    parts = re.split(rf"^({'|'.join(HEADINGS)})$", docstring, flags=re.MULTILINE)
    texts = (textwrap.dedent(part.strip("\n")) + "\n" for part in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


def subject_of(text: str) -> Subject | None:
    """The first unit of a text with its declared workload."""
    module = parse_module(text, "example.py")
    workloads, problems = parse_workloads(module)
    assert not problems, problems
    unit = module.units[0]
    assert unit.entry is not None
    workload = next(w for w in workloads if w.entry == unit.entry.qualified_name)
    return make_subject(module, unit, workload, TARGET)


def offers(rule: Rule, text: str) -> tuple[Rewrite, ...]:
    """What a rule offers for the first unit of a text."""
    subject = subject_of(text)
    return () if subject is None else rule.rewrites(subject)


def test_every_sibling_file_is_listed():
    folder = Path(inspect.getfile(rule_named)).parent
    files = {path.stem for path in folder.glob("[a-z]*.py")} - {"registry"}
    assert files == {type(rule).__module__.rpartition(".")[2] for rule in RULES}


def test_names_are_unique_and_match_their_files():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for rule in RULES:
        assert type(rule).__module__.endswith(rule.name.replace("-", "_"))
        assert rule_named(rule.name) is rule


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownRuleError, match="one-block-per-row"):
        rule_named("no-such-rule")


@each_rule
def test_documentation_has_the_fixed_headings(rule: Rule):
    found = sections(rule)
    assert tuple(found) == HEADINGS
    assert all(text.strip() for text in found.values())


@each_rule
def test_the_example_becomes_exactly_what_the_documentation_shows(rule: Rule):
    found = sections(rule)
    results = [apply_edits(found["Before"], r.edits) for r in offers(rule, found["Before"])]
    assert found["After"] in results


@each_rule
def test_edits_stay_inside_the_unit_and_keep_what_is_around_it(rule: Rule):
    before = sections(rule)["Before"].replace("\n\n\n@", f"\n\n{COMMENT}\n\n@") + COMMENT
    subject = subject_of(before)
    assert subject is not None
    rewrites = rule.rewrites(subject)
    assert rewrites
    for rewrite in rewrites:
        assert rewrite.rule == rule.name
        assert rewrite.title
        assert isinstance(rewrite.numerics, Numerics)
        for edit in rewrite.edits:
            spans = subject.unit.spans
            assert any(s.start <= edit.start <= edit.end <= s.end for s in spans), edit
        after = apply_edits(before, rewrite.edits)
        ast.parse(after)
        assert after.count(COMMENT) == before.count(COMMENT) == 2


@each_rule
def test_the_same_subject_gives_the_same_rewrites(rule: Rule):
    before = sections(rule)["Before"]
    assert offers(rule, before) == offers(rule, before)


@each_rule
def test_a_second_application_does_not_repeat_the_first(rule: Rule):
    before = sections(rule)["Before"]
    for rewrite in offers(rule, before):
        once = apply_edits(before, rewrite.edits)
        for again in offers(rule, once):
            twice = apply_edits(once, again.edits)
            ast.parse(twice)
            assert twice not in (once, before)
            assert again.title != rewrite.title


@each_rule
def test_suggested_configurations_name_something_and_differ(rule: Rule):
    for rewrite in offers(rule, sections(rule)["Before"]):
        assert len(set(rewrite.configurations)) == len(rewrite.configurations)
        for configuration in rewrite.configurations:
            assert configuration
            for assignment in configuration:
                assert assignment.name.isidentifier()
                assert int(assignment.value) > 0


@each_rule
def test_no_rule_touches_a_kernel_that_is_launched_elsewhere(rule: Rule):
    before = sections(rule)["Before"]
    kernel = parse_module(before, "example.py").units[0].kernel.name
    assert offers(rule, before + f"\n\nother = {kernel}\n") == ()


@each_rule
def test_an_unrelated_kernel_is_left_alone(rule: Rule):
    assert offers(rule, UNRELATED) == ()


UNRELATED = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# kernel-lsp: workload x=f32[1000000] y=f32[1000000]
# kernel-lsp: reference x + y
def add(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out
"""
