"""Syntax that extraction needs: what statements bind and read, and functions without wrappers."""

from __future__ import annotations

import ast
from typing import Any

_JIT_OPTIONS = frozenset({"do_not_specialize", "do_not_specialize_on_alignment", "noinline"})
"""Options of ``triton.jit`` that change the code; the others need names of the host."""

_KEPT_DECORATORS = frozenset({"jit", "constexpr", "constexpr_function"})


def bound_names(node: ast.stmt) -> list[str]:
    """Names that a statement binds, without those of statements inside it."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names if alias.name != "*"]
        case ast.Assign(targets=targets):
            return [name for target in targets for name in _stored(target)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
        case _:
            return []


def free_names(node: ast.AST) -> list[str]:
    """Names that a statement or expression reads from outside, in the order of the text."""
    local: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.FunctionDef, ast.Lambda)):
            listed = part.args
            every = (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)
            local.update(argument.arg for argument in every)
            if isinstance(part, ast.FunctionDef):
                local.update(name for inner in part.body for name in _stored(inner))
    names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    return [name for name in dict.fromkeys(names) if name not in local]


def statement_bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of an ``if``, ``try`` or ``with``."""
    match node:
        case ast.If(body=body, orelse=other):
            return [body, other]
        case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
            return [body, other, *(handler.body for handler in handlers), last]
        case ast.With(body=body):
            return [body]
        case _:
            return []


def path_to(body: list[ast.stmt], names: list[str]) -> list[ast.stmt] | None:
    """The definitions that a qualified name leads through, outermost first."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            if node.name == names[0]:
                inner = path_to(node.body, names[1:]) if names[1:] else []
                if inner is not None:
                    return [node, *inner]
            continue
        for block in statement_bodies(node):
            found = path_to(block, names)
            if found is not None:
                return found
    return None


def plain_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """The function with ``triton.jit`` as its only decorator, at the same place."""
    fields: dict[str, Any] = {
        "name": node.name,
        "args": node.args,
        "body": node.body,
        "decorator_list": [
            _plain_jit(item) for item in node.decorator_list if _name(item) in _KEPT_DECORATORS
        ],
        "returns": None,
        "type_comment": None,
    }
    if hasattr(node, "type_params"):  # Python 3.12
        fields["type_params"] = []
    return ast.copy_location(ast.FunctionDef(**fields), node)


def _plain_jit(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Call):
        return node
    kept = [item for item in node.keywords if item.arg in _JIT_OPTIONS]
    return ast.copy_location(ast.Call(node.func, [], kept), node) if kept else node.func


def _name(node: ast.expr) -> str:
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _stored(node: ast.AST) -> list[str]:
    return [
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    ]
