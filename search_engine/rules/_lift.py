"""Turn a program id into a block axis: one program then does the work of several.

The kernel must be one-dimensional: scalars, and blocks over one ``tl.arange``. The program id
becomes a column (or row) of indices and the lanes a row (or column), so that every expression of
both broadcasts to a tile without being touched. What remains to edit: masks, reductions, and
values that are carried round a loop.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.rules._base import Patch, Subject
from search_engine.rules._index import KernelFlow, call_name, program_ids
from search_engine.rules._syntax import (
    argument,
    assigned_name,
    blocks,
    body,
    fresh_name,
    is_literal,
    language_call,
    literal_value,
)

_ELEMENTWISE = frozenset(
    {
        "abs", "cast", "cdiv", "ceil", "clamp", "cos", "erf", "exp", "exp2", "fdiv", "floor", "fma",
        "log", "log2", "maximum", "minimum", "rsqrt", "sigmoid", "sin", "sqrt", "sqrt_rn", "where",
    }
)  # fmt: skip
_SHAPED = frozenset({"program_id", "num_programs", "arange", "load", "store", "zeros", "full"})
_REDUCTIONS = frozenset({"sum", "max", "min"})


@dataclass(frozen=True, slots=True)
class Lift:
    """What to lift: grid ``axis``, whose index runs over ``width`` lanes and below ``extent``.

    ``first`` puts the lifted index on the first axis of the tile, else on the second. ``block`` is
    the name of the lanes' size, None where the kernel has no lanes. ``program`` replaces
    ``tl.program_id(axis)`` as the number of the program; ``prelude`` are lines that it needs.
    """

    subject: Subject
    flow: KernelFlow
    tl: str
    axis: int
    width: str
    extent: str
    block: str | None
    first: bool
    program: str | None = None
    prelude: tuple[str, ...] = ()

    @property
    def index_view(self) -> str:
        """How the lifted index is spread over the tile; nothing where there are no lanes."""
        if self.block is None:
            return ""
        return "[:, None]" if self.first else "[None, :]"

    @property
    def lane_view(self) -> str:
        """How the lanes are spread over the tile."""
        return "[None, :]" if self.first else "[:, None]"

    def shape(self, *, lanes: bool, index: bool) -> str:
        """Shape of a block that depends on the lanes, on the lifted index, or on both."""
        width = self.width if index else "1"
        if self.block is None:
            return f"({width},)"
        block = self.block if lanes else "1"
        return f"({width}, {block})" if self.first else f"({block}, {width})"

    def lifted(self, node: ast.AST) -> bool:
        """True if an expression depends on the lifted index."""
        return f"pid:{self.axis}" in self.flow.depends(node)

    def lanes(self, node: ast.AST) -> bool:
        """True if an expression depends on the lanes."""
        return any(atom.startswith("lane:") for atom in self.flow.depends(node))


def lane_block(subject: Subject) -> tuple[str | None] | None:
    """The size of the kernel's lanes, if it is one-dimensional; ``(None,)`` without lanes."""
    sizes: set[str] = set()
    for node in ast.walk(subject.kernel_node):
        if isinstance(node, ast.Subscript) and not _plain_index(node):
            return None
        if isinstance(node, ast.Call) and call_name(node) == "arange":
            if len(node.args) != 2 or not isinstance(node.args[1], ast.Name):
                return None
            if not isinstance(node.args[0], ast.Constant) or node.args[0].value != 0:
                return None
            sizes.add(node.args[1].id)
    if len(sizes) > 1:
        return None
    return (next(iter(sizes), None),)


def can_lift(lift: Lift) -> bool:
    """True if every part of the kernel is understood."""
    kernel = lift.subject.kernel_node
    if not program_ids(kernel, lift.axis):
        return False
    known = all(_known(lift, node) for node in ast.walk(kernel) if node not in _outer(kernel))
    stores = [item for item in lift.flow.accesses if item.kind == "store"]
    return known and bool(stores) and _initial_values(lift) is not None


def apply_lift(lift: Lift, patch: Patch) -> None:
    """Write the edits of the kernel's body; ``can_lift`` must hold."""
    index, known_from = _index_name(lift, patch)
    for node in ast.walk(lift.subject.kernel_node):
        if isinstance(node, ast.Call) and call_name(node) == "arange":
            end = patch.span(node)[1]
            patch.replace_range(end, end, lift.lane_view)
        elif isinstance(node, ast.Call) and language_call(node, lift.tl) in _REDUCTIONS:
            _reduce(lift, patch, node)
    for node, text in (_initial_values(lift) or {}).items():
        patch.replace(node, text)
    _masks(lift, patch, f"{index} < {lift.extent}", known_from)


def reduces(lift: Lift) -> bool:
    """True if the kernel combines lanes or carries a value round a loop."""
    calls = (language_call(node, lift.tl) for node in ast.walk(lift.subject.kernel_node))
    return any(name in _REDUCTIONS for name in calls) or bool(_carried(lift.subject.kernel_node))


def carried_names(kernel: ast.FunctionDef) -> set[str]:
    """Names that a loop changes and that had a value before it."""
    return {name for name, _ in _carried(kernel)}


