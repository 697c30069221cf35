"""Count the iterations of a kernel's loops.

The interpreter rewrites each kernel before it runs it; here the rewriting also passes the iterated
object of every ``for`` through a counter and puts a call into the body of every ``while``. Lines
stay as they are in the text.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from search_engine.domain.access import LoopTrace

_OVER = "_traced_loop_over"
_STEP = "_traced_loop_step"


class LoopCounter:
    """Iterations by line of the loop's header, for one program after another.

    ``at_step`` is called with the line before each iteration; it may raise to end a program.
    """

    def __init__(self, at_step: Callable[[int, bool], None]) -> None:
        self._at_step = at_step
        self.current: Counter[int] = Counter()
        """Of the program that runs."""

    def over(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """Iterate; the header is where this is called."""
        line = sys._getframe(1).f_lineno - 1
        self.current[line] += 0
        return self._iterate(line, iterable)

    def step(self) -> None:
        """An iteration of a ``while`` begins; called as if from the header."""
        line = sys._getframe(1).f_lineno - 1
        self.current[line] += 1
        self._at_step(line, True)

    def _iterate(self, line: int, iterable: Iterable[Any]) -> Iterator[Any]:
        for value in iterable:
            self.current[line] += 1
            self._at_step(line, False)
            yield value


class LoopTotals:
    """Iterations over all programs of a launch."""

    def __init__(self) -> None:
        self._sums: Counter[int] = Counter()
        self._most: dict[int, int] = {}

    def add(self, program: Counter[int]) -> None:
        """A program has ended."""
        for line, iterations in program.items():
            self._sums[line] += iterations
            self._most[line] = max(self._most.get(line, 0), iterations)

    def totals(self, programs: int) -> tuple[LoopTrace, ...]:
        """In order of lines; ``programs`` is at least 1."""
        return tuple(
            LoopTrace(line, self._sums[line] / programs, self._most[line])
            for line in sorted(self._most)
        )


def counting(rewriter: Any, counter: LoopCounter) -> Any:
    """The function that the interpreter's rewriter makes, with its loops counted."""
    from triton.runtime.interpreter import ASTTransformer

    class Counting(ASTTransformer):
        def visit_For(self, node: ast.For) -> ast.For:
            self.generic_visit(node)
            node.iter = _call(_OVER, node, [node.iter])
            return node

        def visit_While(self, node: ast.While) -> ast.While:
            self.generic_visit(node)
            node.body.insert(0, ast.copy_location(ast.Expr(_call(_STEP, node, [])), node))
            return node

    own = copy.copy(rewriter)
    own.ast_transformer = Counting()
    names = rewriter.fn.__globals__
    names[_OVER], names[_STEP] = counter.over, counter.step
    return own.rewrite_ast()


def _call(name: str, at: ast.stmt, arguments: list[ast.expr]) -> ast.Call:
    """A call that is on the line where a statement begins."""
    function = ast.Name(id=name, ctx=ast.Load())
    call = ast.Call(func=function, args=arguments, keywords=[])
    for node in (function, call):
        node.lineno = node.end_lineno = at.lineno
        node.col_offset = node.end_col_offset = at.col_offset
    return call
