"""Units, and what does and does not change their hash."""

from __future__ import annotations

import pytest

from search_engine.domain.kernel import Module, UnitHash
from search_engine.frontends.syntax_digest import canonical_tokens
from search_engine.frontends.triton import parse_module
from search_engine.frontends.unit import find_unit, unit_hash

TEXT = '''\
import torch
import triton
import triton.language as tl

WIDTH = 2 * 64
OTHER = 7


def sizes(n):
    return (n + WIDTH - 1) // WIDTH


@triton.jit
def helper(x, scale):
    return (x + 1) * scale


@triton.jit
def kernel(p, n, scale, B: tl.constexpr):
    """Adds."""
    o = tl.program_id(0) * B + tl.arange(0, B)  # lanes
    x = tl.load(p + o, mask=o < n, other=0.0)
    if scale > 1:
        x = helper(x, scale)
    tl.store(p + o, x, mask=o < n)


@triton.jit
def second(p):
    tl.store(p, 1.0)


def entry(x, scale):
    n = x.numel()
    assert n > 0, 'empty'
    kernel[(sizes(n),)](x, n, scale, B=WIDTH)
    second[(1,)](x)
    return x


def unrelated(x):
    return x + OTHER


def test_entry():
    kernel[(1,)](torch.zeros(3), 3, 1.0, B=4)
'''


def hash_of(text: str, name: str = "kernel") -> UnitHash:
    unit = find_unit(parse_module(text, "m.py"), name)
    assert unit is not None
    return unit.hash


def module() -> Module:
    return parse_module(TEXT, "m.py")


def test_a_unit_holds_helpers_entry_and_siblings() -> None:
    unit = find_unit(module(), "kernel")
    assert unit is not None
    assert [helper.name for helper in unit.helpers] == ["helper"]
    assert unit.entry is not None
    assert unit.entry.name == "entry"
    assert [sibling.name for sibling in unit.siblings] == ["second"]
    parts = [TEXT.encode()[span.start : span.end].decode() for span in unit.spans]
    assert [part.split("\n")[0] for part in parts] == [
        "@triton.jit", "@triton.jit", "@triton.jit", "def entry(x, scale):",
    ]  # fmt: skip


def test_find_unit_by_kernel_or_entry_name() -> None:
    found = module()
    assert [unit.kernel.name for unit in found.units] == ["kernel", "second"]
    by_entry = find_unit(found, "entry")
    assert by_entry is not None
    assert by_entry.kernel.name == "kernel"
    assert find_unit(found, "helper") is None
    assert find_unit(found, "nothing") is None
    unit = found.units[1]
    assert unit_hash(found, unit) == unit.hash == hash_of(TEXT, "second")
    with pytest.raises(ValueError, match="second is not in"):
        unit_hash(parse_module("", "m.py"), unit)


def test_a_declared_entry_is_preferred() -> None:
    declared = TEXT.replace(
        "def test_entry", "# kernel-lsp: workload n=1\n# kernel-lsp: deterministic\ndef test_entry"
    )
    unit = find_unit(parse_module(declared, "m.py"), "kernel")
    assert unit is not None
    assert unit.entry is not None
    assert unit.entry.name == "test_entry"


REFORMATTED = [
    ("def kernel(p, n, scale, B: tl.constexpr):",
     "def kernel(\n    p,\n    n,\n    scale,\n    B: tl.constexpr,\n):"),
    ("tl.load(p + o, mask=o < n, other=0.0)",
     "tl.load(\n        p + o,\n        mask=o < n,\n        other=0.0,\n    )"),
    ("'empty'", '"empty"'),
    ("'empty'", '(\n        "em"\n        "pty"\n    )'),
    ("x = tl.load(p + o, mask=o < n, other=0.0)", "x = (tl.load(p+o, mask=o<n, other=0.0))"),
    ("    if scale > 1:\n        x = helper(x, scale)\n",
     "    if scale > 1: x = helper(x, scale)\n"),
    ("    if scale > 1:\n        x = helper(x, scale)\n",
     "    if (scale > 1):\n      x = helper(x, scale)\n"),
    ("    n = x.numel()\n    assert", "    n = x.numel(); assert"),
    ("return (n + WIDTH - 1) // WIDTH", "return (\n        n + WIDTH - 1\n    ) // WIDTH"),
    ("return (n + WIDTH - 1) // WIDTH", "return (n + WIDTH - 1) // \\\n        WIDTH"),
    ("    return x\n\n\ndef unrelated", "    return (x)\n\n\n\n\ndef unrelated"),
    ('"""Adds."""', "'''\n    Adds more.\n    '''"),
    ("  # lanes", ""),
    ("WIDTH = 2 * 64", "WIDTH = (\n    2 * 64  # lanes\n)"),
    ("other=0.0", "other=0.0"),
    ("\n", "\r\n"),
    ("    ", "  "),
    ("    ", "\t"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), REFORMATTED)
