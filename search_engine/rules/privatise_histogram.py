"""Count in registers and add each program's counts once, instead of one atomic per element.

What it does
    A kernel that adds 1 to a global counter for every element gets a loop over blocks: each
    program counts its blocks with ``tl.histogram`` and adds its counts at the end, one atomic per
    bin. A fixed number of programs shares the blocks.

Why it helps
    Atomics on few addresses run one after another. With 256 bins and 134 million elements the
    kernel waits for them nearly all the time.

When it does not
    For very many bins, where counters rarely collide and a private copy would not fit: above 4 096
    bins the atomics stay. For few elements, where the private counts cost more than they save.

Before
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        offsets = pid * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask, other=0)
        tl.atomic_add(counts_ptr + x, 1, mask=mask)


    # kernel-lsp: workload x=i32[134217728]{0..255}
    # kernel-lsp: reference torch.bincount(x, minlength=256)
    def histogram(x):
        n = x.numel()
        counts = torch.zeros(256, dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(n, 1024),)](x, counts, n, BLOCK=1024)
        return counts

After
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
        private_counts = tl.zeros((BINS,), dtype=tl.int32)
        for pid in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
            offsets = pid * BLOCK + tl.arange(0, BLOCK)
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask, other=0)
            private_counts += tl.histogram(x.to(tl.int32), BINS, mask=mask & (x >= 0) & (x < BINS))
        bins = tl.arange(0, BINS)
        tl.atomic_add(counts_ptr + bins, private_counts, mask=private_counts > 0)


    # kernel-lsp: workload x=i32[134217728]{0..255}
    # kernel-lsp: reference torch.bincount(x, minlength=256)
    def histogram(x):
        n = x.numel()
        counts = torch.zeros(256, dtype=torch.int32, device=x.device)
        PROGRAMS = 2112
        grid = lambda meta: (min(triton.cdiv(n, meta["BLOCK"]), PROGRAMS),)
        kernel[grid](x, counts, n, BLOCK=4096, BINS=256)
        return counts

Safety
    Integer counts are the same whatever the order. Masked elements are not counted. Values outside
    the counters, which the user's kernel would write outside the tensor, are not counted at all.
    Wider values are compared before they are narrowed to 32 bits. Refused for floating-point
    counters, increments other than 1, and results of the atomic that are used.

Evidence
    This rule on an H200, 134 217 728 integers with 256 bins, whole entry, medians of 5: 34 848 us
    as found, 486 us with blocks of 4096 and 2 112 programs; in a second run 459 us, and 438 us
    with twice as many programs and 8 warps.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.domain.candidate import Assignment, Numerics, Rewrite
from search_engine.rules._base import Patch, Subject
from search_engine.rules._index import KernelFlow, call_name, program_ids
from search_engine.rules._launch import (
    Launch,
    add_constant,
    add_size,
    find_launch,
    replace_grid,
    set_constant,
)
from search_engine.rules._private_counts import CountingLoop, write_loop
from search_engine.rules._syntax import (
    argument,
    body,
    fresh_name,
    is_repeatable,
    language_alias,
    language_call,
    names_assigned,
    same,
    triton_alias,
    with_changes,
)

_MOST_BINS = 4096
_FEWEST = 16
_BLOCKS = (4096, 2048, 8192, 1024)
_WAVES = (16, 8, 32)


@dataclass(frozen=True, slots=True)
class _Histogram:
    """The kernel: its atomic, the value that picks the counter, and the extent of the elements.

    ``bins`` is the entry's expression for the number of counters, ``known`` its value if the
    entry fixes it.
    """

    atomic: ast.Call
    counters: str
    value: ast.expr
    extent: str
    block: str
    bins: ast.expr
    known: int | None


class PrivatiseHistogram:
    """Private counts for kernels that count with global atomics."""

    name = "privatise-histogram"
    numerics = Numerics.EXACT

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """One rewrite with block size and number of programs as its configuration."""
        launch, tl = find_launch(subject), language_alias(subject.tree)
        if launch is None or tl is None or triton_alias(subject.tree) is None:
            return ()
        found = _find(subject, launch, tl)
        return () if found is None else (_rewrite(self.name, subject, launch, found, tl),)


def _find(subject: Subject, launch: Launch, tl: str) -> _Histogram | None:
    statements = body(subject.kernel_node)
    last = statements[-1]
    if not isinstance(last, ast.Expr) or language_call(last.value, tl) != "atomic_add":
        return None
    if any(not isinstance(item, ast.Assign) for item in statements[:-1]):
        return None
    atomic = last.value
    assert isinstance(atomic, ast.Call)
    address = atomic.args[0] if atomic.args else None
    if not _adds_one(atomic) or not isinstance(address, ast.BinOp) or not _flat(subject, tl):
        return None
    counters, value = address.left, address.right
    if not isinstance(address.op, ast.Add) or not isinstance(counters, ast.Name):
        return None
    walk = _walk(subject, launch)
    bins = _bins(subject, launch, counters.id)
    if walk is None or bins is None or counters.id in names_assigned(subject.kernel_node):
        return None
    known = launch.host.integer(bins) if _is_fixed(subject, bins) else None
    if known is not None and known > _MOST_BINS:
        return None
    return _Histogram(atomic, counters.id, value, *walk, bins, known)


def _adds_one(atomic: ast.Call) -> bool:
    increment = argument(atomic, 1, "val")
    keywords = {keyword.arg for keyword in atomic.keywords}
    one = isinstance(increment, ast.Constant) and increment.value == 1
    return one and len(atomic.args) <= 3 and keywords <= {"val", "mask", "sem"}


def _flat(subject: Subject, tl: str) -> bool:
    """One-dimensional code that only loads, computes and counts once."""
    calls = [language_call(node, tl) for node in ast.walk(subject.kernel_node)]
    inner = [node for node in ast.walk(subject.kernel_node) if isinstance(node, ast.Subscript)]
    writes = [name for name in calls if name and (name.startswith("atomic_") or name == "store")]
    return writes == ["atomic_add"] and not inner and calls.count("arange") == 1


def _walk(subject: Subject, launch: Launch) -> tuple[str, str] | None:
    """``(n, BLOCK)``: program ``k`` of ``cdiv(n, BLOCK)`` does block ``k``, masked by ``n``."""
    flow = KernelFlow(subject.kernel_node)
    load = next((a for a in flow.accesses if a.kind == "load"), None)
    if load is None or load.pointer is None or len(launch.grid.elts) != 1:
        return None
    lanes = [atom[5:] for atom in load.depends if atom.startswith("lane:")]
    if len(lanes) != 1 or len(program_ids(subject.kernel_node, 0)) != 1:
        return None
    block, count = lanes[0], launch.grid.elts[0]
    term = tuple(sorted(("pid:0", f"arg:{block}")))
    if load.pointer.get(term) != 1 or load.pointer.get((f"lane:{block}",)) != 1:
        return None
    if not isinstance(count, ast.Call) or call_name(count) != "cdiv" or len(count.args) != 2:
        return None
    if launch.host.integer(count.args[1]) != launch.integer(block) or block not in launch.arguments:
        return None
    masked = f"lane:{block}" in load.mask_depends
    changed = names_assigned(ast.Module(subject.kernel_node.body, []))
    for name, passed in launch.arguments.items():
        if same(passed, count.args[0]) and name not in changed and masked:
            return name, block
    return None


def _bins(subject: Subject, launch: Launch, counters: str) -> ast.expr | None:
    """The size of the counters: integers, zeroed by the entry, one dimension."""
    passed = launch.arguments.get(counters)
    made = launch.host.single_binding(passed.id) if isinstance(passed, ast.Name) else None
    if not isinstance(made, ast.Call) or call_name(made) not in ("zeros", "new_zeros"):
        return None
    dtype = argument(made, 9, "dtype")
    if dtype is None or ast.unparse(dtype).rsplit(".", 1)[-1] not in ("int32", "int64"):
        return None
    size = argument(made, 0, "size")
    if isinstance(size, (ast.Tuple, ast.List)) and len(size.elts) == 1:
        size = size.elts[0]
    plain = len(made.args) <= 1 and size is not None and is_repeatable(size)
    return None if not plain or isinstance(size, (ast.Tuple, ast.List)) else size


def _is_fixed(subject: Subject, bins: ast.expr) -> bool:
    """A literal, or a name that only the module assigns."""
    local = names_assigned(subject.entry_node)
    local |= {item.arg for item in ast.walk(subject.entry_node) if isinstance(item, ast.arg)}
    names = {node.id for node in ast.walk(bins) if isinstance(node, ast.Name)}
    return not names & local and not any(isinstance(n, ast.Attribute) for n in ast.walk(bins))


def _rewrite(rule: str, subject: Subject, launch: Launch, found: _Histogram, tl: str) -> Rewrite:
    patch = Patch(subject.text)
    bins, programs = fresh_name(subject, "BINS"), fresh_name(subject, "PROGRAMS")
    blocks = [str(size) for size in _BLOCKS]
    waves = [str(count * subject.target.processors) for count in _WAVES]
    set_constant(patch, launch, found.block, blocks[0])
    guard = _pass_bins(patch, subject, launch, found, bins)
    most = _MOST_BINS if found.known is None else None
    parts = (found.counters, found.value, found.extent, found.block)
    write_loop(patch, subject, CountingLoop(tl, found.atomic, *parts, bins, guard, most))
    _share(patch, subject, launch, found, programs)
    # Insertions at one place appear in reverse order.
    patch.insert_before(launch.grid_statement, [f"{programs} = {waves[0]}"])
    pairs = [(blocks[0], count) for count in waves] + [(size, waves[0]) for size in blocks[1:]]
    configurations = tuple(
        (Assignment(found.block, size), Assignment(programs, count)) for size, count in pairs
    )
    title = "count in each program, add the counts once"
    return Rewrite(rule, title, patch.edits, Numerics.EXACT, configurations)


def _pass_bins(
    patch: Patch, subject: Subject, launch: Launch, found: _Histogram, bins: str
) -> str | None:
    """Pass the power of two above the number of counters; what limits the bins, if it is less."""
    if found.known is not None:
        size = max(_FEWEST, 1 << (found.known - 1).bit_length())
        add_constant(patch, subject, launch, bins, str(size), str(size))
        return None if size == found.known else str(found.known)
    source, triton = patch.source(found.bins), triton_alias(subject.tree)
    size = f"max({triton}.next_power_of_2({source}), {_FEWEST})"
    add_constant(patch, subject, launch, bins, size, str(_FEWEST))
    changed = names_assigned(ast.Module(subject.kernel_node.body, []))
    for name, passed in launch.arguments.items():
        if same(passed, found.bins) and name not in changed:
            return name
    name = fresh_name(subject, "n_bins")
    add_size(patch, subject, launch, name, source)
    return name


def _share(
    patch: Patch, subject: Subject, launch: Launch, found: _Histogram, programs: str
) -> None:
    """At most ``programs`` programs; the block size is read from the meta-parameters."""
    count = launch.grid.elts[0]
    assert isinstance(count, ast.Call)
    changes: dict[ast.AST, str] = {}
    divisor = count.args[1]
    own = launch.arguments[found.block]
    follows = isinstance(divisor, ast.Subscript) or (
        isinstance(divisor, ast.Name)
        and same(divisor, own)
        and isinstance(launch.host.single_binding(divisor.id), ast.Constant)
    )
    if not follows:
        changes[divisor] = f'{launch.meta or "meta"}["{found.block}"]'
    element = f"min({with_changes(patch, count, changes)}, {programs})"
    replace_grid(patch, subject, launch, [element])
