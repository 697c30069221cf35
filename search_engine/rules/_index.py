"""How a kernel's addresses depend on program ids, lanes and loop variables.

Index expressions are read as polynomials over *atoms*: ``pid:0`` (a program id), ``lane:BLOCK``
(``tl.arange(0, BLOCK)``), ``loop:start`` (a loop variable) and ``arg:n`` (a kernel parameter). A
pointer parameter is an atom like any other, so ``x_ptr + row * stride + cols`` is the polynomial
with three terms, however many local names the kernel spreads it over.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from search_engine.rules._syntax import argument

Polynomial: TypeAlias = "dict[tuple[str, ...], int]"

_TRANSPARENT = ("to", "cast", "multiple_of", "max_contiguous", "max_constancy", "broadcast_to")
_ACCESSES = {"load": 1, "store": 2}
_REDUCTIONS = ("sum", "max", "min", "argmax", "argmin")


@dataclass(frozen=True, slots=True)
class Access:
    """A load, store or atomic: its address, and the atoms that address and mask depend on."""

    call: ast.Call
    kind: str
    pointer: Polynomial | None
    depends: frozenset[str]
    mask: ast.expr | None
    mask_depends: frozenset[str]
    in_loop: bool

    @property
    def base(self) -> str | None:
        """The parameter that is the pointer, if the address is read and has exactly one."""
        if self.pointer is None:
            return None
        lone = [term[0] for term, factor in self.pointer.items() if len(term) == 1 and factor == 1]
        found = [
            atom for atom in lone if atom.startswith("arg:") and atom.endswith(("ptr", "ptrs"))
        ]
        candidates = found or [atom for atom in lone if atom.startswith("arg:")]
        return candidates[0].removeprefix("arg:") if len(candidates) == 1 else None


def call_name(node: ast.AST) -> str:
    """``load`` for ``tl.load(...)``, ``to`` for ``x.to(...)``, else an empty string."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def program_ids(kernel: ast.AST, axis: int) -> list[ast.Call]:
    """Every ``tl.program_id(axis)`` in a kernel."""
    return [
        node
        for node in ast.walk(kernel)
        if isinstance(node, ast.Call) and program_axis(node) == axis
    ]


def program_axis(node: ast.Call) -> int | None:
    """The axis of a ``program_id`` call."""
    if call_name(node) != "program_id":
        return None
    axis = argument(node, 0, "axis")
    if isinstance(axis, ast.Constant) and isinstance(axis.value, int):
        return axis.value
    return None


