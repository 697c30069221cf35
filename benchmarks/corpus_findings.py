"""Runs every check on the kernels of the corpora, compiled with inferred launches.

Goes through the same door as ``kernel-lsp diagnose``: the facts of each kernel come from a compile
worker, and what the checks make of them is written as one JSON line a kernel, with an excerpt of
the source, for a person to judge. Resumable as the compile part is.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus_compile import Item, items, known
from benchmarks.corpus_packages import Package
from search_engine.archive.facts_cache import MemoryFacts
from search_engine.diagnose import facts_findings
from search_engine.domain.finding import Finding
from search_engine.execution.local import LocalExecutor
from search_engine.facts import Asked, FactsGatherer

_EXCERPT_LINES = 2
"""Lines above and below a finding's own."""


def run(folder: Path, packages: tuple[Package, ...], file: Path, target: str, limit: int) -> None:
    """Append a line for each kernel that has none, ``limit`` kernels a package at most."""
    asyncio.run(_run(folder, packages, file, target, limit))


async def _run(
    folder: Path, packages: tuple[Package, ...], file: Path, target: str, limit: int
) -> None:
    done = known(file)
    with tempfile.TemporaryDirectory() as scratch, file.open("a") as stream:
        env = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        executor = LocalExecutor(sys.executable, folder, env, scratch=Path(scratch))
        gatherer = FactsGatherer(executor, MemoryFacts(), "corpus", asyncio.Semaphore(1))
        try:
            for package in packages:
                for count, item in enumerate(items(folder, package)):
                    if count >= limit:
                        break
                    if item.key not in done:
                        line = await _line(gatherer, item, target, folder)
                        stream.write(json.dumps(line) + "\n")
                        stream.flush()
        finally:
            await executor.close()


async def _line(gatherer: FactsGatherer, item: Item, target: str, folder: Path) -> dict[str, Any]:
    started = time.monotonic()
    asked = Asked(item.module, item.key, (), target)
    (facts,) = await gatherer.gather(asked, [item.unit])
    found = facts_findings(item.module, facts, everything=True)
    return {
        "kernel": item.key,
        "package": item.package,
        "compiled": bool(facts.launches),
        "seconds": round(time.monotonic() - started, 2),
        "refusal": facts.refusal.message if facts.refusal is not None else None,
        "notes": list(facts.notes),
        "findings": [_described(item, finding, folder) for finding in found],
    }


def _described(item: Item, finding: Finding, folder: Path) -> dict[str, Any]:
    lines = item.module.text.splitlines()
    first = max(0, finding.line - _EXCERPT_LINES)
    last = min(len(lines), finding.end_line + _EXCERPT_LINES + 1)
    return {
        "path": Path(item.module.path).relative_to(folder).as_posix(),
        "kernel": finding.kernel,
        "code": finding.code,
        "name": finding.name,
        "line": finding.line + 1,
        "severity": finding.severity.value,
        "cost": round(finding.cost, 3),
        "message": finding.message,
        "excerpt": [f"{n + 1}: {lines[n]}" for n in range(first, last)],
    }
