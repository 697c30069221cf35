"""The loop of a host function in which a launch stands."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from search_engine.domain.kernel import Launch, Span
from search_engine.findings._base import Subject
from search_engine.findings._launch import entry_at, entry_node
from search_engine.findings._source import called_name

_FEW = 8
"""Iterations that a literal range may have without being called a loop of launches."""
_PARTS = re.compile(
    r"chunk|portion|part|split|stage|pass|iter|step|level|bit|digit|round|log", re.IGNORECASE
)
"""In the bound of a loop: parts that bound memory, or rounds of which each needs the last."""
_EXERCISES = ("test", "bench", "main", "check", "verify", "profile")


@dataclass(frozen=True, slots=True)
class HostLoop:
    """``header`` is the loop's first line; ``independent`` that each round has its own data.

    Independent is what is plain to see: the loop counts over a range of unknown or large size with
    step one, and its variable picks what a launch gets.
    """

    header: Span
    independent: bool


def host_loop(subject: Subject, launch: Launch) -> HostLoop | None:
    """The innermost ``for`` or ``while`` around a launch; None if there is none."""
    entry = entry_at(subject, launch)
    function = entry_node(subject, entry) if entry is not None else None
    loops = [
        node
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.For | ast.While) and _holds(node, launch)
    ]
    if not loops or entry is None:
        return None
    loop = max(loops, key=lambda node: node.lineno)
    exercise = entry.name.lstrip("_").lower().startswith(_EXERCISES)
    return HostLoop(subject.line_span(loop.lineno - 1), not exercise and _independent(loop, launch))


def _holds(loop: ast.For | ast.While, launch: Launch) -> bool:
    first = loop.body[0].lineno - 1
    last = (loop.body[-1].end_lineno or loop.body[-1].lineno) - 1
    return first <= launch.span.line and launch.span.end_line <= last


def _independent(loop: ast.For | ast.While, launch: Launch) -> bool:
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    picks = loop.target.id in _names_passed(loop, launch)
    return _counts(loop.iter) and picks and not _slices(loop)


def _slices(loop: ast.For) -> bool:
    """True where the loop takes a part at a time, as loops do that bound memory."""
    return any(
        isinstance(node, ast.Slice) and (node.lower or node.upper) for node in ast.walk(loop)
    )


def _counts(header: ast.expr) -> bool:
    if called_name(header) != "range" or not isinstance(header, ast.Call):
        return False
    if len(header.args) != 1:
        return False
    bound = header.args[0]
    if isinstance(bound, ast.Constant):
        return isinstance(bound.value, int) and bound.value >= _FEW
    return _PARTS.search(ast.unparse(bound)) is None


def _names_passed(loop: ast.For, launch: Launch) -> set[str]:
    """Names that the launch's arguments depend on, through the loop's own assignments."""
    names: set[str] = set()
    for argument in launch.arguments:
        names |= _names(argument.text)
    for _ in range(len(loop.body)):
        for statement in loop.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(part, ast.Name) and part.id in names
                for target in statement.targets
                for part in ast.walk(target)
            ):
                names |= {
                    part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)
                }
    return names


def _names(text: str) -> set[str]:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return set()
    return {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
