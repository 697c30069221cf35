"""Locations in the text of MLIR modules, as chains of places from the innermost call outwards."""

from __future__ import annotations

import re

from search_engine.worker.code_places import Place

_DEFINITION = re.compile(r"^(#loc\w*) = loc\((.*)\)\s*$")
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED = re.compile(r'^"(?:[^"\\]|\\.)*"\((.*)\)$', re.S)
_CALL = re.compile(r"^callsite\((.*)\)$", re.S)
_FUSED = re.compile(r"^fused(?:<.*?>)?\[(.*)\]$", re.S)


class Places:
    """The locations that a module's text defines."""

    def __init__(self, text: str) -> None:
        found = (_DEFINITION.match(row) for row in text.split("\n"))
        self._definitions = {match[1]: match[2] for match in found if match}
        self._known: dict[str, tuple[Place, ...]] = {}

    def chain(self, location: str) -> tuple[Place, ...]:
        """Places of what stands between the brackets of ``loc(...)``; empty if unknown."""
        location = location.strip()
        if location not in self._known:
            self._known[location] = ()  # ends a definition that refers to itself
            self._known[location] = self._resolved(location)
        return self._known[location]

    def _resolved(self, location: str) -> tuple[Place, ...]:
        if location in self._definitions:
            return self.chain(self._definitions[location])
        if match := _FILE.match(location):
            return ((match[1], int(match[2])),)
        if match := _NAMED.match(location):
            return self.chain(match[1])
        if match := _CALL.match(location):
            callee, caller = _split(match[1], " at ")
            return self.chain(callee) + self.chain(caller)
        if match := _FUSED.match(location):
            parts = (self.chain(part) for part in match[1].split(", "))
            return next((part for part in parts if part), ())
        return ()


def _split(text: str, separator: str) -> tuple[str, str]:
    """Both sides of a separator that stands outside brackets."""
    depth = 0
    for index, sign in enumerate(text):
        depth += (sign in "([<") - (sign in ")]>")
        if depth == 0 and text.startswith(separator, index):
            return text[:index], text[index + len(separator) :]
    return text, ""
