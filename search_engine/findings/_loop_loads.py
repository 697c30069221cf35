"""What the loads of a loop look like, in the text and in the machine code."""

from __future__ import annotations

import ast

from search_engine.domain.code import LaunchCode, PipelinedLoop
from search_engine.findings._base import Subject
from search_engine.findings._code import GLOBAL_LOADS
from search_engine.findings._source import called_name
from search_engine.findings._vectors import known_accesses


def loads_blocks(subject: Subject, launch: LaunchCode, loop: PipelinedLoop) -> bool:
    """True if the loop is known to load a block; a single value is never prefetched."""
    first, last = loop.line or 0, loop.end_line or loop.line or 0
    return any(
        first < access.call.lineno - 1 <= last and not access.store
        for access in known_accesses(subject, launch)
    )


def narrowest_load(launch: LaunchCode, loop: PipelinedLoop) -> int:
    """Bytes a thread of the narrowest load in the loop; 0 if none is seen."""
    first, last = loop.line or 0, loop.end_line or loop.line or 0
    widths = [
        item.width_bytes
        for code in launch.lines
        if code.line is not None and first < code.line <= last and code.loop_depth > 0
        for item in code.counts
        if item.operation in GLOBAL_LOADS
    ]
    return min(widths, default=0)


def loads_under_branch(loop: ast.For) -> bool:
    """True if every load of the loop stands under an ``if``."""
    loads = _loads(loop)
    branched = {
        load for node in ast.walk(loop) if isinstance(node, ast.If) for load in _loads(node)
    }
    return bool(loads) and loads == branched


def loads_indirectly(loop: ast.For) -> bool:
    """True if a load of the loop takes its address from another one in it."""
    loaded = {
        target.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign) and _loads(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        isinstance(part, ast.Name) and part.id in loaded
        for load in _loads(loop)
        if isinstance(load, ast.Call) and load.args
        for part in ast.walk(load.args[0])
    )


def _loads(node: ast.AST) -> set[ast.AST]:
    return {part for part in ast.walk(node) if called_name(part) == "load"}