def test_formatting_and_comments_keep_the_hash(old: str, new: str) -> None:
    assert old in TEXT
    assert hash_of(TEXT.replace(old, new)) == hash_of(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("OTHER = 7", "OTHER = 8"),
        ("def unrelated(x):", "def unrelated(x, y):"),
        ("def test_entry():", "def test_entry(more):"),
        ("import torch\n", "import torch\nimport os\n"),
    ],
)
def test_changes_elsewhere_keep_the_hash(old: str, new: str) -> None:
    assert hash_of(TEXT.replace(old, new)) == hash_of(TEXT)


def test_order_in_the_file_keeps_the_hash() -> None:
    start, end = TEXT.index("@triton.jit\ndef helper"), TEXT.index("@triton.jit\ndef kernel")
    moved = TEXT[:start] + TEXT[end:] + "\n\n" + TEXT[start:end]
    assert hash_of(moved) == hash_of(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("o < n, other=0.0", "o < n, other=1.0"),
        ("(x + 1) * scale", "x + 1 * scale"),
        ("(x + 1) * scale", "(x - 1) * scale"),
        ("x = helper(x, scale)\n    tl", "x = helper(x, scale)\n        tl"),
        ("B=WIDTH", "B=64"),
        ("'empty'", "'empty '"),
        ("WIDTH = 2 * 64", "WIDTH = 2 * 32"),
        ("n + WIDTH - 1", "n + WIDTH"),
        ("tl.store(p, 1.0)", "tl.store(p, 2.0)"),
        ("@triton.jit\ndef kernel", "@triton.jit(debug=True)\ndef kernel"),
        ("B: tl.constexpr", "B"),
        ("(sizes(n),)", "(sizes(n))"),
    ],
)
def test_changes_of_the_unit_change_the_hash(old: str, new: str) -> None:
    assert old in TEXT
    assert hash_of(TEXT.replace(old, new)) != hash_of(TEXT)


def test_a_name_in_the_last_place_is_read() -> None:
    text = TEXT.replace("// WIDTH", "// 128 + LAST").replace("OTHER = 7", "OTHER = 7\nLAST = 0")
    assert hash_of(text.replace("LAST = 0", "LAST = 1")) != hash_of(text)


def test_a_local_name_is_not_the_constant_of_that_name() -> None:
    text = TEXT + "\nx = torch.zeros(1)\nn = x.numel()\n"
    assert hash_of(text.replace("zeros(1)", "zeros(2)")) == hash_of(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = (a or b) in c", "x = a or b in c"),
        ("return (a or b) in c", "return a or b in c"),
        ("y = x in (a or b)", "y = x in a or b"),
        ("x = [(i for i in y)]", "x = [i for i in y]"),
        ("f((a, b))", "f(a, b)"),
        ("x[a,]", "x[a]"),
        ("x = (a,)", "x = (a)"),
        ("x = a,", "x = a"),
        ("assert (a, b)", "assert a, b"),
        ("x = a\n(b)", "x = a(b)"),
        ("x = a\n-b", "x = a - b"),
        ("x = -(a ** 2)", "x = (-a) ** 2"),
        ("x = 'a' 'b'", "x = 'a', 'b'"),
        ("x = b'a'", "x = 'a'"),
        ("x = f'{a}'", "x = '{a}'"),
        ("x = f'{a}'", "x = f'{b}'"),
        ("if a:\n  b\n  c", "if a:\n  b\nc"),
        ("if a: b; c", "if a: b\nc"),
        ("x = lambda: (a, b)", "x = lambda: a, b"),
        ("x = (yield), b", "x = yield, b"),
        ("def f(a, *, b): pass", "def f(a, *b): pass"),
        ("x = a[1:2]", "x = a[1, 2]"),
        ("f(*a)", "f(a)"),
        ("x = 1.5", "x = 1.05"),
        ("x = a.b", "x = a .b.c"),
        ("x = a if b else c", "x = (a if b else c) if b else c"),
        ("f()", "f(())"),
    ],
)
def test_syntax_that_differs_has_different_tokens(one: str, other: str) -> None:
    assert canonical_tokens(one)[0] != canonical_tokens(other)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("for (i, j) in (a, b):\n  pass", "for i, j in a, b:\n    pass"),
        ("with (open(a) as f, open(b) as g): pass", "with open(a) as f, open(b) as g:\n  pass"),
        ("from a import (b, c,)", "from a import b, c"),
        ("class A(): pass", "class A:\n  pass"),
        ("x = (a, b)", "x = a, b"),
        ("x = 0XFF + 1E5", "x = 0xff + 1e5"),
        ("x = [.5, 1., 1.E-5, 2.0]", "x = [0.5, 1.0, 1.0e-5, 2.0]"),
        ("x = {'a': (1), 'b': 2,}", 'x = {"a": 1, "b": 2}'),
        ("x = f'{a!r:>{w}} it' f\"s\"", 'x = f"{a!r:>{w}} its"'),
        ("f(a=(1 if b else 2))", "f(a=1 if b else 2)"),
        ("return(a)", "return a"),
        ("x = u'a' + r'b'", "x = 'a' + 'b'"),
        ("x = 'it\\'s'", 'x = "it\'s"'),
        ("a; b;", "a\nb"),
    ],
)
def test_forms_that_formatters_exchange_have_equal_tokens(one: str, other: str) -> None:
    assert canonical_tokens(one)[0] == canonical_tokens(other)[0]
