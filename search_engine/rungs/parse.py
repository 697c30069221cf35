"""Whether a candidate is text that may be executed at all.

Establishes: the text parses, the unit is still there, only the unit changed, and the new code uses
nothing that a kernel or its entry has no business with.
Costs: milliseconds, no worker.
Fails when: the syntax is wrong, text outside the unit changed, or a forbidden name appears that the
baseline does not use.
Cannot tell: whether the code compiles or is right.
"""

from __future__ import annotations

import ast

from search_engine.domain.candidate import Candidate, python_text
from search_engine.domain.run import Rung
from search_engine.domain.verdict import CompileFailed, Rejected
from search_engine.rungs._base import Failed, Passed, RungOutcome, Submit, Task

_FORBIDDEN_MODULES = frozenset(
    {"os", "sys", "subprocess", "socket", "ctypes", "inspect", "gc", "threading", "signal", "time"}
)
_FORBIDDEN_CALLS = frozenset(
    {"eval", "exec", "compile", "open", "__import__", "globals", "setattr"}
)


class Parse:
    """Syntax and policy."""

    rung = Rung.PARSE

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Judge each text by itself."""
        allowed = _suspicious(ast.parse(python_text(task.baseline.text)))
        return tuple(_judge(candidate, allowed) for candidate in candidates)


def _judge(candidate: Candidate, allowed: frozenset[str]) -> RungOutcome:
    try:
        tree = ast.parse(python_text(candidate.text))
    except (SyntaxError, ValueError) as error:
        return Failed(CompileFailed(f"does not parse: {error}"))
    added = _suspicious(tree) - allowed
    if added:
        return Failed(Rejected(f"uses {', '.join(sorted(added))}, which the kernel did not"))
    return Passed(None)


def _suspicious(tree: ast.Module) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names.update(alias.name.split(".")[0] for alias in aliases)
            case ast.ImportFrom(module=str(module)):
                names.add(module.split(".")[0])
            case ast.Call(func=ast.Name(id=name)) if name in _FORBIDDEN_CALLS:
                names.add(f"{name}()")
            case ast.Attribute(attr=attribute) if attribute.startswith("__"):
                names.add(attribute)
            case _:
                pass
    calls = {name for name in names if name.endswith("()") or name.startswith("__")}
    return frozenset(calls | (names & _FORBIDDEN_MODULES))
