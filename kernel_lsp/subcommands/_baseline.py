"""A baseline file: findings that are known, so that only new ones fail.

It counts fingerprints by file, relative to its own folder. Fingerprints hold no line numbers and no
target: a finding that moves, or that a further target shows too, is not new.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from kernel_lsp.subcommands._file_findings import FileFindings
from search_engine.domain.finding import Finding
from search_engine.service import RequestError

VERSION = 1


def write_baseline(path: Path, files: Iterable[FileFindings]) -> int:
    """Write what was found and return how many. Raises RequestError if it cannot be written."""
    known: dict[str, dict[str, int]] = {}
    for file in files:
        counts = Counter({print_: max(c.values()) for print_, c in _counts(file).items()})
        if counts:
            known[_relative(file, path)] = dict(sorted(counts.items()))
    document = {"version": VERSION, "findings": dict(sorted(known.items()))}
    try:
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror or error}") from error
    return sum(sum(counts.values()) for counts in known.values())


class Baseline:
    """What was known when the file was written."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises RequestError if it is not there or not a baseline."""
        self._path = path
        try:
            document: Any = json.loads(path.read_text("utf-8"))
            if document["version"] != VERSION:
                raise RequestError(f"{path}: a baseline of version {document['version']}")
            self._known = cast("dict[str, dict[str, int]]", document["findings"])
            for counts in self._known.values():
                sum(counts.values())
        except OSError as error:
            message = f"{path}: {error.strerror or error}; --write-baseline makes one"
            raise RequestError(message) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RequestError(f"{path}: not a baseline of kernel-lsp") from error

    def new(self, file: FileFindings) -> tuple[Finding, ...]:
        """The findings of a file that are not in the baseline, in their order."""
        left: dict[tuple[str, str | None], int] = {}
        known = self._known.get(_relative(file, self._path), {})
        found: list[Finding] = []
        for item in file.findings:
            key = (file.fingerprint(item), item.target)
            left.setdefault(key, known.get(key[0], 0))
            left[key] -= 1
            if left[key] < 0:
                found.append(item)
        return tuple(found)


def _counts(file: FileFindings) -> dict[str, Counter[str | None]]:
    """How often each fingerprint was found, by target."""
    counts: dict[str, Counter[str | None]] = {}
    for item in file.findings:
        counts.setdefault(file.fingerprint(item), Counter())[item.target] += 1
    return counts


def _relative(file: FileFindings, baseline: Path) -> str:
    return Path(os.path.relpath(file.file.path, baseline.resolve().parent)).as_posix()
