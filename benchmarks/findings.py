"""Does acting on a finding move the measured time in the direction that it predicts?

For every kernel with a workload: its findings for the device's target, and for each finding that
names a rewrite rule the best of that rule's rewrites (each with a few configurations), checked and
timed against the kernel as found in the same interleaved rounds. Where a file ``NAME_bad.py`` has a
``NAME_good.py`` beside it, the good one is timed too: both entries must take the same arguments.

    python benchmarks/findings.py --output benchmarks/results/NAME [--resume] [FILES]

Without a GPU, ``--dry`` prints what would be timed.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from search_engine.archive.facts_cache import MemoryFacts  # noqa: E402
from search_engine.archive.facts_key import module_context  # noqa: E402
from search_engine.diagnose import facts_findings  # noqa: E402
from search_engine.domain.candidate import Candidate, Numerics, candidate_id  # noqa: E402
from search_engine.domain.finding import Finding  # noqa: E402
from search_engine.domain.job import (  # noqa: E402
    CheckJob,
    CheckReply,
    CompileJob,
    CompileReply,
    Completed,
    Depth,
    Lane,
    ProbeJob,
    ProbeReply,
    Source,
    TimeJob,
    TimeReply,
)
from search_engine.domain.statistics import median, paired_ratio  # noqa: E402
from search_engine.domain.workload import Workload  # noqa: E402
from search_engine.execution.local import LocalExecutor  # noqa: E402
from search_engine.facts import Asked, FactsGatherer  # noqa: E402
from search_engine.frontends.triton import parse_module  # noqa: E402
from search_engine.frontends.unit import find_unit  # noqa: E402
from search_engine.proposers.context import Context  # noqa: E402
from search_engine.proposers.registry import (  # noqa: E402
    configuration_proposers,
    structure_proposers,
)
from search_engine.request import RequestError, RunRequest, all_workloads, prepare  # noqa: E402
from search_engine.source import make_source  # noqa: E402
from search_engine.targets.registry import target_named  # noqa: E402

_UNEQUAL = "another result: only with permission"
CASES = ROOT / "tests" / "search_engine" / "findings" / "cases"
_SCREENING, _ROUNDS = 3, 20
_CONFIGURATIONS = 3
_MOST_VARIANTS = 12


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "latest")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing after this")
    parser.add_argument("--resume", action="store_true", help="skip files that have a result")
    parser.add_argument("--dry", action="store_true", help="time nothing")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    files = options.files or sorted((ROOT / "examples").glob("*.py")) + sorted(
        CASES.glob("*_bad.py")
    )
    asyncio.run(_all(files, options))
    text = table(sorted(options.output.glob("*.json")))
    (options.output / "table.md").write_text(text)
    print(text)
    return 0


async def _all(files: list[Path], options: argparse.Namespace) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        executor = LocalExecutor(options.python, ROOT, scratch=Path(scratch), compile_workers=8)
        try:
            environment = await _probe(executor)
            for path in files:
                result = options.output / f"{path.stem}.json"
                if options.resume and result.exists():
                    continue
                if time.monotonic() - started > options.seconds:
                    print(f"time is up before {path.stem}; --resume goes on", file=sys.stderr)
                    break
                began = time.monotonic()
                try:
                    record = await Kernel(path.resolve(), executor, environment, options).measure()
                except (RequestError, AssertionError, KeyError) as error:
                    print(f"{path.stem}: not measured: {error!r}", flush=True)
                    continue
                result.write_text(json.dumps(record, indent=1).replace(f"{ROOT}/", ""))
                seconds = time.monotonic() - began
                print(f"{path.stem} {seconds:.1f} s", json.dumps(record["rows"])[:300], flush=True)
        finally:
            await executor.close()


async def _probe(executor: LocalExecutor) -> dict[str, str | None]:
    result = await executor.run(ProbeJob(), Lane.DEVICE, 120.0)
    assert isinstance(result, Completed) and isinstance(result.reply, ProbeReply), result
    device = result.reply.devices[0] if result.reply.devices else None
    return {
        "device": device.name if device else None,
        "driver": device.driver if device else None,
        "target": device.target if device else "sm_90",
        "torch": result.reply.torch,
        "triton": result.reply.triton,
        "python": result.reply.python,
    }


class Kernel:
    """One file: its findings, the rewrites that answer them, and their times."""

    def __init__(
        self, path: Path, executor: LocalExecutor, environment: dict, options: argparse.Namespace
    ) -> None:
        self._path, self._executor, self._environment = path, executor, environment
        self._options = options
        text = path.read_text()
        self._prepared = prepare(RunRequest(path, text, None, ROOT, python=options.python))
        self._target = target_named(environment["target"])
        workload = self._prepared.workload
        self._case = max(range(len(workload.cases)), key=lambda i: (workload.cases[i].weight, -i))
        self._baseline = make_source(candidate_id(text), path, text, workload.entry)

    async def measure(self) -> dict[str, object]:
        """The record of this file."""
        findings = [f for f in await self._findings() if f.code.startswith(("KL1", "KL2"))]
        rows = []
        for rule in dict.fromkeys(f.rule for f in findings if f.rule):
            named = [f for f in findings if f.rule == rule]
            rows.append(await self._row(named, f"rule {rule}", self._variants(rule)))
        good = self._path.with_name(self._path.name.replace("_bad.py", "_good.py"))
        if good != self._path and good.exists():
            text, entry = good.read_text(), self._prepared.workload.entry
            source = make_source(candidate_id(text), good, text, entry)
            rows.append(await self._row(findings, "the good form", (source,)))
        return {
            "file": self._path.relative_to(ROOT).as_posix(),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": "python benchmarks/findings.py",
            "environment": self._environment,
            "findings": [_shown(f) for f in findings],
            "rows": rows,
        }

    async def _findings(self) -> tuple[Finding, ...]:
        prepared = self._prepared
        workloads, _ = all_workloads(prepared.module, ROOT)
        slots = asyncio.Semaphore(8)
        gatherer = FactsGatherer(self._executor, MemoryFacts(), "benchmark", slots)
        context = module_context(prepared.module, ROOT)
        asked = Asked(prepared.module, context, workloads, self._target.name)
        (facts,) = await gatherer.gather(asked, (prepared.unit,))
        return facts_findings(prepared.module, facts)

    def _variants(self, rule: str) -> tuple[Source, ...]:
        """Rewrites of the rule, each with a few configurations."""
        text, workload = self._prepared.request.text, self._prepared.workload
        identity = candidate_id(text)
        node = Candidate(identity, text, None, identity, "user", (), (), (), Numerics.EXACT)
        rng = random.Random(0)
        made: list[Candidate] = []
        for proposer in structure_proposers((rule,)):
            for rewrite in proposer.propose(self._context(node), rng):
                made.append(rewrite)
                for configure in configuration_proposers(_CONFIGURATIONS):
                    made.extend(configure.propose(self._context(rewrite), rng))
        return tuple(
            make_source(c.id, self._path, c.text, workload.entry) for c in made[:_MOST_VARIANTS]
        )

    def _context(self, node: Candidate) -> Context:
        module = parse_module(node.text, str(self._path))
        unit = find_unit(module, self._prepared.unit.kernel.qualified_name)
        assert unit is not None
        return Context(node, module, unit, self._prepared.workload, self._target)

    async def _row(
        self, findings: list[Finding], answer: str, variants: tuple[Source, ...]
    ) -> dict[str, object]:
        row: dict[str, object] = {
            "findings": [f"{f.code} {f.name}" for f in findings],
            "answer": answer,
            "predicted_share": max((f.cost for f in findings), default=0.0),
            "variants": len(variants),
        }
        if self._options.dry or not variants:
            return row
        compiling = [v for v in variants if await self._compiles(v)]
        if not compiling:
            return row | {"problem": "no variant compiles"}
        screened = await self._time((self._baseline, *compiling), _SCREENING)
        samples = _by_source(screened)
        order = sorted(
            (v for v in compiling if samples.get(v.id)), key=lambda v: median(samples[v.id])
        )
        problems = {best.id: await self._wrong(best) for best in order[:4]}
        right = [best for best in order[:4] if problems[best.id] is None]
        if not order:
            return row | {"problem": "no variant could be timed"}
        best = (right or order)[0]
        final = _by_source(await self._time((self._baseline, best), _ROUNDS))
        ratio = paired_ratio(final[self._baseline.id], final[best.id], 3)
        return row | {
            "baseline_us": median(final[self._baseline.id]),
            "best_us": median(final[best.id]),
            "speedup": ratio[0], "low": ratio[1], "high": ratio[2],
            "equal": problems[best.id] is None, "difference": problems[best.id],
        }  # fmt: skip

    async def _compiles(self, source: Source) -> bool:
        job = CompileJob(source, self._workload(), self._case, self._target.name)
        result = await self._executor.run(job, Lane.COMPILE, 60.0)
        return isinstance(result, Completed) and isinstance(result.reply, CompileReply)

    async def _wrong(self, source: Source) -> str | None:
        job = CheckJob(self._baseline, source, self._workload(), Depth.SMOKE, 3)
        result = await self._executor.run(job, Lane.DEVICE, 120.0)
        if isinstance(result, Completed) and isinstance(result.reply, CheckReply):
            return None if result.reply.mismatch is None else repr(result.reply.mismatch)
        return repr(result)[:500]

    async def _time(self, sources: tuple[Source, ...], rounds: int) -> TimeReply:
        job = TimeJob(sources, self._workload(), self._case, rounds, True, 5)
        result = await self._executor.run(job, Lane.DEVICE, 180.0)
        if not isinstance(result, Completed) or not isinstance(result.reply, TimeReply):
            return TimeReply((), (), (), 0, (), 0.0)
        return result.reply

    def _workload(self) -> Workload:
        return self._prepared.workload


def _by_source(reply: TimeReply) -> dict[str, tuple[float, ...]]:
    return dict(zip(reply.sources, reply.samples_us, strict=True))


def _shown(finding: Finding) -> dict[str, object]:
    return {"line": finding.line + 1, "code": finding.code, "name": finding.name,
            "message": finding.message, "cost": finding.cost, "rule": finding.rule}  # fmt: skip


def table(paths: list[Path]) -> str:
    """Markdown of all records."""
    records = [json.loads(path.read_text()) for path in paths]
    if not records:
        return "no results\n"
    environment = records[0]["environment"]
    rows = [_line(record, row) for record in records for row in record["rows"]]
    timed = [row for record in records for row in record["rows"] if "speedup" in row]
    right = sum(row["low"] > 1.0 for row in timed)
    return "\n".join([
        f"# Findings, predicted and measured, {records[0]['date'][:10]}", "",
        f"{environment['device']}, driver {environment['driver']}, torch {environment['torch']}, "
        f"triton {environment['triton']}. `python benchmarks/findings.py`. Predicted is the "
        "largest share of the time at stake that the findings name; measured is the kernel as "
        "found over the answered one, 20 interleaved rounds with a cold L2.", "",
        "| file | findings | answer | share at stake | baseline us | best us | measured | note |",
        "|---|---|---|---|---|---|---|---|", *rows, "",
        f"{right} of {len(timed)} answers are faster beyond their interval.",
    ]) + "\n"  # fmt: skip


def _line(record: dict, row: dict) -> str:
    measured = "-"
    if "speedup" in row:
        measured = f"{row['speedup']:.2f}x ({row['low']:.2f}-{row['high']:.2f})"
    cells = [
        Path(record["file"]).stem, ", ".join(dict.fromkeys(row["findings"])), row["answer"],
        f"{row['predicted_share']:.0%}", _us(row.get("baseline_us")), _us(row.get("best_us")),
        measured, row.get("problem") or ("" if row.get("equal", True) else _UNEQUAL),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    sys.exit(main())
