"""What each constexpr parameter of a kernel does, read off its body.

A small abstract interpretation: every local name carries the parameters whose ``arange`` its
offsets span, the parameters it was computed from, and the grid axes it depends on.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from search_engine.proposers.sites import constexpr_parameters, last_name

_SHAPED = ("arange", "zeros", "full", "make_block_ptr", "make_tensor_descriptor")
_CLAMPS = ("minimum", "where", "clamp")
_MASK_POSITION = {"load": 1, "store": 2}


@dataclass(slots=True)
class Blocks:
    """Facts about the constexpr parameters of one kernel.

    ``shaped``: parameters that are the extent of a block. ``looped``: parameters that the range of
    a loop depends on. ``unbounded``: parameters whose offsets reach memory without a mask, so that
    a larger block would narrow the kernel's domain. ``axes``: grid axes multiplied by a parameter.
    ``dividends``: ``N`` for ``cdiv(N, BLOCK)``. ``accumulators``: shapes of zero-filled blocks.
    ``fallbacks``: parameters of the branch that runs where one block does not cover an axis.
    """

    constexprs: tuple[str, ...]
    shaped: set[str] = field(default_factory=set[str])
    looped: set[str] = field(default_factory=set[str])
    unbounded: set[str] = field(default_factory=set[str])
    axes: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    dividends: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    accumulators: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    used: set[str] = field(default_factory=set[str])
    fallbacks: set[str] = field(default_factory=set[str])
    dots: int = 0
    loops: int = 0


def read_blocks(kernel: ast.FunctionDef) -> Blocks:
    """Analyse one kernel."""
    blocks = Blocks(constexpr_parameters(kernel))
    _Reader(blocks).run(kernel.body)
    blocks.fallbacks = _fallbacks(kernel, blocks)
    return blocks


def _fallbacks(kernel: ast.FunctionDef, blocks: Blocks) -> set[str]:
    """What only the second branch of ``if ONE > 0:`` uses, where ONE is the extent of a block."""
    found: set[str] = set()
    everywhere = _counts([kernel])
    for node in ast.walk(kernel):
        if not isinstance(node, ast.If) or not node.orelse:
            continue
        deciding = set(_counts([node.test])) & blocks.shaped & set(_counts(node.body))
        if deciding:
            behind = _counts(node.orelse)
            found |= {name for name in blocks.constexprs if 0 < behind[name] == everywhere[name]}
    return found


def _counts(nodes: Sequence[ast.AST]) -> Counter[str]:
    return Counter(
        part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)
    )


@dataclass(frozen=True, slots=True)
class _Trait:
    """What is known of a value: parameters spanned, parameters used, grid axes."""

    spans: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    axes: frozenset[int] = frozenset()

    def __or__(self, other: _Trait) -> _Trait:
        return _Trait(self.spans | other.spans, self.uses | other.uses, self.axes | other.axes)


class _Reader:
    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._names: dict[str, _Trait] = {
            name: _Trait(uses=frozenset((name,))) for name in blocks.constexprs
        }

    def run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            trait = self._trait(node.value)
            for target in node.targets:
                self._bind(target, node.value, trait)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, node.value, self._trait(node.value))
        elif isinstance(node, ast.AugAssign):
            trait = self._trait(node.value)
            if isinstance(node.target, ast.Name):
                previous = self._names.get(node.target.id, _Trait())
                self._names[node.target.id] = previous | trait
        elif isinstance(node, (ast.For, ast.While)):
            self._loop(node)
        elif isinstance(node, (ast.If, ast.With)):
            if isinstance(node, ast.If):
                self._trait(node.test)
                self.run([*node.body, *node.orelse])
            else:
                self.run(node.body)
        elif isinstance(node, ast.Expr):
            self._trait(node.value)

    def _loop(self, node: ast.For | ast.While) -> None:
        self._blocks.loops += 1
        trait = self._trait(node.iter if isinstance(node, ast.For) else node.test)
        if isinstance(node, ast.For):
            self._blocks.looped |= trait.uses
            self._bind(node.target, node.iter, _Trait(uses=trait.uses, axes=trait.axes))
        self.run(node.body)
        # The second pass sees what the first carried round the loop; it must not count again.
        counted = (self._blocks.dots, self._blocks.loops)
        self.run(node.body)
        self._blocks.dots, self._blocks.loops = counted
        if isinstance(node, ast.While):
            self._blocks.looped |= self._trait(node.test).uses

    def _bind(self, target: ast.expr, value: ast.expr, trait: _Trait) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = trait
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for position, item in enumerate(target.elts):
                exact = len(parts) == len(target.elts)
                self._bind(item, value, self._trait(parts[position]) if exact else trait)

    def _trait(self, node: ast.AST) -> _Trait:
        if isinstance(node, ast.Name):
            if node.id in self._blocks.constexprs:
                self._blocks.used.add(node.id)
            return self._names.get(node.id, _Trait())
        if isinstance(node, ast.Call):
            return self._call(node)
        result = _Trait()
        for child in ast.iter_child_nodes(node):
            result |= self._trait(child)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mult):
                self._note_axis(node.left, node.right)
                self._note_axis(node.right, node.left)
            if isinstance(node.op, ast.Mod):
                return _Trait(uses=result.uses, axes=result.axes)
        return result

    def _call(self, node: ast.Call) -> _Trait:
        name = last_name(node.func) or ""
        trait = _Trait()
        for child in ast.iter_child_nodes(node):
            trait |= self._trait(child)
        direct = self._direct_names(node)
        if name in _SHAPED:
            self._blocks.shaped |= set(direct)
        if name == "program_id" and node.args and isinstance(node.args[0], ast.Constant):
            return _Trait(axes=frozenset((int(str(node.args[0].value)),)))
        if name in ("arange", "make_block_ptr"):
            return _Trait(frozenset(direct), trait.uses, trait.axes)
        if name in ("zeros", "full"):
            self._blocks.accumulators.append(direct)
        if name == "cdiv" and len(node.args) == 2 and isinstance(node.args[1], ast.Name):
            self._note_dividend(node.args[0], node.args[1].id)
        if name in ("dot", "dot_scaled"):
            self._blocks.dots += 1
        if name in _MASK_POSITION or name.startswith("atomic_"):
            self._access(node, name)
            # What was loaded is data: an index from memory has its own bounds.
            return _Trait(uses=trait.uses)
        return _Trait(uses=trait.uses, axes=trait.axes) if name in _CLAMPS else trait

    def _access(self, node: ast.Call, name: str) -> None:
        if not node.args or any(item.arg == "boundary_check" for item in node.keywords):
            return
        position = _MASK_POSITION.get(name, 2)
        mask = next((item.value for item in node.keywords if item.arg == "mask"), None)
        if mask is None and len(node.args) > position:
            mask = node.args[position]
        guarded = self._trait(mask).spans if mask is not None else frozenset[str]()
        self._blocks.unbounded |= self._trait(node.args[0]).spans - guarded

    def _direct_names(self, node: ast.Call) -> tuple[str, ...]:
        values = [*node.args, *(item.value for item in node.keywords)]
        return tuple(
            part.id
            for value in values
            for part in ast.walk(value)
            if isinstance(part, ast.Name) and part.id in self._blocks.constexprs
        )

    def _note_axis(self, block: ast.expr, other: ast.expr) -> None:
        if isinstance(block, ast.Name) and block.id in self._blocks.constexprs:
            axes = self._trait(other).axes
            if axes:
                self._blocks.axes.setdefault(block.id, set()).update(axes)

    def _note_dividend(self, dividend: ast.expr, block: str) -> None:
        if block in self._blocks.constexprs:
            self._blocks.dividends.setdefault(block, set()).add(ast.unparse(dividend))