class KernelFlow:
    """Reads one kernel once; ``accesses`` in source order, ``kinds`` for every local name.

    With ``wraps``, a remainder depends on no lanes: ``rows % M`` stays below M whatever the block.
    """

    def __init__(self, kernel: ast.FunctionDef, *, wraps: bool = False) -> None:
        self._wraps = wraps
        self.kinds: dict[str, frozenset[str]] = {}
        self._polynomials: dict[str, Polynomial | None] = {}
        self._found: dict[ast.Call, Access] = {}
        for item in [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]:
            self._polynomials[item.arg] = {(f"arg:{item.arg}",): 1}
        self._run(kernel.body, in_loop=False)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All of them, in source order."""
        calls = sorted(self._found, key=lambda call: (call.lineno, call.col_offset))
        return tuple(self._found[call] for call in calls)

    def depends(self, node: ast.AST | None) -> frozenset[str]:
        """The program ids, lanes and loop variables that an expression depends on."""
        if node is None:
            return frozenset()
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, frozenset())
        if isinstance(node, ast.Call):
            own = _atom(node)
            if own is not None:
                return frozenset((own,))
            if call_name(node) in ("zeros", "full") and node.args:
                sizes = [part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)]
                return frozenset(f"lane:{name}" for name in sizes)
        parts = frozenset[str]().union(*(self.depends(p) for p in ast.iter_child_nodes(node)))
        wrapped = self._wraps and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
        if wrapped or call_name(node) in _REDUCTIONS:
            return frozenset(atom for atom in parts if not atom.startswith("lane:"))
        return parts

    def _run(self, body: Iterable[ast.stmt], *, in_loop: bool) -> None:
        for statement in body:
            self._statement(statement, in_loop=in_loop)

    def _statement(self, node: ast.stmt, *, in_loop: bool) -> None:
        if isinstance(node, ast.Assign):
            self._accesses(node.value, in_loop=in_loop)
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._accesses(node.value, in_loop=in_loop)
            self._bind(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._accesses(node.value, in_loop=in_loop)
            self._augment(node, in_loop=in_loop)
        elif isinstance(node, ast.For):
            self._loop(node)
        elif isinstance(node, (ast.If, ast.While)):
            self._accesses(node.test, in_loop=in_loop)
            inner = in_loop or isinstance(node, ast.While)
            self._run([*node.body, *node.orelse], in_loop=inner)
        else:
            self._accesses(node, in_loop=in_loop)

    def _loop(self, node: ast.For) -> None:
        if isinstance(node.target, ast.Name):
            atom = f"loop:{node.target.id}"
            self._polynomials[node.target.id] = {(atom,): 1}
            self.kinds[node.target.id] = frozenset((atom,)) | self.depends(node.iter)
        # The second pass sees what the first carried round the loop.
        self._run(node.body, in_loop=True)
        self._run(node.body, in_loop=True)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            known = self.kinds.get(target.id, frozenset())
            self.kinds[target.id] = known | self.depends(value)
            self._polynomials[target.id] = self.polynomial(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, ast.Tuple) else []
            for position, item in enumerate(target.elts):
                self._bind(item, parts[position] if len(parts) == len(target.elts) else value)

    def _augment(self, node: ast.AugAssign, *, in_loop: bool) -> None:
        if not isinstance(node.target, ast.Name):
            return
        name, depends = node.target.id, self.depends(node.value)
        self.kinds[name] = self.kinds.get(name, frozenset()) | depends
        if in_loop and not any(atom.startswith(("lane:", "pid:")) for atom in depends):
            return  # a step that is the same for all lanes changes no stride
        known, added = self._polynomials.get(name), self.polynomial(node.value)
        additive = isinstance(node.op, ast.Add) and known is not None and added is not None
        self._polynomials[name] = _add(known or {}, added or {}, 1) if additive else None

    def _accesses(self, node: ast.AST, *, in_loop: bool) -> None:
        for call in ast.walk(node):
            name = call_name(call)
            if not isinstance(call, ast.Call) or not call.args:
                continue
            if name in _ACCESSES or name.startswith("atomic_"):
                mask = argument(call, _ACCESSES.get(name, 2), "mask")
                self._found[call] = Access(
                    call,
                    name if name in _ACCESSES else "atomic",
                    self.polynomial(call.args[0]),
                    self.depends(call.args[0]),
                    mask,
                    self.depends(mask),
                    in_loop,
                )

    def polynomial(self, node: ast.expr) -> Polynomial | None:
        """An index or pointer expression as a polynomial; None if it is not one."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return {(): int(node.value)} if node.value else {}
        if isinstance(node, ast.Name):
            return self._polynomials.get(node.id, {(f"arg:{node.id}",): 1})
        if isinstance(node, ast.Subscript):
            return self.polynomial(node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        return None

    def _call(self, node: ast.Call) -> Polynomial | None:
        atom, name = _atom(node), call_name(node)
        if atom is not None:
            return {(atom,): 1}
        if name == "to" and isinstance(node.func, ast.Attribute):
            return self.polynomial(node.func.value)
        if name in _TRANSPARENT and node.args:
            return self.polynomial(node.args[0])
        return None

    def _binary(self, node: ast.BinOp) -> Polynomial | None:
        left, right = self.polynomial(node.left), self.polynomial(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return _add(left, right, 1 if isinstance(node.op, ast.Add) else -1)
        return _multiply(left, right) if isinstance(node.op, ast.Mult) else None


def stride_of(pointer: Polynomial, atom: str, integer: Callable[[str], int | None]) -> int | None:
    """By how many elements the address moves per step of an atom; None if it is not known.

    ``integer`` gives the value of a kernel parameter. 0 if the address does not depend on the atom.
    """
    total = 0
    for term, factor in pointer.items():
        if atom not in term:
            continue
        rest = list(term)
        rest.remove(atom)
        for name in rest:
            value = integer(name.removeprefix("arg:")) if name.startswith("arg:") else None
            if value is None:
                return None
            factor *= value
        total += factor
    return total


def _atom(node: ast.Call) -> str | None:
    axis = program_axis(node)
    if axis is not None:
        return f"pid:{axis}"
    if call_name(node) == "arange" and len(node.args) == 2:
        return f"lane:{ast.unparse(node.args[1])}"
    return None


def _add(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    result = dict(left)
    for term, factor in right.items():
        result[term] = result.get(term, 0) + sign * factor
    return {term: factor for term, factor in result.items() if factor}


def _multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for one, first in left.items():
        for two, second in right.items():
            term = tuple(sorted((*one, *two)))
            result[term] = result.get(term, 0) + first * second
    return result
