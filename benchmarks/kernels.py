"""Optimise every example on a GPU and put it beside its hand-tuned twin and PyTorch.

For each kernel: one search, then baseline, best, twin, eager and ``torch.compile`` in the same
interleaved rounds. One JSON per kernel under the output folder, so that ``--resume`` goes on where
a session ended; the Markdown table is made from all of them.

    python benchmarks/kernels.py --effort quick --output benchmarks/results/DATE-DEVICE [--resume]
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import math
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

from regret import Recording, full_measurement  # noqa: E402

from search_engine import service  # noqa: E402
from search_engine.domain.candidate import candidate_id  # noqa: E402
from search_engine.domain.codec import encode  # noqa: E402
from search_engine.domain.event import (  # noqa: E402
    CandidateEvaluated,
    ImprovementFound,
    SearchEvent,
)
from search_engine.domain.job import (  # noqa: E402
    CheckJob,
    CheckReply,
    CompareJob,
    CompareReply,
    Completed,
    Depth,
    Lane,
)
from search_engine.domain.run import Effort  # noqa: E402
from search_engine.domain.statistics import geometric_mean, median, paired_ratio  # noqa: E402
from search_engine.execution.local import LocalExecutor  # noqa: E402
from search_engine.report import document  # noqa: E402
from search_engine.request import RunRequest, prepare  # noqa: E402
from search_engine.service import optimize  # noqa: E402
from search_engine.source import make_source  # noqa: E402

_ROUNDS = 30
_CAP = 10.0
"""Single ratios are capped before a mean, so that one pathological baseline does not decide it."""


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="examples to run; all by default")
    parser.add_argument("--effort", default="quick", choices=[e.value for e in Effort])
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "latest")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--resume", action="store_true", help="skip kernels that have a result")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing after this")
    parser.add_argument("--regret", action="store_true", help="also time the whole space fully")
    parser.add_argument("--recompare", action="store_true", help="only time stored results again")
    parser.add_argument("--table", action="store_true", help="only print the table")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    service.LocalExecutor = Recording
    for path in [] if options.table else _examples(options.names):
        result = options.output / f"{path.parent.name}.{path.stem}.json"
        if options.resume and result.exists():
            continue
        if options.recompare:
            record = json.loads(result.read_text())
            best = record["best_text"]
            record |= asyncio.run(
                _compare(path, _request(path, Effort.QUICK, ""), best, options.python)
            )
            _write(result, record)
            continue
        if time.monotonic() - started > options.seconds:
            print(f"time is up before {path.stem}; --resume goes on", file=sys.stderr)
            break
        asyncio.run(_measure(path, Effort(options.effort), options.python, options.regret, result))
    table = _table(sorted(options.output.glob("*.json")))
    (options.output / "table.md").write_text(table)
    print(table)
    return 0


def _write(result: Path, record: dict) -> None:
    """Paths are kept as seen from the repository, whatever machine it lay on."""
    result.write_text(json.dumps(record, indent=1).replace(f"{ROOT}/", ""))
    print(_row(record), flush=True)


def _examples(names: list[str]) -> list[Path]:
    found = sorted((ROOT / "examples").glob("*.py")) + sorted(
        (ROOT / "examples" / "controls").glob("*.py")
    )
    return [path for path in found if not names or path.stem in names]


def _request(path: Path, effort: Effort, python: str) -> RunRequest:
    return RunRequest(path, path.read_text(), None, ROOT, python=python, effort=effort)


async def _measure(path: Path, effort: Effort, python: str, regret: bool, result: Path) -> None:
    """One search and one comparison, written at once; then, with ``regret``, the whole space."""
    request = _request(path, effort, python)
    Recording.timed = {}
    moments: dict[str, float] = {}
    trace: list[dict[str, object]] = []
    started = time.monotonic()

    def listen(event: SearchEvent) -> None:
        if isinstance(event, ImprovementFound):
            moments.setdefault("verified" if event.verified else "provisional", _since(started))
        if isinstance(event, CandidateEvaluated) and event.verdict is not None:
            trace.append({"title": event.title, "rung": event.rung.value,
                          "verdict": encode(event.verdict)})  # fmt: skip

    report = await optimize(request, listen)
    moments["end"] = _since(started)
    compared = await _compare(path, request, report.best.text if report.best else None, python)
    record = {
        "name": path.stem,
        "kind": path.parent.name,
        "effort": effort.value,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]),
        "environment": encode(report.environment),
        "moments": moments,
        "report": document(report),
        "best_text": report.best.text if report.best else None,
        "failures": trace,
        **compared,
    }
    _write(result, record)
    if regret:
        workload, own = prepare(request).workload, candidate_id(request.text)
        record["regret"] = await full_measurement(report, own, workload, ROOT, python)
        _write(result, record)


async def _compare(
    path: Path, request: RunRequest, best: str | None, python: str
) -> dict[str, object]:
    """Baseline, best, twin, eager and torch.compile in the same rounds."""
    workload = prepare(request).workload
    twin = ROOT / "examples" / "tuned" / path.name
    sources = [make_source("baseline", path, request.text, workload.entry)]
    if best is not None:
        sources.append(make_source("best", path, best, workload.entry))
    if path.parent.name == "examples" and twin.exists():
        sources.append(make_source("twin", twin, twin.read_text(), workload.entry))
    main = max(range(len(workload.cases)), key=lambda i: (workload.cases[i].weight, -i))
    with tempfile.TemporaryDirectory() as scratch:
        executor = LocalExecutor(python, ROOT, scratch=Path(scratch))
        try:
            job = CompareJob(tuple(sources), workload, main, _ROUNDS, 11)
            result = await executor.run(job, Lane.DEVICE, 180.0)
            twin_check = await _check_twin(executor, sources, workload)
        finally:
            await executor.close()
    if not isinstance(result, Completed) or not isinstance(result.reply, CompareReply):
        return {"comparison_failed": repr(result), "twin_check": twin_check}
    time_reply = result.reply.time
    samples = dict(zip(time_reply.sources, time_reply.samples_us, strict=True))
    return {
        "us": {name: median(values) for name, values in samples.items() if values},
        "ratios": _ratios(samples),
        "comparison_failures": encode(time_reply.failures),
        "tf32": result.reply.tf32,
        "twin_check": twin_check,
    }


async def _check_twin(executor: LocalExecutor, sources: list, workload: object) -> str:
    twin = next((s for s in sources if s.id == "twin"), None)
    if twin is None:
        return "no twin"
    job = CheckJob(sources[0], twin, workload, Depth.SMOKE, 5)
    result = await executor.run(job, Lane.DEVICE, 120.0)
    if isinstance(result, Completed) and isinstance(result.reply, CheckReply):
        return "correct" if result.reply.mismatch is None else repr(result.reply.mismatch)
    return repr(result)


def _ratios(samples: dict[str, tuple[float, ...]]) -> dict[str, tuple[float, float, float]]:
    """Each other version's time over the best's (or the baseline's), paired by round."""
    anchor = samples.get("best") or samples["baseline"]
    return {
        name: paired_ratio(values, anchor, 3)
        for name, values in samples.items()
        if len(values) == len(anchor)
    }


def _since(started: float) -> float:
    return round(time.monotonic() - started, 2)


def _row(record: dict) -> str:
    report, us = record["report"], record.get("us", {})
    speedup = report["speedup"]
    gain = f"{speedup['value']:.2f}x" if speedup else "-"
    times = " ".join(f"{name}={value:.1f}" for name, value in us.items())
    return (
        f"{record['kind']}/{record['name']}: {report['outcome']} {gain} [{report['exit_reason']}] "
        f"{times} moments={record['moments']} {report['message']}"
    )


def _table(paths: list[Path]) -> str:
    records = [json.loads(path.read_text()) for path in paths]
    if not records:
        return "no results\n"
    environment = records[0]["environment"] or {}
    lines = [
        f"# Kernels, {records[0]['date'][:10]}",
        "",
        f"{environment.get('device')}, driver {environment.get('driver')}, "
        f"torch {environment.get('torch')}, triton {environment.get('triton')}; TF32 "
        f"{'on' if any(r.get('tf32') for r in records) else 'off'} for PyTorch matmuls. "
        f"`{records[0]['command']}`",
        "",
        "Times are medians of interleaved rounds with a cold L2, microseconds per call.",
        "",
        "| kernel | outcome | baseline | best | speedup (95 % CI) | twin | twin/best | eager | "
        "compile | roofline | first / verified / end s | device s | candidates |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        *[_line(record) for record in records],
        "",
        *_summary(records),
    ]
    return "\n".join(lines) + "\n"


def _line(record: dict) -> str:
    report, us, moments = record["report"], record.get("us", {}), record["moments"]
    speedup = report["speedup"]
    gain = (
        f"{speedup['value']:.2f} ({speedup['low']:.2f}-{speedup['high']:.2f})" if speedup else "-"
    )
    ratio = record.get("ratios", {}).get("twin")
    fraction = report["roofline_fraction"]
    name = record["name"] if record["kind"] == "examples" else f"control: {record['name']}"
    seconds = " / ".join(_number(moments.get(k)) for k in ("provisional", "verified", "end"))
    cells = [
        name, report["outcome"], *(_number(us.get(k)) for k in ("baseline", "best")), gain,
        _number(us.get("twin")), "-" if not ratio else f"{ratio[0]:.3f}", _number(us.get("eager")),
        _number(us.get("torch.compile")), "-" if fraction is None else f"{fraction:.0%}", seconds,
        _number(report["spend"]["device_seconds"]),
        " ".join(f"{k}:{v}" for k, v in report["candidates"].items()),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _summary(records: list[dict]) -> list[str]:
    twins = [r["ratios"]["twin"][0] for r in records if "twin" in r.get("ratios", {})]
    lines = []
    if twins:
        mean = geometric_mean([min(t, _CAP) for t in twins], [1.0] * len(twins))
        lines.append(f"Geometric mean of twin time over best time: {mean:.3f} ({len(twins)}).")
    for key in ("provisional", "verified", "end"):
        seconds = [r["moments"][key] for r in records if key in r["moments"]]
        if seconds:
            lines.append(f"Median wall seconds to {key}: {median(seconds):.1f} ({len(seconds)}).")
    lines += [
        f"Regret of {r['name']} ({r['effort']}): {r['regret']['regret']:.2%} over "
        f"{r['regret']['space']} candidates; screening "
        f"{r['regret']['screening_device_seconds']:.2f} device seconds, 20 rounds on all "
        f"{r['regret']['full_device_seconds']:.2f} (measured)."
        for r in records
        if "regret" in r
    ]
    spends = [r["report"]["spend"] for r in records]
    full = sum(s["full_evaluation_device_seconds"] for s in spends)
    used = sum(s["screening_device_seconds"] for s in spends)
    if full:
        lines.append(
            f"Screening used {used:.2f} device seconds; 20 rounds on every candidate that passed "
            f"smoke would have used {full:.2f} (computed from measured rounds): {used / full:.0%}."
        )
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    sys.exit(main())
