"""What the lanes beyond the end of a row hold.

A block of ``next_power_of_2(n)`` lanes has lanes that belong to no element. Whether they disturb a
reduction depends on what masks and ``where`` put there. ``DeadLanes`` follows that value through a
straight line of statements. It knows a few operations; all else is unknown.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from search_engine.rules._syntax import argument, language_call, literal_value

REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce"})
SCANS = frozenset({"cumsum", "cumprod", "associative_scan"})

_NEUTRAL = {
    "sum": 0.0, "xor_sum": 0.0, "max": -math.inf, "argmax": -math.inf, "min": math.inf,
    "argmin": math.inf,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lane:
    """What is known about the dead lanes of one value.

    ``varies`` says that the value has lanes at all. ``index``: it is the element's number.
    ``inside``: it is a mask that is false on every dead lane. ``dead`` is the number that dead
    lanes hold, None if unknown. ``least`` is a bound from below for all lanes.
    """

    varies: bool
    index: bool = False
    inside: bool = False
    dead: float | None = None
    literal: float | None = None
    picks: bool = False
    """A comparison of the element's number with a scalar for equality."""
    least: float | None = None


SCALAR = Lane(varies=False)
UNKNOWN = Lane(varies=True)


class DeadLanes:
    """Follows statements in order; then tells whether dead lanes can matter.

    ``neutral``: no reduction sees them. ``covered``: every access with lanes is masked so that dead
    lanes touch no memory.
    """

    def __init__(self, alias: str, bound: str) -> None:
        self.neutral = True
        self.covered = True
        self._alias = alias
        self._bound = bound
        self._names: dict[str, Lane] = {}

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Follow the statements."""
        for statement in statements:
            if isinstance(statement, ast.Assign):
                value = self._eval(statement.value)
                for target in statement.targets:
                    self._bind(target, value)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                left = self._names.get(statement.target.id, SCALAR)
                self._bind(
                    statement.target, _binary(statement.op, left, self._eval(statement.value))
                )
            elif isinstance(statement, ast.If):
                self._branch(statement)
            elif isinstance(statement, ast.Expr):
                self._eval(statement.value)

    def varies(self, node: ast.expr) -> bool:
        """True if an expression has lanes after the statements followed so far."""
        return self._eval(node).varies

    def _branch(self, statement: ast.If) -> None:
        self._eval(statement.test)
        before = dict(self._names)
        self.run(statement.body)
        after, self._names = self._names, before
        self.run(statement.orelse)
        for name in {*after, *self._names}:
            left, right = after.get(name), self._names.get(name)
            if left != right:
                # A name that only one branch assigns is used only where that branch ran.
                merged = left if right is None else right if left is None else UNKNOWN
                self._names[name] = merged or UNKNOWN

    def _bind(self, target: ast.expr, value: Lane) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self._bind(item, UNKNOWN if value.varies else SCALAR)

    def _eval(self, node: ast.expr) -> Lane:
        value = literal_value(node)
        if value is not None:
            return Lane(varies=False, dead=value, literal=value, least=value)
        if isinstance(node, ast.Name):
            return self._names.get(node.id, SCALAR)
        if isinstance(node, ast.BinOp):
            return _binary(node.op, self._eval(node.left), self._eval(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compare(node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        parts = [
            self._eval(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)
        ]
        return UNKNOWN if any(part.varies for part in parts) else SCALAR

    def _unary(self, node: ast.UnaryOp) -> Lane:
        value = self._eval(node.operand)
        if isinstance(node.op, ast.USub) and value.dead is not None:
            return Lane(varies=value.varies, dead=-value.dead)
        return UNKNOWN if value.varies else SCALAR

    def _compare(self, node: ast.Compare) -> Lane:
        left, right = node.left, node.comparators[0]
        operator = node.ops[0]
        if isinstance(operator, ast.Gt):
            left, right, operator = right, left, ast.Lt()
        first, second = self._eval(left), self._eval(right)
        if isinstance(operator, ast.Lt) and first.index:
            inside = isinstance(right, ast.Name) and right.id == self._bound
            return Lane(varies=True, inside=inside, dead=0.0 if inside else None)
        if isinstance(operator, ast.Eq) and first.index != second.index:
            # The number of an element, a label for instance, is below the length of the row.
            return Lane(varies=True, dead=0.0, picks=True)
        return UNKNOWN if first.varies or second.varies else SCALAR

    def _call(self, node: ast.Call) -> Lane:
        name = language_call(node, self._alias)
        values = [self._eval(item) for item in (*node.args, *(k.value for k in node.keywords))]
        varies = any(value.varies for value in values)
        if name is None:
            return self._method(node, varies=varies)
        if name == "arange":
            return Lane(varies=True, index=True)
        if name in ("load", "store") or name.startswith("atomic"):
            return self._access(node, name)
        if name in REDUCTIONS:
            self._reduction(node, name)
            return SCALAR
        if name in SCANS:
            return self._scan(node)
        if name in ("zeros", "full"):
            fill = (
                0.0 if name == "zeros" else literal_value(node.args[1]) if node.args[1:] else None
            )
            return Lane(varies=True, dead=fill)
        if name == "where" and len(node.args) == 3:
            return _where(*(self._eval(item) for item in node.args))
        return self._elementwise(name, [self._eval(item) for item in node.args], varies=varies)

    def _method(self, node: ast.Call, *, varies: bool) -> Lane:
        if isinstance(node.func, ast.Attribute):
            owner = self._eval(node.func.value)
            if node.func.attr == "to":
                return owner
            if node.func.attr in REDUCTIONS | SCANS | {"reshape", "split"}:
                self.neutral = False
            varies = varies or owner.varies
        return UNKNOWN if varies else SCALAR

    def _access(self, node: ast.Call, name: str) -> Lane:
        pointer = self._eval(node.args[0]) if node.args else UNKNOWN
        mask_position = 1 if name == "load" else 2
        mask = argument(node, mask_position, "mask")
        inside = mask is not None and self._eval(mask).inside
        if not pointer.varies:
            return SCALAR
        if not inside:
            self.covered = False
        other = argument(node, 2, "other") if name == "load" else None
        dead = self._eval(other).dead if inside and other is not None else None
        return Lane(varies=True, dead=dead)

    def _reduction(self, node: ast.Call, name: str) -> None:
        value = self._eval(node.args[0]) if node.args else UNKNOWN
        if value.dead is None:
            self.neutral = False
        elif value.dead != _NEUTRAL.get(name):
            covers = name == "max" and value.least is not None and value.dead <= value.least
            self.neutral = self.neutral and covers

    def _scan(self, node: ast.Call) -> Lane:
        # Dead lanes come last: a forward scan of the others does not see them.
        reverse = argument(node, 2, "reverse")
        if reverse is not None and not (isinstance(reverse, ast.Constant) and not reverse.value):
            self.neutral = False
        return UNKNOWN

    def _elementwise(self, name: str, values: list[Lane], *, varies: bool) -> Lane:
        if name in _UNARY and len(values) == 1:
            dead, least = values[0].dead, 0.0 if name == "abs" else None
            return Lane(
                varies=varies, dead=None if dead is None else _UNARY[name](dead), least=least
            )
        if name in ("maximum", "minimum") and len(values) == 2:
            left, right = values[0].dead, values[1].dead
            pick = max if name == "maximum" else min
            return Lane(varies, dead=None if left is None or right is None else pick(left, right))
        if name in ("multiple_of", "max_contiguous") and values:
            return values[0]
        return UNKNOWN if varies else SCALAR


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


def _exp2(value: float) -> float:
    return 2.0 ** min(value, 1000.0)


_UNARY: dict[str, Callable[[float], float]] = {"exp": _exp, "exp2": _exp2, "abs": abs}


def _where(condition: Lane, chosen: Lane, other: Lane) -> Lane:
    varies = condition.varies or chosen.varies or other.varies
    if condition.inside or condition.picks:
        return Lane(varies=varies, dead=other.dead)
    return Lane(varies=varies, dead=chosen.dead if chosen.dead == other.dead else None)


def _binary(operator: ast.operator, left: Lane, right: Lane) -> Lane:
    if isinstance(operator, ast.BitAnd) and (left.inside or right.inside):
        return Lane(varies=True, inside=True, dead=0.0)
    if not left.varies and not right.varies:
        return SCALAR
    if isinstance(operator, ast.Add) and 0.0 in (left.literal, right.literal):
        return right if left.literal == 0.0 else left
    return Lane(varies=True, dead=_arithmetic(operator, left, right))


def _arithmetic(operator: ast.operator, left: Lane, right: Lane) -> float | None:
    # A scalar that is no literal is taken to be finite, and not zero where it divides.
    a, b = left.dead, right.dead
    if isinstance(operator, ast.Mult):
        if a == 0.0 or b == 0.0:
            zero_times = b if a == 0.0 else a
            known_or_scalar = zero_times is not None or not (left.varies and right.varies)
            return 0.0 if known_or_scalar and zero_times not in (math.inf, -math.inf) else None
        return None if a is None or b is None else a * b
    if isinstance(operator, ast.Div):
        return 0.0 if a == 0.0 and (not right.varies or b not in (None, 0.0)) else None
    if isinstance(operator, ast.Add | ast.Sub):
        sign = 1.0 if isinstance(operator, ast.Add) else -1.0
        if a is not None and b is not None:
            return a + sign * b
        if a in (math.inf, -math.inf) and not right.varies:
            return a
        if b in (math.inf, -math.inf) and not left.varies:
            return sign * b
    return None