def _plain_index(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)


def _outer(kernel: ast.FunctionDef) -> set[ast.AST]:
    """Nodes of the signature and the decorators."""
    parts: list[ast.AST] = [kernel.args, *kernel.decorator_list]
    return {kernel, *(node for part in parts for node in ast.walk(part))}


def _known(lift: Lift, node: ast.AST) -> bool:
    if isinstance(node, (ast.While, ast.Return, ast.Try, ast.With, ast.Assert, ast.FunctionDef)):
        return False
    if isinstance(node, (ast.If, ast.IfExp)):
        return not lift.lifted(node.test)
    if isinstance(node, ast.BoolOp):
        return not lift.lifted(node)
    if isinstance(node, ast.For):
        return not lift.lifted(node.iter) and not lift.lanes(node.iter)
    return _known_call(lift, node) if isinstance(node, ast.Call) else True


def _known_call(lift: Lift, node: ast.Call) -> bool:
    name = language_call(node, lift.tl)
    if name == "store":
        return lift.lifted(node.args[0]) if node.args else False
    if name in _REDUCTIONS:
        return _reducible(lift, node)
    if name in ("zeros", "full"):
        return _one_block(lift, node)
    if name in ("range", "static_range") or name in _ELEMENTWISE or name in _SHAPED:
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        return True
    return isinstance(node.func, ast.Name) and node.func.id in ("range", "float")


def _reducible(lift: Lift, node: ast.Call) -> bool:
    axis = argument(node, 1, "axis")
    keywords = {keyword.arg for keyword in node.keywords}
    along_lanes = axis is None or (isinstance(axis, ast.Constant) and axis.value in (0, None))
    return along_lanes and keywords <= {"axis", "dtype"} and lift.lanes(node.args[0])


def _one_block(lift: Lift, node: ast.Call) -> bool:
    """``name = tl.zeros((BLOCK,), ...)``: what it becomes depends on what is added to ``name``."""
    shape = node.args[0] if node.args else None
    if not isinstance(shape, (ast.Tuple, ast.List)) or len(shape.elts) != 1:
        return False
    if not any(value is node for _, value in _assignments(lift.subject.kernel_node)):
        return False
    return isinstance(shape.elts[0], ast.Name) and shape.elts[0].id == lift.block


