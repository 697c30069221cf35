"""Facts of a unit, written to and read from a store with the lines of whatever text is open.

Failures that may pass, such as a deadline, are kept for the life of the process only: asking again
at every edit would take as long every time.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from search_engine.archive.facts_cache import FactsStore, MemoryFacts
from search_engine.archive.facts_lines import LineError, LineMap, PartWords
from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import InstructionCount, LaunchCode, LineCode
from search_engine.domain.codec import decode, encode
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import Module, Unit

_LASTING = frozenset({RefusalKind.COMPILE, RefusalKind.UNSUPPORTED})
"""Refusals that only the text, the target or the interpreter can change."""

_PASSING = frozenset({RefusalKind.ENVIRONMENT})
"""Refusals that are not kept at all: the remedy lies outside the text."""

Entry = TypeVar("Entry", "CodeEntry", "TraceEntry")


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """What the compiler made of one kernel; ``refusal`` where it made nothing."""

    launches: tuple[LaunchCode, ...] = ()
    refusal: Refusal | None = None
    signature: tuple[PartWords, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """What the programs of one kernel ask of memory; ``refusal`` where they did not run."""

    launches: tuple[LaunchTrace, ...] = ()
    refusal: Refusal | None = None
    signature: tuple[PartWords, ...] = ()


class KeptFacts:
    """Entries in a store that lasts, and failures in one that does not."""

    def __init__(self, store: FactsStore) -> None:
        self._lasting = store
        self._process = MemoryFacts()

    def code(self, key: str, module: Module, unit: Unit) -> CodeEntry | None:
        """The entry under ``key`` with lines of ``module``; None if there is none that fits."""
        entry = self._load(key, CodeEntry, module, unit)
        if entry is None:
            return None
        return dataclasses.replace(entry, launches=tuple(_merged(c) for c in entry.launches))

    def trace(self, key: str, module: Module, unit: Unit) -> TraceEntry | None:
        """The entry under ``key`` with lines of ``module``; None if there is none that fits."""
        return self._load(key, TraceEntry, module, unit)

    def save(self, key: str, module: Module, unit: Unit, entry: CodeEntry | TraceEntry) -> None:
        """Keep an entry, unless it speaks of lines elsewhere or of a missing module."""
        refusal = entry.refusal
        if refusal is not None and refusal.kind in _PASSING:
            return
        lasting = refusal is None or (refusal.kind in _LASTING and not refusal.fatal)
        lines = LineMap(module, unit)
        try:
            kept = lines.keep(dataclasses.replace(entry, signature=lines.signature))
        except LineError:
            return
        store = self._lasting if lasting else self._process
        store.put(key, json.dumps(encode(kept), separators=(",", ":")))

    def _load(self, key: str, kind: type[Entry], module: Module, unit: Unit) -> Entry | None:
        text = self._process.get(key) or self._lasting.get(key)
        if text is None:
            return None
        lines = LineMap(module, unit)
        try:
            entry: Entry = decode(kind, json.loads(text))
            return lines.restore(entry) if entry.signature == lines.signature else None
        except (ValueError, TypeError, KeyError, AttributeError):  # another version, or damaged
            return None


def _merged(code: LaunchCode) -> LaunchCode:
    """Lines that a formatter has joined since are one line again."""
    found: dict[tuple[int | None, int], list[InstructionCount]] = {}
    for item in code.lines:
        found.setdefault((item.line, item.loop_depth), []).extend(item.counts)
    if len(found) == len(code.lines):
        return code
    merged = (LineCode(line, depth, _added(counts)) for (line, depth), counts in found.items())
    return dataclasses.replace(code, lines=tuple(merged))


def _added(counts: Iterable[InstructionCount]) -> tuple[InstructionCount, ...]:
    totals: dict[tuple[object, int], InstructionCount] = {}
    for item in counts:
        key = (item.operation, item.width_bytes)
        former = totals.get(key)
        count = item.count + (former.count if former is not None else 0)
        totals[key] = dataclasses.replace(item, count=count)
    return tuple(totals.values())
