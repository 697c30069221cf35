"""Facts in memory, by what they depend on: the unit's syntax, its workload, the target, the root.

Bounded, so that a day of typing costs no more than an hour. A form of a kernel that comes back
finds its facts here, with no work.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from kernel_lsp.facts.places import KeptFacts, TargetFacts, place
from kernel_lsp.snapshot import Snapshot, UnitView
from search_engine.domain.workload import Workload

KEPT = 300
"""Units times targets; some ten kilobytes each."""

_IGNORE = re.compile(r"#[ \t]*kernel-lsp:[ \t]*ignore[^\n]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """Kept facts, and the ignore comments of the file at that time: their findings are missing."""

    kept: KeptFacts
    ignored: tuple[str, ...]


@dataclass(slots=True)
class FactsStore:
    """All facts of this session that are still kept."""

    _entries: OrderedDict[tuple[str, str], Entry] = field(
        default_factory=OrderedDict[tuple[str, str], Entry]
    )
    _generation: int = 0
    _placed: dict[str, tuple[Snapshot, int, dict[tuple[str, str], TargetFacts]]] = field(
        default_factory=dict[str, tuple[Snapshot, int, dict[tuple[str, str], TargetFacts]]]
    )
    """Placed facts of each open file, for one snapshot and generation of the store."""

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: str, target: str, kept: KeptFacts, ignored: tuple[str, ...]) -> None:
        """Keep facts; former ones of the same unit and target are replaced."""
        self._entries[(key, target)] = Entry(kept, ignored)
        self._entries.move_to_end((key, target))
        self._generation += 1
        while len(self._entries) > KEPT:
            self._entries.popitem(last=False)

    def has(self, key: str, target: str, ignored: tuple[str, ...]) -> bool:
        """True if nothing is missing: not even what an ignore comment hid that is gone now."""
        entry = self._entries.get((key, target))
        if entry is None:
            return False
        return not Counter(entry.ignored) - Counter(ignored)

    def refused(self, key: str, target: str) -> bool:
        """True if it is only known why there are no facts."""
        entry = self._entries.get((key, target))
        return entry is not None and entry.kept.answer.refusal is not None

    def placed(
        self, snapshot: Snapshot, view: UnitView, key: str, target: str
    ) -> TargetFacts | None:
        """Facts with lines and bytes of ``snapshot``; computed once for each snapshot."""
        entry = self._entries.get((key, target))
        if entry is None:
            return None
        self._entries.move_to_end((key, target))
        known = self._placed.get(snapshot.uri)
        if known is None or known[0] is not snapshot or known[1] != self._generation:
            known = (snapshot, self._generation, dict[tuple[str, str], TargetFacts]())
            self._placed[snapshot.uri] = known
        # Two kernels of one text may be equal: the place of the name tells them apart.
        where = (f"{key} {view.unit.kernel.name_span.start}", target)
        if where not in known[2]:
            known[2][where] = place(entry.kept, snapshot, view)
        return known[2][where]

    def forget_file(self, uri: str) -> None:
        """The file was closed; what is known of its units stays."""
        self._placed.pop(uri, None)


def unit_key(view: UnitView, root: str) -> str:
    """What facts of a unit depend on, beside the target and its surroundings."""
    return f"{view.hash} {_workload_key(view.workload)} {root}"


def ignore_texts(snapshot: Snapshot) -> tuple[str, ...]:
    """The ignore comments of a file, as written."""
    if "kernel-lsp:" not in snapshot.text:
        return ()
    return tuple(match.rstrip() for match in _IGNORE.findall(snapshot.text))


@functools.lru_cache(256)
def _workload_key(workload: Workload | None) -> int:
    """Equal for workloads that differ in their lines only."""
    if workload is None:
        return 0
    cases = tuple(dataclasses.replace(case, line=None) for case in workload.cases)
    return hash(dataclasses.replace(workload, cases=cases, references=()))
