"""Edits rebuild the new text exactly, stay in the unit, and follow it through an edited file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_engine.domain.candidate import apply_edits
from search_engine.domain.kernel import Unit
from search_engine.edits import changes_only, hunks, transplant, unified_diff
from search_engine.frontends.triton import parse_module

_LINE = st.text(st.sampled_from("ab \t𝔘é\u0301\u2028\x0b\r"), max_size=6)
_END = st.sampled_from(["\n", "\r\n"])
TEXTS = st.builds(
    lambda lines, end, last: end.join(lines) + (end if last else ""),
    st.lists(_LINE, max_size=12),
    _END,
    st.booleans(),
)

BASE = """\
import triton
import triton.language as tl

COUNT = 1


@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(x + o, 1.0, mask=o < n)


# kernel-lsp: workload x=f32[64]
def run(x):
    kernel[(1,)](x, x.numel(), BLOCK=64)
    return x


def other(x):
    return x
"""
CANDIDATE = BASE.replace("BLOCK=64", "BLOCK=128").replace("1.0, mask", "2.0 - 1.0, mask")
ADDED = CANDIDATE.replace(
    "@triton.jit\ndef kernel", "@triton.jit\ndef one(o):\n    return o\n\n\n@triton.jit\ndef kernel"
).replace(
    "    return x\n\n\ndef other",
    "    return x\n\n\ndef helper(x):\n    return x\n\n\ndef other",
)


def unit_of(text: str) -> Unit:
    return parse_module(text, "m.py").units[0]


def carried(candidate: str, current: str) -> str:
    edits = transplant(
        BASE, unit_of(BASE), candidate, unit_of(candidate), current, unit_of(current)
    )
    return apply_edits(current, edits)


@given(TEXTS, TEXTS)
def test_hunks_turn_the_old_text_into_the_new(old: str, new: str) -> None:
    assert apply_edits(old, hunks(old, new)) == new


@given(TEXTS, st.integers(0, 11))
def test_hunks_of_one_changed_line_touch_one_line(text: str, index: int) -> None:
    lines = text.split("\n")
    index %= len(lines)
    changed = "\n".join([*lines[:index], lines[index] + "#", *lines[index + 1 :]])
    (edit,) = hunks(text, changed)
    assert edit.new_text.rstrip("\n") == lines[index] + "#"
    assert text.encode()[edit.start : edit.end].decode().rstrip("\n") == lines[index]


def test_hunks_are_minimal_and_in_order() -> None:
    edits = hunks("a\nb\nc\nd\n", "a\nB\nc\nd\ne\n")
    assert [(e.start, e.end, e.new_text) for e in edits] == [(2, 4, "B\n"), (8, 8, "e\n")]
    assert hunks("a\n", "a\n") == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [(BASE, ADDED), (BASE, CANDIDATE[:-1]), (BASE[:-1], CANDIDATE), ("", "a\n"), ("a\n", "")],
)
def test_a_unified_diff_can_be_applied(old: str, new: str, tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(old)
    diff = unified_diff(old, new, "m.py")
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=tmp_path, check=True)
    assert file.read_text() == new


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff(BASE, BASE, "m.py") == ""


def test_changes_only_sees_what_lies_outside() -> None:
    spans = unit_of(BASE).spans
    assert changes_only(BASE, CANDIDATE, spans)
    assert changes_only(BASE, ADDED, spans)
    assert not changes_only(BASE, CANDIDATE.replace("COUNT = 1", "COUNT = 2"), spans)
    assert not changes_only(BASE, BASE.replace("f32[64]", "f32[65]"), spans)
    assert not changes_only(BASE, BASE.replace("def other(x)", "def other(y)"), spans)
    assert not changes_only(BASE, BASE + "\n\ndef more():\n    pass\n", spans)
    assert not changes_only(BASE, "import os\n" + BASE, spans)


@pytest.mark.parametrize("candidate", [CANDIDATE, ADDED])
def test_transplant_onto_the_same_text_gives_the_candidate(candidate: str) -> None:
    assert carried(candidate, BASE) == candidate


def test_transplant_follows_the_unit_and_keeps_the_rest() -> None:
    def edited(text: str) -> str:
        return "# first\n" + text.replace("COUNT = 1", "COUNT = 1\n\n\ndef new(): ...").replace(
            "def other(x):\n    return x", "def other(x):\n    return x + 1"
        )

    assert carried(CANDIDATE, edited(BASE)) == edited(CANDIDATE)
    assert carried(ADDED, edited(BASE)) == edited(ADDED)


def test_transplant_follows_parts_that_changed_places() -> None:
    kernel = BASE[BASE.index("@triton.jit") : BASE.index("# kernel-lsp")]
    current = BASE.replace(kernel, "") + "\n\n" + kernel.rstrip("\n") + "\n"
    result = carried(ADDED, current)
    assert unit_of(result).hash == unit_of(ADDED).hash
    assert result.count("def one(o)") == result.count("def helper(x)") == 1
    assert result.index("def run") < result.index("def one") < result.index("def kernel")


def test_transplant_replaces_a_reformatted_unit() -> None:
    current = BASE.replace(
        "def kernel(x, n, BLOCK: tl.constexpr):",
        "def kernel(\n    x,\n    n,\n    BLOCK: tl.constexpr,\n):",
    ).replace("tl.store(x + o, 1.0, mask=o < n)", "tl.store(x+o, 1.0, mask=(o < n),)")
    result = carried(CANDIDATE, current)
    assert unit_of(result).hash == unit_of(CANDIDATE).hash
    assert result == CANDIDATE


def test_transplant_leaves_parts_alone_that_the_candidate_did_not_change() -> None:
    candidate = BASE.replace("BLOCK=64", "BLOCK=128")
    current = BASE.replace("tl.arange(0, BLOCK)", "tl.arange(\n        0, BLOCK\n    )")
    assert carried(candidate, current) == current.replace("BLOCK=64", "BLOCK=128")


def test_transplant_keeps_line_ends_and_a_missing_final_newline() -> None:
    short = BASE[: BASE.index("\n\n\ndef other")]
    crlf = short.replace("\n", "\r\n")
    result = carried(CANDIDATE, crlf)
    assert result == CANDIDATE[: CANDIDATE.index("\n\n\ndef other")].replace("\n", "\r\n")


METHOD = BASE.replace(
    "# kernel-lsp: workload x=f32[64]\ndef run(x):\n    kernel[(1,)](x, x.numel(), BLOCK=64)\n"
    "    return x\n",
    "class Layer:\n  def run(self, x):\n    kernel[(1,)](x, x.numel(), BLOCK=64)\n    return x\n",
)


def test_transplant_moves_the_indentation() -> None:
    candidate = METHOD.replace("BLOCK=64", "BLOCK=128")
    current = METHOD.replace(
        "  def run(self, x):\n    kernel", "    def run(self, x):\n        kernel"
    )
    current = current.replace("BLOCK=64)\n    return x", "BLOCK=64)\n        return x")
    edits = transplant(
        METHOD, unit_of(METHOD), candidate, unit_of(candidate), current, unit_of(current)
    )
    result = apply_edits(current, edits)
    assert "    def run(self, x):\n      kernel[(1,)](x, x.numel(), BLOCK=128)\n" in result
    assert unit_of(result).hash == unit_of(candidate).hash


def test_transplant_of_adjacent_parts_with_text_between_them() -> None:
    base = BASE.replace("# kernel-lsp: workload x=f32[64]\n", "")
    candidate = base.replace(
        "def run(x)", "@triton.jit\ndef two(x):\n    return x\n\n\ndef run(x)"
    ).replace("1.0, mask", "two(1.0), mask")
    edits = transplant(base, unit_of(base), candidate, unit_of(candidate), base, unit_of(base))
    assert apply_edits(base, edits) == candidate


def test_transplant_refuses() -> None:
    changed = BASE.replace("1.0, mask", "3.0, mask")
    with pytest.raises(ValueError, match="kernel changed since the candidate was made"):
        carried(CANDIDATE, changed)
    with pytest.raises(ValueError, match="outside the unit"):
        carried(CANDIDATE.replace("COUNT = 1", "COUNT = 2"), BASE)
