"""Finder recall: kernels and launches of the front end against an independent count.

The count reads each file with Python's own parser and knows nothing of the front end. A device
function is one whose decorator is ``jit`` of a module that the file imports from Triton. A launch
is a call of a subscript, outside device functions, whose base is a kernel of the package: its name,
an alias, an attribute of that name, or a call with it (``wrap_triton(kernel)[grid](...)``); and any
call of a subscript whose index is called a grid or is a function of the meta-parameters.
"""

from __future__ import annotations

import ast
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.corpus_packages import Package, files_of
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads


@dataclass(slots=True)
class Recall:
    """Counts of one package; ``missed`` are places as ``file:line``."""

    package: str
    files: int = 0
    unparsed: int = 0
    """Files that Python's parser refuses: they are not counted."""
    functions: int = 0
    functions_found: int = 0
    launches: int = 0
    launches_found: int = 0
    slowest_ms: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    missed: list[str] = field(default_factory=list[str])


def measure(folder: Path, package: Package) -> Recall:
    """Count one package. Raises what the front end raises: it must raise nothing."""
    result = Recall(package.name)
    texts = list(files_of(folder, package))
    trees = {path: tree for path, text in texts if (tree := _parsed(text)) is not None}
    kernels = {name for tree in trees.values() for name in _kernel_names(tree)}
    result.files, result.unparsed = len(texts), len(texts) - len(trees)
    for path, text in texts:
        started = time.process_time()
        module = parse_module(text, str(path))
        parse_workloads(module)
        result.slowest_ms = max(result.slowest_ms, (time.process_time() - started) * 1e3)
        result.counts.update(
            kernels_and_helpers=len(module.kernels),
            launchable=len(module.units),
            launches=len(module.launches),
            with_entry=sum(unit.entry is not None for unit in module.units),
            opaque_launches=sum(launch.opaque for launch in module.launches),
        )
        if path not in trees:
            continue
        where = path.relative_to(folder).as_posix()
        lines = {kernel.name_span.line + 1 for kernel in module.kernels}
        wanted = {node.lineno: node.name for node in _device_functions(trees[path])}
        result.functions += len(wanted)
        result.functions_found += len(wanted.keys() & lines)
        result.missed += [f"{where}:{n} {wanted[n]}" for n in sorted(wanted.keys() - lines)]
        launched = {launch.span.line + 1 for launch in module.launches}
        places = _launch_lines(trees[path], kernels)
        result.launches += len(places)
        result.launches_found += len(places & launched)
        result.missed += [f"{where}:{line} launch" for line in sorted(places - launched)]
    return result


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text.removeprefix("\ufeff"))
        except SyntaxError:
            return None


def _triton_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names that the file's imports give to Triton's modules, and to ``jit`` itself."""
    modules: set[str] = set()
    functions: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "triton":
                    modules.add(alias.asname or "triton")
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "jit" and "triton" in (node.module or ""):
                    functions.add(alias.asname or "jit")
                elif alias.name in ("triton", "gluon"):
                    modules.add(alias.asname or alias.name)
    return modules, functions


def _is_jit(node: ast.expr, modules: set[str], functions: set[str]) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name):
        return node.id in functions
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    is_jit = isinstance(node, ast.Attribute) and node.attr == "jit"
    return is_jit and isinstance(root, ast.Name) and root.id in modules


def _device_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    names = _triton_names(tree)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [f for f in functions if any(_is_jit(d, *names) for d in f.decorator_list)]


def _kernel_names(tree: ast.Module) -> set[str]:
    """Device functions, and names bound to what is made of one by calls."""
    names = {function.name for function in _device_functions(tree)}
    modules, functions = _triton_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            calls = [part for part in ast.walk(node.value) if isinstance(part, ast.Call)]
            if any(_is_jit(call.func, modules, functions) for call in calls):
                names.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return names


def _launch_lines(tree: ast.Module, kernels: set[str]) -> set[int]:
    aliases = kernels | _aliases(tree, kernels)
    inside = [(f.lineno, f.end_lineno or f.lineno) for f in _device_functions(tree)]
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
            continue
        device = any(start <= node.lineno <= end for start, end in inside)
        named = _base_name(node.func.value) in aliases
        if not device and (named or _is_grid(node.func.slice)):
            found.add(node.lineno)
    return found


def _is_grid(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return isinstance(node, ast.Lambda) or "grid" in str(name).lower()


def _aliases(tree: ast.Module, kernels: set[str]) -> set[str]:
    """Names that imports and plain assignments give to kernels."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.update(a.asname for a in node.names if a.asname and a.name in kernels)
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.IfExp)):
            value = node.value
            sides = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
            if all(isinstance(side, ast.Name) and side.id in kernels for side in sides):
                found.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return found


def _base_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
