"""Compiles and traces files for real and runs every check over them.

One compile worker and one trace worker serve all files, since starting one costs more than a file.
``python case_runs.py FILE...`` prints what is found in the files.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from search_engine.domain.finding import Finding
from search_engine.domain.job import (
    Completed,
    InspectJob,
    InspectReply,
    Job,
    Lane,
    Refusal,
    TraceJob,
    TraceReply,
)
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.workload import Workload
from search_engine.execution.local import LocalExecutor
from search_engine.findings._base import Subject
from search_engine.findings.registry import CHECKS
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.source import make_source
from search_engine.targets.registry import target_named

Replies = tuple[InspectReply | Refusal, TraceReply | Refusal]


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A file with one workload for each of its entries, and what was found in it."""

    path: Path
    subjects: tuple[Subject, ...]
    problems: tuple[str, ...]
    """What could not be compiled or traced."""

    def findings(self) -> list[Finding]:
        """Of every check over every kernel."""
        return [f for subject in self.subjects for check in CHECKS for f in check.findings(subject)]


def run_files(paths: Sequence[Path], scratch: Path, target: str = "sm_90") -> dict[Path, CaseFile]:
    """All files by their path."""
    return asyncio.run(_run_files(paths, scratch, target))


async def _run_files(paths: Sequence[Path], scratch: Path, target: str) -> dict[Path, CaseFile]:
    executor = LocalExecutor(
        sys.executable,
        scratch,
        scratch=scratch / "scratch",
        cache_folder=scratch / "cache",
        nice=0,
    )
    try:
        files = await asyncio.gather(*(_run_file(executor, path, target) for path in paths))
    finally:
        await executor.close()
    return {file.path: file for file in files}


async def _run_file(executor: LocalExecutor, path: Path, target: str) -> CaseFile:
    module = parse_module(path.read_text(), str(path))
    workloads, problems = parse_workloads(module)
    workloads = tuple(item for item in workloads if item.cases)
    replies = await asyncio.gather(*(_ask(executor, module, w, target) for w in workloads))
    asked = {w.entry: (w, reply) for w, reply in zip(workloads, replies, strict=True)}
    subjects = tuple(
        _subject(module, unit, target, *asked[unit.entry.qualified_name])
        for unit in module.units
        if unit.entry is not None and unit.entry.qualified_name in asked
    )
    refusals = [r.message for reply in replies for r in reply if isinstance(r, Refusal)]
    return CaseFile(path, subjects, (*(p.message for p in problems), *refusals))


async def _ask(executor: LocalExecutor, module: Module, workload: Workload, target: str) -> Replies:
    path = Path(module.path)
    source = make_source(path.stem, path, module.text, workload.entry)
    inspected, traced = await asyncio.gather(
        _reply(executor, InspectJob(source, workload, 0, target), Lane.COMPILE),
        _reply(executor, TraceJob(source, workload, 0), Lane.INTERPRET),
    )
    assert isinstance(inspected, InspectReply | Refusal)
    assert isinstance(traced, TraceReply | Refusal)
    return inspected, traced


async def _reply(executor: LocalExecutor, job: Job, lane: Lane) -> object:
    result = await executor.run(job, lane, 120)
    assert isinstance(result, Completed), result
    return result.reply


def _subject(
    module: Module, unit: Unit, target: str, workload: Workload, replies: Replies
) -> Subject:
    inspected, traced = replies
    names = (unit.kernel.name, unit.kernel.qualified_name)
    launches = inspected.launches if isinstance(inspected, InspectReply) else ()
    traces = traced.launches if isinstance(traced, TraceReply) else ()
    return Subject(
        module,
        unit,
        target_named(target),
        workload,
        workload.cases[0],
        tuple(item for item in launches if item.facts.kernel in names),
        tuple(item for item in traces if item.kernel in names),
    )


def expected(text: str) -> Iterator[tuple[int, str]]:
    """Lines and codes of ``# expect: KL106`` comments at the ends of lines."""
    for line, row in enumerate(text.splitlines()):
        _, marked, codes = row.partition("# expect:")
        for code in codes.split() if marked else ():
            yield line, code


def _main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        target = next((a for a in sys.argv[1:] if a in ("sm_80", "sm_89", "gfx942")), "sm_90")
        paths = [Path(a).resolve() for a in sys.argv[1:] if a.endswith(".py")]
        for path, file in run_files(paths, Path(scratch), target).items():
            print(f"== {path}", *file.problems)
            for item in sorted(file.findings(), key=lambda f: -f.cost):
                rule = f" [{item.rule}]" if item.rule else ""
                print(f"  {item.cost:.2f} {item.line + 1}: {item.code} {item.message}{rule}")


if __name__ == "__main__":
    _main()
