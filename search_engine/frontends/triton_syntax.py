"""Tree-sitter access for Python text: one piece of a file, its functions, spans and problems.

Nodes are found by a regular expression over the bytes and one look-up in the tree, which is ten
times cheaper than visiting every node from Python.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import tree_sitter
import tree_sitter_python

from search_engine.domain.kernel import Decorator, Parameter, Span, SyntaxProblem

_LANGUAGE = tree_sitter.Language(tree_sitter_python.language())
_DEF = re.compile(rb"\bdef\b")
_CONDITIONS = frozenset({"if_statement", "try_statement", "match_statement", "with_statement"})


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One ``def`` with its surroundings. ``scopes`` are the enclosing classes and functions."""

    node: tree_sitter.Node
    outer: tree_sitter.Node
    """The decorated definition, or ``node`` itself."""
    name: str
    scopes: tuple[tuple[str, bool], ...]
    """``(name, is a function)``, outermost first."""
    conditional: bool

    @property
    def qualified_name(self) -> str:
        """Dotted path of classes, functions and the name."""
        return ".".join([*(name for name, _ in self.scopes), self.name])

    @property
    def nested(self) -> bool:
        """True inside another function."""
        return any(is_function for _, is_function in self.scopes)

    @property
    def method(self) -> bool:
        """True directly in a class."""
        return bool(self.scopes) and not self.scopes[-1][1]


class Source:
    """One piece of Python text as a syntax tree. All offsets are bytes of the piece."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.root = tree_sitter.Parser(_LANGUAGE).parse(data).root_node

    def text(self, node: tree_sitter.Node) -> str:
        """The source of a node as written."""
        return self.slice(node.start_byte, node.end_byte)

    def slice(self, start: int, end: int) -> str:
        """Text of a byte range."""
        return self.data[start:end].decode(errors="replace")

    def leaf(self, offset: int) -> tree_sitter.Node | None:
        """The smallest node over the byte at ``offset``."""
        return self.root.descendant_for_byte_range(offset, offset + 1)

    def functions(self) -> tuple[Function, ...]:
        """All function definitions in file order."""
        found = (self._function(match.start()) for match in _DEF.finditer(self.data))
        return tuple(function for function in found if function is not None)

    def decorators(self, function: Function) -> tuple[Decorator, ...]:
        """Decorators, outermost first."""
        nodes = [child for child in function.outer.children if child.type == "decorator"]
        return tuple(
            Decorator(
                self._decorator_name(node), self.text(node).removeprefix("@").strip(), span(node)
            )
            for node in nodes
        )

    def parameters(self, function: Function) -> tuple[Parameter, ...]:
        """Parameters as written; ``*args`` and ``**kwargs`` keep their stars."""
        listed = function.node.child_by_field_name("parameters")
        if listed is None:
            return ()
        found = (self._parameter(child) for child in listed.named_children)
        return tuple(parameter for parameter in found if parameter is not None)

    def problems(self) -> tuple[SyntaxProblem, ...]:
        """The first place where the text does not parse, in the words of Python's own parser."""
        if not self.root.has_error:
            return ()
        try:
            ast.parse(self.data)
        except SyntaxError as error:
            return (self._problem(error),)
        except (ValueError, RecursionError, MemoryError) as error:
            return (SyntaxProblem(span(self.root), f"this does not parse: {error}"),)
        return ()

    def _problem(self, error: SyntaxError) -> SyntaxProblem:
        lines = self.data.split(b"\n")
        line = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
        before = lines[line].decode(errors="replace")[: max((error.offset or 1) - 1, 0)]
        width = len(before.encode())
        start = sum(len(item) + 1 for item in lines[:line]) + min(width, len(lines[line]))
        end = max(min(start + 1, len(self.data)), start)
        return SyntaxProblem(Span(start, end, line, line), f"this does not parse: {error.msg}")

    def _function(self, offset: int) -> Function | None:
        leaf = self.leaf(offset)
        node = leaf.parent if leaf is not None and leaf.type == "def" else None
        name = node.child_by_field_name("name") if node is not None else None
        if node is None or name is None or node.type != "function_definition":
            return None
        outer, scopes, conditional = node, list[tuple[str, bool]](), False
        parent = node.parent
        if parent is not None and parent.type == "decorated_definition":
            outer = parent
        while parent is not None:
            if parent.type in ("function_definition", "class_definition"):
                scope = parent.child_by_field_name("name")
                label = self.text(scope) if scope is not None else ""
                scopes.append((label, parent.type == "function_definition"))
            conditional = conditional or parent.type in _CONDITIONS
            parent = parent.parent
        return Function(node, outer, self.text(name), tuple(reversed(scopes)), conditional)

    def _decorator_name(self, node: tree_sitter.Node) -> str:
        inner = node.named_children[0] if node.named_children else None
        while inner is not None and inner.type == "call":
            inner = inner.child_by_field_name("function")
        return "" if inner is None else "".join(self.text(inner).split())

    def _parameter(self, node: tree_sitter.Node) -> Parameter | None:
        name: tree_sitter.Node | None = node
        if node.type in ("default_parameter", "typed_default_parameter"):
            name = node.child_by_field_name("name")
        elif node.type == "typed_parameter":
            name = node.named_children[0] if node.named_children else None
        if name is None or name.type not in (
            "identifier", "list_splat_pattern", "dictionary_splat_pattern",
        ):  # fmt: skip
            return None
        default = node.child_by_field_name("value")
        kind = node.child_by_field_name("type")
        annotation = self.text(kind) if kind is not None else None
        return Parameter(
            self.text(name),
            annotation is not None and annotation.strip("\"' ").endswith("constexpr"),
            self.text(default) if default is not None else None,
            annotation,
            span(node),
        )


def span(node: tree_sitter.Node) -> Span:
    """Byte range and lines of a node."""
    return Span(node.start_byte, node.end_byte, node.start_point[0], node.end_point[0])
