"""From a parsed module and unit to the ``Subject`` that rules are asked about."""

from __future__ import annotations

import ast

from search_engine.domain.candidate import python_text
from search_engine.domain.kernel import Entry, Kernel, Language, Module, Unit
from search_engine.domain.target import Target
from search_engine.domain.workload import Workload
from search_engine.rules._base import Subject


def make_subject(module: Module, unit: Unit, workload: Workload, target: Target) -> Subject | None:
    """The unit as rules see it; None where no rule may be asked.

    That is: the file is not Python or does not parse, the unit has no entry in the file, or the
    kernel's name is used for anything but launches inside that entry (a launch elsewhere would
    break if the kernel's signature changed).
    """
    if unit.entry is None or module.language is not Language.TRITON or not workload.cases:
        return None
    try:
        tree = ast.parse(python_text(module.text))
    except (SyntaxError, ValueError):
        return None
    kernel_node = _kernel_node(tree, unit.kernel)
    entry_node = _entry_node(tree, unit.entry)
    if kernel_node is None or entry_node is None:
        return None
    if not _only_launched_from(tree, unit.kernel.name, entry_node):
        return None
    return Subject(module, unit, tree, kernel_node, entry_node, workload, target)


def _functions(tree: ast.Module, name: str) -> list[ast.FunctionDef]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [node for node in nodes if node.name == name]


def _kernel_node(tree: ast.Module, kernel: Kernel) -> ast.FunctionDef | None:
    found = _functions(tree, kernel.name)
    # Two definitions of one name (version guards): which one a launch means is not known here.
    if len(found) != 1 or found[0].lineno - 1 != kernel.name_span.line:
        return None
    return found[0]


def _entry_node(tree: ast.Module, entry: Entry) -> ast.FunctionDef | None:
    for node in _functions(tree, entry.name):
        first = min((d.lineno for d in node.decorator_list), default=node.lineno)
        if first - 1 == entry.span.line:
            return node
    return None


def _only_launched_from(tree: ast.Module, name: str, entry: ast.FunctionDef) -> bool:
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    launches = sum(_is_launch(node, name) for node in ast.walk(entry))
    return 0 < launches == uses


def _is_launch(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
        return False
    base = node.func.value
    return isinstance(base, ast.Name) and base.id == name
