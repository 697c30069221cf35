"""What the ladder's economy costs: the chosen candidate against a full measurement of its space.

Runs one search per kernel, then times every candidate that compiled and passed smoke for 20 interleaved
rounds in one process (two passes, in random order) and compares the search's choice with the best of them.
Prints device seconds of the search's screening beside those of the full measurement.

    python benchmarks/regret.py softmax matmul --effort normal --output benchmarks/results/FILE.json
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from search_engine import service  # noqa: E402
from search_engine.domain.codec import encode  # noqa: E402
from search_engine.domain.job import (  # noqa: E402
    Completed,
    Job,
    JobResult,
    Lane,
    Source,
    TimeJob,
    TimeReply,
)
from search_engine.domain.run import Effort  # noqa: E402
from search_engine.domain.statistics import median  # noqa: E402
from search_engine.execution.local import LocalExecutor  # noqa: E402
from search_engine.request import RunRequest, prepare  # noqa: E402

_ROUNDS = 20


class Recording(LocalExecutor):
    """Remembers every version that was timed: those that compiled and passed smoke."""

    timed: dict[str, Source] = {}  # noqa: RUF012 - one run at a time in this program
    case = 0

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        """As the executor."""
        if isinstance(job, TimeJob) and lane is Lane.DEVICE:
            self.timed.update({source.id: source for source in job.sources})
            Recording.case = job.case
        return await super().run(job, lane, deadline_seconds)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--effort", default="normal", choices=[e.value for e in Effort])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    service.LocalExecutor = Recording
    records = [
        asyncio.run(_measure(n, Effort(options.effort), options.python)) for n in options.names
    ]
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(records, indent=1))
    return 0


async def _measure(name: str, effort: Effort, python: str) -> dict[str, object]:
    path = ROOT / "examples" / f"{name}.py"
    request = RunRequest(path, path.read_text(), None, ROOT, python=python, effort=effort)
    Recording.timed = {}
    report = await service.optimize(request, lambda event: None)
    sources = tuple(Recording.timed.values())
    workload = prepare(request).workload
    with tempfile.TemporaryDirectory() as scratch:
        executor = LocalExecutor(python, ROOT, scratch=Path(scratch))
        try:
            passes = [await _full(executor, sources, workload, seed) for seed in (1, 2)]
        finally:
            await executor.close()
    times = {
        s.id: median([us for p in passes for us in p["us"].get(s.id, [])] or [0]) for s in sources
    }
    times = {key: us for key, us in times.items() if us}
    best = min(times, key=lambda key: times[key])
    chosen = report.best.id if report.best is not None else prepare(request).unit.hash
    chosen_us = times.get(chosen) or times[next(iter(times))]
    record: dict[str, object] = {
        "name": name,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]),
        "environment": encode(report.environment),
        "space": len(times),
        "best_us": times[best],
        "chosen_us": chosen_us,
        "regret": chosen_us / times[best] - 1.0,
        "screening_device_seconds": report.spend.screening_device_seconds,
        "full_device_seconds": passes[0]["device_seconds"],
        "outcome": report.outcome.value,
    }
    print(json.dumps(record), flush=True)
    return record


async def _full(executor: LocalExecutor, sources: tuple, workload: object, seed: int) -> dict:
    job = TimeJob(sources, workload, Recording.case, _ROUNDS, True, seed)
    result = await executor.run(job, Lane.DEVICE, 300.0)
    if not isinstance(result, Completed) or not isinstance(result.reply, TimeReply):
        raise SystemExit(f"could not be timed: {result!r}"[:2000])
    reply = result.reply
    return {
        "us": dict(zip(reply.sources, reply.samples_us, strict=True)),
        "device_seconds": reply.device_seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
