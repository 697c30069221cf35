"""Machine code as documents: read-only files in the state folder, and their texts in memory.

An editor that shows texts of a server opens ``kernel-listing:`` documents; every other one opens
the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp.snapshot import Snapshot
from search_engine.domain.facts_message import ListingFound

SCHEME = "kernel-listing"

FILES_KEPT, TEXTS_KEPT = 50, 8
"""A listing can be a megabyte."""


@dataclass(frozen=True, slots=True)
class ListingPlace:
    """One listing as a file and as a virtual document, and the row to show."""

    path: Path
    uri: str
    row: int


@dataclass(slots=True)
class Listings:
    """Listings that were shown."""

    folder: Path
    _texts: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])

    def keep(self, found: ListingFound, snapshot: Snapshot) -> ListingPlace:
        """Write a listing; a former one of the same kernel, file and target is replaced.

        Slow; safe in a thread. What cannot be written can still be shown from memory.
        """
        name = _name(found, snapshot)
        heading = f"// {found.kernel} for {found.target}, from {snapshot.path}\n\n"
        row = 0 if found.row is None else found.row + heading.count("\n")
        place = ListingPlace(self.folder / name, f"{SCHEME}:/{name}", row)
        text = heading + found.text
        self._texts[place.uri] = text
        self._texts.move_to_end(place.uri)
        while len(self._texts) > TEXTS_KEPT:
            self._texts.popitem(last=False)
        with contextlib.suppress(OSError):
            self._write(place.path, text)
            self._forget_old()
        return place

    def text(self, uri: str) -> str | None:
        """The text of a virtual document; None if it is not kept any more."""
        return self._texts.get(uri)

    def _write(self, path: Path, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(text.encode(errors="replace"))
        made = Path(file.name)
        made.chmod(0o444)
        made.replace(path)

    def _forget_old(self) -> None:
        files = sorted(self.folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        for file in files[:-FILES_KEPT]:
            file.unlink(missing_ok=True)


def _name(found: ListingFound, snapshot: Snapshot) -> str:
    kernel = re.sub(r"[^\w.-]+", "_", found.kernel)[:80]
    suffix = "amdgcn" if found.target.startswith("gfx") else "sass"
    mark = hashlib.sha256(snapshot.path.encode(errors="replace")).hexdigest()[:8]
    return f"{kernel}.{mark}.{found.target}.{suffix}"
