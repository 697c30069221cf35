"""Let the compiler see that sizes, strides and pointers are divisible by 16.

What it does
    Removes ``do_not_specialize`` and ``do_not_specialize_on_alignment`` from the decorator for
    arguments that take part in addresses.

Why it helps
    Triton passes on whether an argument is divisible by 16. Without that fact about a stride or a
    row length it cannot prove that a row starts at a multiple of 16 bytes, and loads each element
    on its own.

When it does not
    Arguments that change from launch to launch: up to three versions (1, divisible by 16, other)
    are compiled instead of one.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit(do_not_specialize=["n", "scale"])
    def kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        cols = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
        tl.store(out_ptr + row * n + cols, x * scale, mask=cols < n)


    # kernel-lsp: workload x=f32[64,1000]
    # kernel-lsp: reference x * 2.0
    def entry(x):
        rows, n = x.shape
        out = torch.empty_like(x)
        kernel[(rows,)](x, out, n, 2.0, BLOCK=1024)
        return out

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit(do_not_specialize=["scale"])
    def kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        cols = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
        tl.store(out_ptr + row * n + cols, x * scale, mask=cols < n)


    # kernel-lsp: workload x=f32[64,1000]
    # kernel-lsp: reference x * 2.0
    def entry(x):
        rows, n = x.shape
        out = torch.empty_like(x)
        kernel[(rows,)](x, out, n, 2.0, BLOCK=1024)
        return out

Safety
    Triton checks the fact at each launch, so nothing is assumed. An argument that is 1 becomes a
    constant, which has no methods: an argument on which the kernel calls one (``n.to(tl.int64)``)
    stays in ``do_not_specialize``.

Evidence
    On an H100, three row kernels of a public library gained 1.4 to 2.0 times when the lists were
    removed; a flat vector addition did not change (pytorch/helion, pull request 2426).
"""

from __future__ import annotations

import ast

from search_engine.domain.candidate import Numerics, Rewrite
from search_engine.rules._base import Patch, Subject
from search_engine.rules._syntax import (
    argument,
    assigned_name,
    language_alias,
    language_call,
    names_read,
    parameters,
)

_LISTS = ("do_not_specialize", "do_not_specialize_on_alignment")
_MASKS = {"load": 1, "store": 2}


class SpecialiseSizes:
    """Takes address arguments off the lists that withhold facts from the compiler."""

    name = "specialise-sizes"
    numerics = Numerics.EXACT

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite for all decorators of the kernel."""
        alias = language_alias(subject.tree)
        if alias is None:
            return ()
        wanted = _address_parameters(subject.kernel_node, alias)
        with_methods = _with_methods(subject.kernel_node)
        patch = Patch(subject.text)
        freed: list[str] = []
        for decorator in subject.kernel_node.decorator_list:
            if isinstance(decorator, ast.Call):
                freed += _free(patch, subject.kernel_node, decorator, wanted, with_methods)
        if not freed:
            return ()
        names = ", ".join(dict.fromkeys(freed))
        title = f"let the compiler see the alignment of {names}"
        return (Rewrite(self.name, title, patch.edits, self.numerics),)


def _address_parameters(kernel: ast.FunctionDef, alias: str) -> set[str]:
    """Parameters that take part in an address, in a mask or in the bounds of a loop."""
    names: set[str] = set()
    for node in ast.walk(kernel):
        if isinstance(node, ast.For):
            names |= names_read(node.iter)
        elif isinstance(node, ast.Call):
            names |= _names_in_access(node, language_call(node, alias) or "")
    while True:
        more = set(names)
        for node in ast.walk(kernel):
            if isinstance(node, ast.Assign) and assigned_name(node) in names:
                more |= names_read(node.value)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                more |= names_read(node.value) if node.target.id in names else set()
        if more == names:
            return names & set(parameters(kernel))
        names = more


def _names_in_access(node: ast.Call, name: str) -> set[str]:
    if name == "make_block_ptr":
        return names_read(node)
    if not node.args or not (name in _MASKS or name.startswith("atomic")):
        return set()
    mask = argument(node, _MASKS.get(name, len(node.args)), "mask")
    return names_read(node.args[0]) | (names_read(mask) if mask is not None else set())


def _with_methods(kernel: ast.FunctionDef) -> set[str]:
    return {
        node.func.value.id
        for node in ast.walk(kernel)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
    }


def _free(
    patch: Patch,
    kernel: ast.FunctionDef,
    decorator: ast.Call,
    wanted: set[str],
    with_methods: set[str],
) -> list[str]:
    """Edit one decorator; the parameters taken off its lists."""
    names = parameters(kernel)
    freed: list[str] = []
    kept: list[str] = [patch.source(item) for item in decorator.args]
    for keyword in decorator.keywords:
        items = _items(keyword, names)
        if items is None:
            kept.append(patch.source(keyword))
            continue
        stays = with_methods if keyword.arg == "do_not_specialize" else set[str]()
        gone = [name for _, name in items if name in wanted - stays]
        left = [patch.source(node) for node, name in items if name not in wanted - stays]
        freed += gone
        if not gone:
            kept.append(patch.source(keyword))
        elif left:
            kept.append(f"{keyword.arg}=[{', '.join(left)}]")
    if freed:
        function = patch.source(decorator.func)
        patch.replace(decorator, f"{function}({', '.join(kept)})" if kept else function)
    return freed


def _items(keyword: ast.keyword, names: tuple[str, ...]) -> list[tuple[ast.expr, str]] | None:
    """The entries of one of the lists with the parameter each means."""
    if keyword.arg not in _LISTS or not isinstance(keyword.value, ast.List | ast.Tuple):
        return None
    found: list[tuple[ast.expr, str]] = []
    for node in keyword.value.elts:
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int) and 0 <= value < len(names):
            found.append((node, names[value]))
        elif isinstance(value, str):
            found.append((node, value))
        else:
            return None
    return found
