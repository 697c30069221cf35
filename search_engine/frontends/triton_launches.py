"""Decorators that make a kernel, calls that make one, and launches."""

from __future__ import annotations

import re

import tree_sitter

from search_engine.domain.kernel import Launch, LaunchArgument, Span
from search_engine.frontends.triton_syntax import Function, Source, span

_BRACKET = re.compile(rb"\]\s*\(")
_MAKER = re.compile(rb"\b(?:jit|autotune|heuristics)\s*\(")
_ASSIGNED = re.compile(rb"=\s*(?:[A-Za-z_][\w.]*)\s*\(")
_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu"})
_WRAPPERS = frozenset({"wrap_triton", "capture_triton"})
_LOOPS = frozenset({"for_statement", "while_statement"})
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "generator_expression", "dictionary_comprehension"}
)


def is_jit_decorator(
    source: Source, function: Function, triton: frozenset[str], jit: frozenset[str]
) -> bool:
    """True if one of the decorators is Triton's (or Gluon's) ``jit``."""
    return any(
        _is_jit(decorator.name, triton, jit)
        for decorator in (source.decorators(function) if function.outer != function.node else ())
    )


def jit_calls(
    source: Source, triton: frozenset[str], jit: frozenset[str], tuners: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    """``(name, function)`` of assignments such as ``k = triton.autotune(...)(triton.jit(f))``."""
    if not _MAKER.search(source.data):
        return ()
    found: list[tuple[str, str]] = []
    for match in _ASSIGNED.finditer(source.data):
        leaf = source.leaf(match.start())
        node = leaf.parent if leaf is not None else None
        left = node.child_by_field_name("left") if node is not None else None
        right = node.child_by_field_name("right") if node is not None else None
        if node is None or node.type != "assignment" or left is None or right is None:
            continue
        inner = _made_from(source, right, triton, jit, tuners)
        if left.type == "identifier" and inner is not None:
            found.append((source.text(left), inner))
    return tuple(found)


def launches_in(source: Source) -> tuple[tuple[Launch, bool], ...]:
    """``(launch, evident)`` of everything written ``callee[grid](arguments)``.

    A launch is evident if its grid or its options show that it can be nothing else; others count
    only if their kernel is known. ``entry`` is left for the caller.
    """
    found: list[tuple[Launch, bool]] = []
    for match in _BRACKET.finditer(source.data):
        leaf = source.leaf(match.start())
        subscript = leaf.parent if leaf is not None and leaf.type == "]" else None
        call = subscript.parent if subscript is not None else None
        if subscript is None or call is None or subscript.type != "subscript":
            continue
        if call.type == "call" and call.child_by_field_name("function") == subscript:
            launch = _launch(source, call, subscript)
            if launch is not None:
                found.append(launch)
    return tuple(found)


def _is_jit(name: str, triton: frozenset[str], jit: frozenset[str]) -> bool:
    base, _, last = name.rpartition(".")
    if not base:
        return last in jit
    return last == "jit" and base in triton


def _made_from(
    source: Source,
    node: tree_sitter.Node,
    triton: frozenset[str],
    jit: frozenset[str],
    tuners: frozenset[str],
) -> str | None:
    """Name of the function that a chain of jit, autotune and heuristics calls wraps."""
    if node.type != "call":
        return None
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None:
        return None
    maker = function.child_by_field_name("function") if function.type == "call" else function
    name = source.text(maker) if maker is not None else ""
    base, _, last = name.rpartition(".")
    tuner = name in tuners or (base in triton and last in ("autotune", "heuristics"))
    if not (_is_jit(name, triton, jit) or (tuner and function.type == "call")):
        return None
    values = [_value(child) for child in listed.named_children]
    first = next((child for child in values if child.type == "identifier"), None)
    if first is not None:
        return source.text(first)
    inner = next((child for child in values if child.type == "call"), None)
    return _made_from(source, inner, triton, jit, tuners) if inner is not None else None


def _value(node: tree_sitter.Node) -> tree_sitter.Node:
    return node.child_by_field_name("value") or node


def _launch(
    source: Source, call: tree_sitter.Node, subscript: tree_sitter.Node
) -> tuple[Launch, bool] | None:
    value, listed = subscript.child_by_field_name("value"), call.child_by_field_name("arguments")
    grids = subscript.children_by_field_name("subscript")
    if value is None or listed is None or listed.type != "argument_list" or not grids:
        return None
    kernel = _kernel_name(source, value)
    arguments, opaque = _arguments(source, listed)
    grid = source.slice(grids[0].start_byte, subscript.end_byte - 1).strip()
    names = [argument.name for argument in arguments if argument.name]
    evident = (
        (len(grids) > 1 or grids[0].type in ("tuple", "lambda") or "grid" in grid.lower())
        and (value.type in ("identifier", "attribute", "call"))
    ) or any(name in _OPTIONS or (name.isupper() and len(name) > 1) for name in names)
    launch = Launch(
        callee=source.text(value),
        kernel=kernel,
        grid=grid,
        arguments=arguments,
        opaque=opaque,
        in_loop=_in_loop(call),
        entry=None,
        span=span(call),
        arguments_span=_inside(listed),
    )
    return launch, evident


def _arguments(source: Source, listed: tree_sitter.Node) -> tuple[tuple[LaunchArgument, ...], bool]:
    found: list[LaunchArgument] = []
    opaque = False
    for node in listed.named_children:
        if node.type == "comment":
            continue
        if node.type in ("list_splat", "dictionary_splat"):
            opaque = True
        name = value = None
        if node.type == "keyword_argument":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        found.append(
            LaunchArgument(
                source.text(name) if name is not None else None,
                source.text(value if value is not None else node),
                span(node),
            )
        )
    return tuple(found), opaque


def _kernel_name(source: Source, node: tree_sitter.Node) -> str:
    """Last name of a callee; through ``wrap_triton(k)``, subscripts and conditional expressions."""
    while True:
        inner: tree_sitter.Node | None = None
        if node.type == "attribute":
            inner = node.child_by_field_name("attribute")
        elif node.type == "subscript":
            inner = node.child_by_field_name("value")
        elif node.type == "call":
            function = node.child_by_field_name("function")
            listed = node.child_by_field_name("arguments")
            name = source.text(function).rsplit(".", 1)[-1] if function is not None else ""
            wrapped = listed.named_children if listed is not None and name in _WRAPPERS else []
            inner = wrapped[0] if wrapped else function
        elif node.type in ("parenthesized_expression", "conditional_expression"):
            inner = node.named_children[0] if node.named_children else None
        if inner is None:
            return source.text(node)
        node = inner


def _in_loop(node: tree_sitter.Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type not in ("class_definition",):
        if parent.type in _LOOPS or parent.type in _COMPREHENSIONS:
            return True
        parent = parent.parent
    return False


def _inside(listed: tree_sitter.Node) -> Span:
    """The span between the parentheses."""
    whole = span(listed)
    return Span(whole.start + 1, whole.end - 1, whole.line, whole.end_line)
