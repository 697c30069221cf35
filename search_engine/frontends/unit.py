"""Units: what a candidate may change, and the hash that guards every edit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from search_engine.domain.kernel import Entry, Kernel, Module, Span, Unit, UnitHash
from search_engine.frontends.syntax_digest import Digest, syntax_digest
from search_engine.frontends.triton_pieces import Statement

_NOT_PREFERRED = ("test", "bench", "main", "check", "verify", "profile")
"""Beginnings of names of functions that exercise a kernel rather than offer it."""


def find_unit(module: Module, name: str) -> Unit | None:
    """The unit of a kernel by qualified name, plain name, or the name of its entry."""
    for unit in module.units:
        if unit.kernel.qualified_name == name:
            return unit
    for unit in module.units:
        if unit.kernel.name == name:
            return unit
    for unit in module.units:
        if unit.entry is not None and name in (unit.entry.qualified_name, unit.entry.name):
            return unit
    return None


def unit_hash(module: Module, unit: Unit) -> UnitHash:
    """The hash that ``unit`` has in another version of its module.

    Raises ValueError if its kernel is not there.
    """
    for other in module.units:
        same = other.kernel.qualified_name == unit.kernel.qualified_name
        if same and other.kernel.ordinal == unit.kernel.ordinal:
            return other.hash
    raise ValueError(f"{unit.kernel.qualified_name} is not in {module.path}")


def build_units(
    data: bytes,
    kernels: tuple[Kernel, ...],
    entries: tuple[Entry, ...],
    statements: tuple[Statement, ...],
) -> tuple[Unit, ...]:
    """One unit per launchable kernel, in file order. ``data`` is the UTF-8 text of the file."""
    by_name: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.name, []).append(kernel)
    launching: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in dict.fromkeys(launch.kernel for launch in entry.launches):
            launching.setdefault(name, []).append(entry)
    hasher = _Hasher(data, statements)
    return tuple(
        _unit(kernel, launching.get(kernel.name, []), by_name, hasher)
        for kernel in kernels
        if kernel.launchable
    )


def _unit(
    kernel: Kernel,
    launching: list[Entry],
    by_name: dict[str, list[Kernel]],
    hasher: _Hasher,
) -> Unit:
    entry = _entry_of(launching, hasher)
    helpers = _reached(kernel, by_name)
    launched = dict.fromkeys(launch.kernel for launch in entry.launches) if entry else ()
    siblings: dict[tuple[str, int], Kernel] = {}
    taken = {_key(item) for item in (kernel, *helpers)}
    for name in launched:
        for sibling in by_name.get(name, ()):
            for part in (sibling, *_reached(sibling, by_name)):
                if _key(part) not in taken:
                    siblings[_key(part)] = part
    others = tuple(sorted(siblings.values(), key=lambda item: item.span.start))
    return Unit(kernel, helpers, entry, others, hasher.unit(kernel, helpers, entry, others))


def _key(kernel: Kernel) -> tuple[str, int]:
    return kernel.qualified_name, kernel.ordinal


def _entry_of(launching: list[Entry], hasher: _Hasher) -> Entry | None:
    """The entry that offers the kernel: a declared one first, tests and benchmarks last."""
    if len(launching) < 2:
        return launching[0] if launching else None

    def rank(entry: Entry) -> tuple[bool, bool, int]:
        exercise = entry.name.lstrip("_").lower().startswith(_NOT_PREFERRED)
        return (not hasher.declared(entry.span), exercise, entry.span.start)

    return min(launching, key=rank)


def _reached(kernel: Kernel, by_name: dict[str, list[Kernel]]) -> tuple[Kernel, ...]:
    """Device functions that the kernel calls, directly or not, in file order."""
    found: dict[tuple[str, int], Kernel] = {}
    pending = [kernel]
    while pending:
        for name in pending.pop().calls:
            for callee in by_name.get(name, ()):
                if _key(callee) not in found and _key(callee) != _key(kernel):
                    found[_key(callee)] = callee
                    pending.append(callee)
    return tuple(sorted(found.values(), key=lambda item: item.span.start))


class _Hasher:
    """Hashes units of one text: their parts and every module-level statement these read."""

    def __init__(self, data: bytes, statements: tuple[Statement, ...]) -> None:
        self._data = data
        self._binding: dict[str, list[Statement]] = {}
        for statement in statements:
            for name in statement.names:
                self._binding.setdefault(name, []).append(statement)

    def unit(
        self,
        kernel: Kernel,
        helpers: tuple[Kernel, ...],
        entry: Entry | None,
        siblings: tuple[Kernel, ...],
    ) -> UnitHash:
        """Hash of the unit's syntax; the order of definitions in the file does not count."""
        spans = [part.span for part in (kernel, *helpers, *siblings)]
        if entry is not None:
            spans.append(entry.span)
        digests = [self._digest(span) for span in spans]
        parts = [digests[0].hash, *sorted(digest.hash for digest in digests[1:])]
        parts.extend(sorted(self._read_by(digests, spans)))
        return UnitHash(hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16])

    def declared(self, span: Span) -> bool:
        """True if a workload comment stands directly above."""
        before = self._data[: span.start].rstrip().rsplit(b"\n", 1)[-1]
        return before.lstrip().startswith(b"#") and b"kernel-lsp:" in before

    def _read_by(self, digests: list[Digest], spans: list[Span]) -> set[str]:
        """Hashes of the module-level statements whose names are read, followed to the end."""
        found: dict[int, str] = {}
        pending: list[Iterable[str]] = [digest.names for digest in digests]
        while pending:
            for name in pending.pop():
                for statement in self._binding.get(name, ()):
                    start = statement.span.start
                    inside = any(span.contains(statement.span) for span in spans)
                    if start not in found and not inside and not statement.is_import:
                        digest = self._digest(statement.span)
                        found[start] = digest.hash
                        pending.append(digest.names)
        return set(found.values())

    def _digest(self, span: Span) -> Digest:
        start = self._data.rfind(b"\n", 0, span.start) + 1
        if self._data[start : span.start].strip():
            start = span.start
        return syntax_digest(self._data[start : span.end].decode(errors="replace"))
