"""What a rewrite rule sees and what it answers.

A rule is one file with one class that satisfies ``Rule`` and one line in ``registry.py``. Rules are
pure: the same subject gives the same rewrites. They edit only the spans of the unit. They work on
Python's ``ast``, since a unit that does not parse is never searched; the edits are byte ranges of
the original text, so that comments and formatting elsewhere stay.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Protocol

from search_engine.domain.candidate import Numerics, Rewrite, TextEdit
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.target import Target
from search_engine.domain.workload import Case, TensorArgument, Workload


@dataclass(frozen=True, slots=True)
class Subject:
    """A unit as a rule sees it: the text, its syntax tree, its workload and target.

    ``kernel_node`` and ``entry_node`` are nodes of ``tree``. A rule is only asked when the unit has
    an entry in the same file whose every launch of the kernel is in that file.
    """

    module: Module
    unit: Unit
    tree: ast.Module
    kernel_node: ast.FunctionDef
    entry_node: ast.FunctionDef
    workload: Workload
    target: Target

    @property
    def text(self) -> str:
        """Complete text of the file."""
        return self.module.text

    @property
    def main_case(self) -> Case:
        """The case with the largest weight; the first of equals."""
        return max(self.workload.cases, key=lambda case: case.weight)

    def tensor(self, name: str) -> TensorArgument | None:
        """The tensor argument ``name`` of the main case."""
        for argument in self.main_case.arguments:
            if isinstance(argument, TensorArgument) and argument.name == name:
                return argument
        return None


class Rule(Protocol):
    """A deterministic rewrite."""

    name: str
    """Verb phrase in kebab case: ``tile-strided-store``."""
    numerics: Numerics

    def rewrites(self, subject: Subject) -> tuple[Rewrite, ...]:
        """Every way in which the rule applies here; empty if it does not."""
        ...


class Patch:
    """Collects edits on nodes of one text and turns them into byte ranges."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_starts = _line_starts(text.encode())
        self._edits: list[TextEdit] = []

    def offset(self, line: int, column: int) -> int:
        """Byte offset of an ``ast`` position (1-based line, column in UTF-8 bytes)."""
        return self._line_starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Byte range of a node, decorators not included."""
        start = self.offset(node.lineno, node.col_offset)  # pyright: ignore
        end = self.offset(node.end_lineno, node.end_col_offset)  # pyright: ignore
        return start, end

    def source(self, node: ast.AST) -> str:
        """The text of a node as written."""
        start, end = self.span(node)
        return self._text.encode()[start:end].decode()

    def text_before(self, offset: int) -> str:
        """The text between the start of a byte offset's line and that offset."""
        start = max(begin for begin in self._line_starts if begin <= offset)
        return self._text.encode()[start:offset].decode()

    def text_after(self, offset: int) -> str:
        """The text between a byte offset and the end of its line."""
        return self._text.encode()[offset:].split(b"\n", 1)[0].decode()

    def replace(self, node: ast.AST, new_text: str) -> Patch:
        """Replace a node's text."""
        self._edits.append(TextEdit(*self.span(node), new_text))
        return self

    def replace_range(self, start: int, end: int, new_text: str) -> Patch:
        """Replace a byte range."""
        self._edits.append(TextEdit(start, end, new_text))
        return self

    def replace_body(self, first: ast.stmt, last: ast.stmt, lines: list[str]) -> Patch:
        """Replace the statements from ``first`` to ``last`` by lines at the same indentation."""
        start, end = self.span(first)[0], self.span(last)[1]
        indent = " " * first.col_offset
        self._edits.append(TextEdit(start, end, ("\n" + indent).join(lines)))
        return self

    def insert_before(self, statement: ast.stmt, lines: list[str]) -> Patch:
        """Insert lines before a statement, at its indentation."""
        start, _ = self.span(statement)
        indent = " " * statement.col_offset
        block = "".join(f"{line}\n{indent}" for line in lines)
        self._edits.append(TextEdit(start, start, block))
        return self

    def insert_after(self, statement: ast.stmt, lines: list[str]) -> Patch:
        """Insert lines after a statement, at its indentation."""
        _, end = self.span(statement)
        indent = " " * statement.col_offset
        block = "".join(f"\n{indent}{line}" for line in lines)
        self._edits.append(TextEdit(end, end, block))
        return self

    @property
    def edits(self) -> tuple[TextEdit, ...]:
        """All edits so far, in file order."""
        return tuple(sorted(self._edits, key=lambda edit: (edit.start, edit.end)))


def _line_starts(data: bytes) -> list[int]:
    starts = [0]
    starts.extend(index + 1 for index, byte in enumerate(data) if byte == 0x0A)
    return starts