def _assignments(kernel: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
    found: list[tuple[str, ast.expr]] = []
    for node in ast.walk(kernel):
        name = assigned_name(node) if isinstance(node, ast.stmt) else None
        if name is not None and isinstance(node, ast.Assign):
            found.append((name, node.value))
    return found


def _carried(kernel: ast.FunctionDef) -> list[tuple[str, list[ast.stmt]]]:
    """Names that a loop changes, with the statements before it that give them a value."""
    parameters = {item.arg for item in kernel.args.args}
    found: list[tuple[str, list[ast.stmt]]] = []
    for statements in blocks(kernel):
        for position, loop in enumerate(statements):
            if not isinstance(loop, ast.For):
                continue
            changed = set[str]().union(*(_targets(item) for item in loop.body))
            for name in sorted(changed):
                before = [item for item in statements[:position] if _sets(item, name)]
                if before or name in parameters:
                    found.append((name, before))
    return found


def _targets(statement: ast.stmt) -> set[str]:
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _sets(statement: ast.stmt, name: str) -> bool:
    plain = isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
    return plain and name in _targets(statement)


def _initial_values(lift: Lift) -> dict[ast.expr, str] | None:
    """New texts of first values, so that each has the shape it keeps; None if that is unclear."""
    result: dict[ast.expr, str] = {}
    for name, value in _assignments(lift.subject.kernel_node):
        if call_name(value) in ("zeros", "full") and isinstance(value, ast.Call):
            kind = lift.flow.kinds.get(name, frozenset())
            lifted = f"pid:{lift.axis}" in kind
            result[value.args[0]] = lift.shape(lanes=True, index=lifted)
    for name, before in _carried(lift.subject.kernel_node):
        first = before[-1] if before else None
        if isinstance(first, ast.Assign) and is_literal(first.value):
            if not _widen_literal(lift, name, first.value, result):
                return None
        elif isinstance(first, ast.Assign) and call_name(first.value) in ("zeros", "full"):
            continue
        elif not _same_shape(lift, name, before):
            return None
    return result


def _widen_literal(lift: Lift, name: str, value: ast.expr, result: dict[ast.expr, str]) -> bool:
    kind = lift.flow.kinds.get(name, frozenset())
    if any(atom.startswith("lane:") for atom in kind):
        return False
    if f"pid:{lift.axis}" not in kind:
        return True
    integer = isinstance(value, ast.Constant) and isinstance(value.value, int)
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return False
    dtype = f"{lift.tl}.int32" if integer else f"{lift.tl}.float32"
    shape = lift.shape(lanes=False, index=True)
    text = f"{lift.tl}.full({shape}, {ast.unparse(value)}, dtype={dtype})"
    if literal_value(value) == 0:
        text = f"{lift.tl}.zeros({shape}, dtype={dtype})"
    result[value] = text
    return True


def _same_shape(lift: Lift, name: str, before: list[ast.stmt]) -> bool:
    kind = lift.flow.kinds.get(name, frozenset())
    first = frozenset[str]().union(
        *(
            lift.flow.depends(item.value)
            for item in before
            if isinstance(item, (ast.Assign, ast.AugAssign))
        )
    )
    if isinstance(before[0] if before else None, ast.AnnAssign):
        return False
    own = f"pid:{lift.axis}"
    if any(atom.startswith("lane:") for atom in first ^ kind):
        return False
    return (own in first) == (own in kind)


def _index_name(lift: Lift, patch: Patch) -> tuple[str, int]:
    """The lifted index's name, and the line after which it is known."""
    kernel = lift.subject.kernel_node
    calls = program_ids(kernel, lift.axis)
    program = lift.program or patch.source(calls[0])
    text = f"{program} * {lift.width} + {lift.tl}.arange(0, {lift.width})"
    text = f"({text}){lift.index_view}" if lift.index_view else f"({text})"
    holder = next(item for item in body(kernel) if calls[0] in set(ast.walk(item)))
    earliest = next(item for item in body(kernel) if _reads_program(item))
    prelude = list(lift.prelude)
    if prelude and earliest is not holder:
        patch.insert_before(earliest, prelude)
        prelude = []
    name = assigned_name(holder)
    if len(calls) == 1 and name is not None and _is_index(kernel, holder, name, calls[0]):
        whole = isinstance(holder, ast.Assign) and holder.value is calls[0]
        patch.replace(calls[0], text if lift.index_view or not whole else text[1:-1])
        if prelude:
            patch.insert_before(holder, prelude)
        return name, holder.lineno
    name = fresh_name(lift.subject, "index")
    value = text if lift.index_view else text[1:-1]
    patch.insert_before(holder, [*prelude, f"{name} = {value}"])
    for call in calls:
        patch.replace(call, name)
    return name, holder.lineno - 1


def _reads_program(statement: ast.stmt) -> bool:
    return any(call_name(node) == "program_id" for node in ast.walk(statement))


def _is_index(kernel: ast.FunctionDef, holder: ast.stmt, name: str, call: ast.Call) -> bool:
    """``name = tl.program_id(0)``, perhaps cast, is all that ``name`` ever is."""
    assert isinstance(holder, ast.Assign)
    value = holder.value
    cast = value.func if isinstance(value, ast.Call) else None
    if isinstance(cast, ast.Attribute) and cast.attr == "to" and cast.value is call:
        value = call
    stored = sum(
        name in _targets(item)
        for item in ast.walk(kernel)
        if isinstance(item, ast.stmt) and not isinstance(item, (ast.For, ast.If, ast.FunctionDef))
    )
    return value is call and stored == 1


def _reduce(lift: Lift, patch: Patch, node: ast.Call) -> None:
    wanted = f"axis={1 if lift.first else 0}"
    axis = argument(node, 1, "axis")
    if axis is None:
        end = patch.span(node.args[-1])[1]
        patch.replace_range(end, end, f", {wanted}, keep_dims=True")
        return
    holder = next((item for item in node.keywords if item.value is axis), axis)
    patch.replace(holder, f"{wanted}, keep_dims=True")


def _masks(lift: Lift, patch: Patch, guard: str, known_from: int) -> None:
    shared = _shared_masks(lift, known_from)
    for value in shared.values():
        _guard(patch, value, guard)
    for access in lift.flow.accesses:
        if f"pid:{lift.axis}" not in access.depends:
            continue
        if access.mask is None:
            parts = [*access.call.args, *access.call.keywords]
            end = max(patch.span(part)[1] for part in parts)
            patch.replace_range(end, end, f", mask={guard}")
        elif not (isinstance(access.mask, ast.Name) and access.mask.id in shared):
            _guard(patch, access.mask, guard)


def _shared_masks(lift: Lift, known_from: int) -> dict[str, ast.expr]:
    """Masks with a name that only lifted accesses use: the name's value is guarded once."""
    kernel, found = lift.subject.kernel_node, dict[str, ast.expr]()
    lifted = [a for a in lift.flow.accesses if f"pid:{lift.axis}" in a.depends]
    for name in {a.mask.id for a in lifted if isinstance(a.mask, ast.Name)}:
        values = [value for target, value in _assignments(kernel) if target == name]
        uses = [n for n in ast.walk(kernel) if isinstance(n, ast.Name) and n.id == name]
        reads = [node for node in uses if isinstance(node.ctx, ast.Load)]
        if len(uses) != len(reads) + len(values) or len(values) == 0:
            continue
        only_masks = all(any(a.mask is node for a in lifted) for node in reads)
        if only_masks and len(values) == 1 and values[0].lineno > known_from:
            found[name] = values[0]
    return found


def _guard(patch: Patch, mask: ast.expr, guard: str) -> None:
    start, end = patch.span(mask)
    joined = isinstance(mask, (ast.Name, ast.Call, ast.Subscript)) or (
        isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd)
    )
    if not joined:
        patch.replace_range(start, start, "(")
    patch.replace_range(end, end, f" & ({guard})" if joined else f") & ({guard})")
