"""Comments that hide a finding go where they are read."""

import pytest

from kernel_lsp.edits import ignoring
from kernel_lsp.snapshot import analyse
from search_engine.domain.candidate import apply_edits
from search_engine.domain.finding import Finding, Severity
from search_engine.frontends.ignore_comments import ignore_comments
from search_engine.frontends.triton import parse_module

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    x = {load}
    tl.store(y_ptr, x)
"""


@pytest.mark.parametrize(
    ("load", "wanted"),
    [
        ("tl.load(x_ptr)", "x = tl.load(x_ptr)  # kernel-lsp: ignore[narrow-access]\n"),
        ("tl.load(x_ptr)  # é", "x = tl.load(x_ptr)  # é  # kernel-lsp: ignore[narrow-access]\n"),
        (
            "tl.load(x_ptr)  # kernel-lsp: ignore[KL107]",
            "x = tl.load(x_ptr)  # kernel-lsp: ignore[KL107, narrow-access]\n",
        ),
        (
            "tl.load( \\\n        x_ptr)",
            "    # kernel-lsp: ignore[narrow-access]\n    x = tl.load( \\\n",
        ),
        ("tl.load(\n        x_ptr)", "x = tl.load(  # kernel-lsp: ignore[narrow-access]\n"),
    ],
    ids=["plain", "comment", "known", "continued", "brackets"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_ignore_comment_hides_its_finding(load, wanted, end):
    text = KERNEL.format(load=load).replace("\n", end)
    snapshot = analyse("file:///k.py", "/k.py", "/", 1, text)
    line = next(i for i, s in enumerate(snapshot.lines) if "x = tl.load" in s)
    found = Finding(
        "/k.py", line, line, *snapshot.code_of(line), "k", "KL105", "narrow-access",
        Severity.HINT, "loads of 4 B",
    )  # fmt: skip
    edit = ignoring(found, snapshot, "k")
    new = apply_edits(text, edit.edits)
    assert wanted.replace("\n", end) in new
    module = parse_module(new, "/k.py")
    assert not module.problems and module.units[0].hash == snapshot.units[0].hash
    moved = next(i for i, s in enumerate(new.split("\n")) if "x = tl.load" in s)
    place = Finding(
        "/k.py", moved, moved, 0, 0, "k", "KL105", "narrow-access", Severity.HINT, "loads of 4 B"
    )
    assert any(comment.hides(place) for comment in ignore_comments(module))
