from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_engine.archive.facts_lines import LineError, LineMap
from search_engine.domain.code import LineCode, PipelinedLoop
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import Module, Unit
from search_engine.frontends.triton import parse_module

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
HELPER = """\
@triton.jit
def doubled(value):
    twice = value * 2.0
    return twice


"""
KERNEL = """\
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    for first in range(0, n, BLOCK):
        offsets = first + pid * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        wanted = tl.load(x_ptr + offsets, mask=mask, other=1.5e-3)
        result = doubled(wanted) + (wanted - 0.5)
        tl.store(out_ptr + offsets, result, mask=mask)


"""
ENTRY = """\
def scale(x):
    out = torch.empty_like(x)
    size = x.numel()
    scale_kernel[(triton.cdiv(size, 64),)](x, out, size, BLOCK=64)
    return out


"""


def unit_of(text: str) -> tuple[Module, Unit]:
    module = parse_module(text, "k.py")
    return module, module.units[0]


def code_at(lines: list[int]) -> tuple[LineCode, ...]:
    return tuple(LineCode(line, 0, ()) for line in lines)


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """The same syntax in another order, at other places, with other line breaks and comments."""
    parts = draw(st.permutations([HELPER, KERNEL, ENTRY]))
    lines: list[str] = []
    for line in "".join(parts).splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", f"{indent}# a remark: x = 1", "    # 7 words"])))
        choice = draw(st.integers(0, 3))
        if choice == 1 and line.count("(") == 1 and not line.lstrip().startswith(("def", "for")):
            line = re.sub(r"\(", "(\n" + indent + "        ", line, count=1)  # after the bracket
        elif choice == 2 and ", " in line and "(" in line and not line.startswith("@"):
            line = line.replace(", ", ",  # so\n" + indent + "            ")  # after each comma
        lines.append(line + ("  # why" if choice == 3 and line.strip() else ""))
    before = draw(st.sampled_from(["", "LIMIT = 3\n\n\n", "def other(a):\n    return a\n\n\n"]))
    return HEAD + before + "\n".join(lines) + "\n"


@settings(max_examples=60, deadline=None)
@given(layouts(), layouts())
def test_a_line_is_found_again_in_another_layout(old: str, new: str) -> None:
    old_module, old_unit = unit_of(old)
    new_module, new_unit = unit_of(new)
    assert old_unit.hash == new_unit.hash
    before, after = LineMap(old_module, old_unit), LineMap(new_module, new_unit)
    assert before.signature == after.signature
    rows, new_rows = old.splitlines(), new.splitlines()
    lines = [
        line
        for span in old_unit.spans
        for line in range(span.line, span.end_line + 1)
        if re.match(r"\s*[A-Za-z@]", rows[line])
    ]
    restored = after.restore(before.keep(code_at(lines)))
    for line, code in zip(lines, restored, strict=True):
        assert code.line is not None
        word = re.findall(r"\w+", rows[line])[0]
        assert re.search(rf"\b{word}\b", new_rows[code.line].split("#")[0])


def test_a_range_keeps_its_last_statement() -> None:
    module, unit = unit_of(HEAD + KERNEL + HELPER + ENTRY)
    rows = module.text.splitlines()
    first = next(i for i, row in enumerate(rows) if "for first" in row)
    last = next(i for i, row in enumerate(rows) if "tl.store" in row)
    kept = LineMap(module, unit).keep(PipelinedLoop(first, last, 1, 0, 1, False))
    wrapped = module.text.replace(
        "out_ptr + offsets, result, mask=mask", "out_ptr\n+ offsets,\nz,\nmask=mask"
    )
    wrapped = wrapped.replace("z", "result")
    moved, moved_unit = unit_of("# new\n\n" + wrapped)
    loop = LineMap(moved, moved_unit).restore(kept)
    assert (loop.line, loop.end_line) == (first + 2, last + 2 + 3)


def test_a_line_outside_the_unit_becomes_none_where_it_may() -> None:
    module, unit = unit_of(HEAD + KERNEL + ENTRY)
    kept = LineMap(module, unit).keep(Refusal(RefusalKind.COMPILE, "no", 0))
    assert kept.line is None


def test_facts_of_a_unit_with_other_words_are_refused() -> None:
    module, unit = unit_of(HEAD + KERNEL + ENTRY)
    line = unit.kernel.span.end_line
    kept = LineMap(module, unit).keep(PipelinedLoop(None, line, 1, 0, 1, False))
    short, short_unit = unit_of(HEAD + KERNEL.replace("        mask = offsets < n\n", "") + ENTRY)
    other = LineMap(short, short_unit)
    assert other.signature != LineMap(module, unit).signature
    with pytest.raises(LineError):
        other.restore(kept)
