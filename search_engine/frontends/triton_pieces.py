"""Splits a Python file into pieces that are parsed on their own, and what is found in a piece.

A piece begins at a ``def``, ``class`` or decorator in the first column. Parsing piece by piece
makes results reusable after an edit elsewhere, independent of what was parsed before, and keeps an
unclosed bracket from swallowing the kernels below it.
"""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass

import tree_sitter

from search_engine.domain.kernel import (
    Decorator,
    Launch,
    Loop,
    Operation,
    Parameter,
    Span,
    SyntaxProblem,
)
from search_engine.frontends.triton_launches import is_jit_decorator, jit_calls, launches_in
from search_engine.frontends.triton_operations import called_names, loops_in, operations_in
from search_engine.frontends.triton_syntax import Function, Source, span

_BOUNDARY = re.compile(rb"^(?:@|def[ \t]|async[ \t]+def[ \t]|class[ \t])", re.M)
_QUOTED = re.compile(
    rb"#[^\n]*"
    rb'|"""(?:[^"\\]|\\.|"(?!""))*"""'
    rb"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    rb'|"(?:[^"\\\n]|\\.)*"'
    rb"|'(?:[^'\\\n]|\\.)*'",
    re.S,
)
_TRIPLE = re.compile(rb'"""|\'\'\'')
_HASH = 0x23
_CACHED_PIECES = 1024
"""A few versions of a file with some hundred definitions."""
_COMPOUND = re.compile(
    r"^[ \t]*(?:def|class)[ \t]+(\w+)|^[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.M
)


@dataclass(frozen=True, slots=True)
class Names:
    """How a file names Triton: its modules, their aliases and the functions taken from them."""

    triton: frozenset[str]
    language: frozenset[str]
    jit: frozenset[str]
    tuners: frozenset[str]


@dataclass(frozen=True, slots=True)
class FoundFunction:
    """A function definition; ``device`` functions carry loops and operations."""

    name: str
    qualified_name: str
    span: Span
    name_span: Span
    body: Span
    parameters: tuple[Parameter, ...]
    decorators: tuple[Decorator, ...]
    nested: bool
    conditional: bool
    method: bool
    device: bool
    loops: tuple[Loop, ...]
    operations: tuple[Operation, ...]
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundLaunch:
    """Something that is written like a launch. ``evident`` ones need no known kernel."""

    launch: Launch
    evident: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A module-level statement: the names it binds and where it stands."""

    names: tuple[str, ...]
    span: Span
    is_import: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """Everything found in one piece of a file."""

    functions: tuple[FoundFunction, ...]
    launches: tuple[FoundLaunch, ...]
    statements: tuple[Statement, ...]
    jit_calls: tuple[tuple[str, str], ...]
    """``(new name, function)`` of ``k = triton.jit(f)``."""
    problems: tuple[SyntaxProblem, ...]


def multiline_strings(data: bytes) -> tuple[tuple[int, int], ...]:
    """Byte ranges of strings that span several lines."""
    if b'"""' not in data and b"'''" not in data:
        return ()
    return tuple(
        match.span()
        for match in _QUOTED.finditer(data)
        if data[match.start()] != _HASH and b"\n" in match.group()
    )


def split(data: bytes) -> tuple[tuple[int, int], ...]:
    """``(start, end)`` of the pieces of a file, in order and without gaps."""
    boundaries = list(_BOUNDARY.finditer(data))
    strings = multiline_strings(data) if _may_be_quoted(data, boundaries) else ()
    starts, index, decorated = [0], 0, False
    for match in boundaries:
        at = match.start()
        while index < len(strings) and strings[index][1] <= at:
            index += 1
        if index < len(strings) and strings[index][0] < at:
            continue
        if not decorated and at > 0:
            starts.append(at)
        decorated = match.group() == b"@"
    return tuple(zip(starts, [*starts[1:], len(data)], strict=True))


def _may_be_quoted(data: bytes, boundaries: list[re.Match[bytes]]) -> bool:
    """False if no boundary stands between two triple quotes, which costs little to see."""
    quotes = [match.start() for match in _TRIPLE.finditer(data)]
    return len(quotes) % 2 == 1 or any(
        bisect.bisect_right(quotes, match.start()) % 2 for match in boundaries
    )


@functools.lru_cache(_CACHED_PIECES)
def read_piece(data: bytes, names: Names, promoted: frozenset[str]) -> Piece:
    """Parse one piece. ``promoted`` are functions that a call elsewhere turns into kernels."""
    source = Source(data)
    functions = source.functions()
    jit = [is_jit_decorator(source, function, names.triton, names.jit) for function in functions]
    device = [
        flag or (function.name in promoted and not function.method)
        for flag, function in zip(jit, functions, strict=True)
    ]
    found = tuple(
        _function(source, function, is_device, names)
        for function, is_device in zip(functions, device, strict=True)
    )
    hosts = tuple(item for item in found if not item.device)
    kernels = tuple(item.span for item in found if item.device)
    launches = tuple(
        FoundLaunch(launch, evident)
        for launch, evident in launches_in(source)
        if not any(kernel.contains(launch.span) for kernel in kernels)
    )
    return Piece(
        functions=found,
        launches=tuple(_with_entry(item, hosts) for item in launches),
        statements=tuple(_statement(source, node) for node in source.root.named_children
                         if node.type != "comment"),
        jit_calls=jit_calls(source, names.triton, names.jit, names.tuners),
        problems=source.problems(),
    )  # fmt: skip


@functools.lru_cache(_CACHED_PIECES)
def place_piece(
    data: bytes, names: Names, promoted: frozenset[str], start: int, line: int
) -> Piece:
    """The piece with all offsets and lines counted from the beginning of the file.

    Host functions of a piece that launches nothing are left out: nobody asks for them, and a file
    has many.
    """
    piece = read_piece(data, names, promoted)
    move = _Move(start, line)
    return Piece(
        tuple(move.function(item) for item in piece.functions if item.device or piece.launches),
        tuple(FoundLaunch(move.launch(item.launch), item.evident) for item in piece.launches),
        tuple(Statement(s.names, move.span(s.span), s.is_import) for s in piece.statements),
        piece.jit_calls,
        tuple(SyntaxProblem(move.span(p.span), p.message) for p in piece.problems),
    )


class _Move:
    """Shifts found things by bytes and lines."""

    def __init__(self, start: int, line: int) -> None:
        self._start = start
        self._line = line

    def span(self, span: Span) -> Span:
        start, line = self._start, self._line
        return Span(span.start + start, span.end + start, span.line + line, span.end_line + line)

    def function(self, item: FoundFunction) -> FoundFunction:
        return FoundFunction(
            item.name, item.qualified_name,
            self.span(item.span), self.span(item.name_span), self.span(item.body),
            tuple(Parameter(p.name, p.constexpr, p.default, p.annotation, self.span(p.span))
                  for p in item.parameters),
            tuple(Decorator(d.name, d.text, self.span(d.span)) for d in item.decorators),
            item.nested, item.conditional, item.method, item.device,
            tuple(Loop(loop.target, loop.header, self.span(loop.span), self.span(loop.body))
                  for loop in item.loops),
            tuple(Operation(o.kind, o.name, o.text, self.span(o.span), o.masked, o.in_loop)
                  for o in item.operations),
            item.calls,
        )  # fmt: skip

    def launch(self, item: Launch) -> Launch:
        arguments = tuple(type(a)(a.name, a.text, self.span(a.span)) for a in item.arguments)
        return Launch(
            item.callee, item.kernel, item.grid, arguments, item.opaque, item.in_loop, item.entry,
            self.span(item.span), self.span(item.arguments_span),
        )  # fmt: skip


def _function(source: Source, function: Function, device: bool, names: Names) -> FoundFunction:
    node = function.node
    name = node.child_by_field_name("name") or node
    body = node.child_by_field_name("body") or node
    loops = loops_in(source, body) if device else ()
    return FoundFunction(
        name=function.name,
        qualified_name=function.qualified_name,
        span=span(function.outer),
        name_span=span(name),
        body=span(body),
        parameters=source.parameters(function),
        decorators=source.decorators(function),
        nested=function.nested,
        conditional=function.conditional,
        method=function.method,
        device=device,
        loops=loops,
        operations=operations_in(source, body, loops, names.language) if device else (),
        calls=called_names(source, body) if device else (),
    )


def _with_entry(found: FoundLaunch, hosts: tuple[FoundFunction, ...]) -> FoundLaunch:
    launch = found.launch
    around = [host for host in hosts if not host.nested and host.body.contains(launch.span)]
    if not around:
        return found
    entry = around[0].qualified_name
    return FoundLaunch(
        Launch(
            launch.callee, launch.kernel, launch.grid, launch.arguments, launch.opaque,
            launch.in_loop, entry, launch.span, launch.arguments_span,
        ),
        found.evident,
    )  # fmt: skip


def _statement(source: Source, node: tree_sitter.Node) -> Statement:
    inner = node
    if node.type == "decorated_definition":
        inner = node.child_by_field_name("definition") or node
    if inner.type in ("function_definition", "class_definition"):
        name = inner.child_by_field_name("name")
        return Statement((source.text(name),) if name is not None else (), span(node), False)
    if "import" in node.type:
        return Statement((), span(node), True)
    if node.type == "expression_statement":
        return Statement(_assigned(source, node), span(node), False)
    names = (first or second for first, second in _COMPOUND.findall(source.text(node)))
    return Statement(tuple(dict.fromkeys(names)), span(node), False)


def _assigned(source: Source, node: tree_sitter.Node) -> tuple[str, ...]:
    names: list[str] = []
    inner = node.named_children[0] if node.named_children else None
    while inner is not None and inner.type in ("assignment", "augmented_assignment"):
        left = inner.child_by_field_name("left")
        names.extend(re.findall(r"[A-Za-z_]\w*", source.text(left)) if left is not None else ())
        inner = inner.child_by_field_name("right")
    return tuple(names)
