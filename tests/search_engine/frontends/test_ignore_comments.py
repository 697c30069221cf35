from __future__ import annotations

import pytest

from search_engine.domain.finding import Finding, Severity
from search_engine.frontends.ignore_comments import ignore_comments, statements
from search_engine.frontends.triton import parse_module

TEXT = '''\
"""Doubles."""
{top}
import torch
import triton
import triton.language as tl


{above_kernel}
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):{on_def}
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {above_store}
    tl.store({on_store}
        out_ptr + offsets,
        tl.load(x_ptr + offsets, mask=offsets < n) * 2,
        mask=offsets < n,{in_store}
    )
    tl.debug_barrier()


{above_entry}
def scale(x):
    out = torch.empty_like(x)
    scale_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out
'''
PLACES = ("top", "above_kernel", "on_def", "above_store", "on_store", "in_store", "above_entry")
LINES = {
    "offsets": 11 - 1, "store": 13 - 1, "inside": 15 - 1, "barrier": 18 - 1, "launch": 24 - 1,
    "module": 3,
}  # fmt: skip


def hidden(place: str, comment: str, code: str = "KL105", kernel: str | None = None) -> set[str]:
    text = TEXT.format(**{name: comment if name == place else "" for name in PLACES})
    module = parse_module(text, "k.py")
    comments = ignore_comments(module)
    found: set[str] = set()
    for name, line in LINES.items():
        finding = Finding(
            "k.py", line, line, 0, 1, kernel, code, "narrow-access", Severity.HINT, "m"
        )
        if any(item.hides(finding) for item in comments):
            found.add(name)
    return found


KERNEL_LINES = {"offsets", "store", "inside", "barrier"}


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("top", set(LINES)),
        ("above_kernel", KERNEL_LINES),
        ("on_def", KERNEL_LINES),
        ("above_store", {"store", "inside"}),
        ("on_store", {"store", "inside"}),
        ("in_store", {"store", "inside"}),
        ("above_entry", {"launch"}),
    ],
)
def test_what_a_comment_covers(place: str, lines: set[str]) -> None:
    for comment in (
        "# kernel-lsp: ignore",
        "#kernel-lsp:ignore[KL105]",
        "# kernel-lsp: ignore[KL203, narrow-access]  # it is fine",
    ):
        assert hidden(place, comment) == lines, comment
    assert hidden(place, "# kernel-lsp: ignore[KL203]") == set()
    assert hidden(place, "# kernel-lsp: ignored") == set()


def test_a_comment_on_a_kernel_hides_its_findings_elsewhere() -> None:
    assert "launch" in hidden("on_def", "# kernel-lsp: ignore", kernel="scale_kernel")
    assert "launch" not in hidden("on_store", "# kernel-lsp: ignore", kernel="scale_kernel")


def test_text_in_a_string_is_no_comment() -> None:
    assert hidden("above_store", '"""\n    # kernel-lsp: ignore\n    """') == set()


def test_an_open_bracket_costs_one_function() -> None:
    assert statements(b"x = (1,\n\n@jit\ndef f():\n    return [\n  1]\n") == (
        (0, 1), (2, 2), (3, 3), (4, 5),
    )  # fmt: skip
