"""Exercise every device job in this process and print one compact table.

Needs a GPU, torch and triton, and the repository's root on ``PYTHONPATH``; no other package::

    PYTHONPATH=. python3 benchmarks/device_smoke.py [--compare] [softmax row_sum ...]

For each example: the baseline's gate and time, the full check of the kernel against itself and
against its hand-tuned twin, the twin's time in the same rounds, and what seeded faults get.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from search_engine.domain.job import (  # noqa: E402
    BaselineJob,
    CheckJob,
    CompareJob,
    Depth,
    Refusal,
    Source,
    TimeJob,
)
from search_engine.domain.statistics import median, paired_ratio  # noqa: E402
from search_engine.domain.workload import (  # noqa: E402
    Case,
    Distribution,
    Extent,
    Reference,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.worker.attempt import Attempt  # noqa: E402
from search_engine.worker.baseline import baseline  # noqa: E402
from search_engine.worker.compare import compare  # noqa: E402
from search_engine.worker.correctness import check  # noqa: E402
from search_engine.worker.timing import time_sources  # noqa: E402

_ROUNDS = 20
_LINE = re.compile(r"^# kernel-lsp: (workload|reference) (.*)$", re.MULTILINE)
_TENSOR = re.compile(r"(\w+)=(\w+)\[([^\]]*)\](?:\{([^}]*)\})?")
_FAULTS = (
    ("mask one short", r"cols < n_cols\b", "cols < n_cols - 1"),
    ("wrong padding", r'other=-float\("inf"\)', "other=0.0"),
    ("dropped accumulate", r"(\w+) \+= tl\.sum", r"\1 = tl.sum"),
    ("bf16 intermediate", r"tl\.exp\(([^()]*)\)", r"tl.exp((\1).to(tl.bfloat16).to(tl.float32))"),
)


def main() -> int:
    """Run the chosen examples; 1 if a right kernel was refused or a fault escaped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="examples; all by default")
    parser.add_argument("--compare", action="store_true", help="time PyTorch too (compiles it)")
    options = parser.parse_args()
    problems = 0
    for path in sorted((ROOT / "examples").glob("*.py")):
        if options.names and path.stem not in options.names:
            continue
        with Attempt() as attempt:
            problems += _example(path, options.compare)
        if attempt.error is not None:
            problems += 1
            print(
                f"{path.stem:14} ERROR {type(attempt.error).__name__}: {attempt.error}", flush=True
            )
    print(f"{problems} problems")
    return 1 if problems else 0


def _example(path: Path, with_torch: bool) -> int:
    source, workload = _load(path)
    started = time.perf_counter()
    measured = baseline(BaselineJob(source, workload, 1))
    if isinstance(measured, Refusal):
        print(f"{path.stem:14} REFUSED {measured.message}", flush=True)
        return 1
    moved = measured.compulsory_bytes or 0
    share = moved / (measured.median_us * 1e-6) / measured.copy_bandwidth
    print(
        f"{path.stem:14} {measured.median_us:9.1f} us  noise {measured.noise:6.2%}  "
        f"roofline {share:5.1%}  copy {measured.copy_bandwidth / 1e12:.2f} TB/s  "
        f"bf16 {measured.matrix_rate / 1e12:.0f} TFLOP/s  peak {measured.peak_memory_bytes >> 20} "
        f"MiB  deterministic {measured.deterministic}  [{time.perf_counter() - started:.1f} s]",
        flush=True,
    )
    problems = _checked("itself", source, source, workload, wrong=False)
    twin = ROOT / "examples" / "tuned" / path.name
    if twin.exists():
        other, _ = _load(twin)
        problems += _checked("tuned twin", source, other, workload, wrong=False)
        _timed(source, other, workload)
    for name, pattern, replacement in _FAULTS:
        text = re.sub(pattern, replacement, source.text)
        if text != source.text:
            faulty = _source(path, text, source.entry, name)
            problems += _checked(f"fault: {name}", source, faulty, workload, wrong=True)
    if with_torch:
        _compared(source, workload)
    return problems


def _checked(name: str, one: Source, other: Source, workload: Workload, wrong: bool) -> int:
    started = time.perf_counter()
    reply = check(CheckJob(one, other, workload, Depth.FULL, 2))
    seconds = time.perf_counter() - started
    if isinstance(reply, Refusal):
        print(
            f"    {name:24} refused: {reply.kind.value}: {reply.message[:200]}  [{seconds:.1f} s]"
        )
        if reply.fatal:
            raise RuntimeError("the device context is lost")
        return 0 if wrong else 1
    worst = max((item.error for item in reply.comparisons), default=0.0)
    found = reply.mismatch
    print(
        f"    {name:24} {'mismatch' if found else 'ok'}  {len(reply.comparisons)} comparisons, "
        f"error/limit {worst:.3f}, {len(reply.outside_domain)} outside"
        f"{', nondeterministic' if reply.nondeterministic else ''}  [{seconds:.1f} s]",
        flush=True,
    )
    if found is not None:
        print(
            f"        {found.case} ({found.values}) {found.output}{list(found.index)}: "
            f"{found.got:g}, expected {found.expected:g} within {found.limit:g}: {found.reason}"
        )
    if not wrong:
        for reason in reply.outside_domain[:4]:
            print(f"        outside: {reason[:160]}")
    return int((found is not None) != wrong)


def _timed(one: Source, other: Source, workload: Workload) -> None:
    for cold in (True, False):
        started = time.perf_counter()
        reply = time_sources(TimeJob((one, other), workload, 0, _ROUNDS, cold, 3))
        seconds = time.perf_counter() - started
        if isinstance(reply, Refusal) or reply.failures:
            print(f"    timing: {reply}")
            continue
        first, second = reply.samples_us
        value, low, high = paired_ratio(first, second, 1)
        print(
            f"    {'cold' if cold else 'warm'}: {median(first):.1f} -> {median(second):.1f} us, "
            f"{value:.3f}x [{low:.3f}, {high:.3f}], {reply.calls_per_sample} calls a sample  "
            f"[{seconds:.1f} s]",
            flush=True,
        )


def _compared(source: Source, workload: Workload) -> None:
    started = time.perf_counter()
    reply = compare(CompareJob((source,), workload, 0, _ROUNDS, 4))
    if isinstance(reply, Refusal):
        print(f"    compare refused: {reply.message}")
        return
    times = ", ".join(
        f"{name} {median(us):.1f} us" if us else f"{name} failed"
        for name, us in zip(("kernel", "eager", "compiled"), reply.time.samples_us, strict=True)
    )
    print(f"    {times}, tf32 {reply.tf32}  [{time.perf_counter() - started:.1f} s]", flush=True)
    for failure in reply.time.failures:
        print(f"        {failure.source}: {failure.message[:200]}")


def _load(path: Path) -> tuple[Source, Workload]:
    """The example and its declarations, read without the server's own parser and its packages."""
    text = path.read_text()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    lines = [(kind, rest) for kind, rest in _LINE.findall(text)]
    cases = tuple(_case(rest) for kind, rest in lines if kind == "workload")
    references = tuple(Reference(rest, None, None) for kind, rest in lines if kind == "reference")
    entry = functions[-1].name
    workload = Workload(entry, WorkloadSource.DECLARED, cases, references)
    return _source(path, text, entry, "as found"), workload


def _source(path: Path, text: str, entry: str, name: str) -> Source:
    return Source(
        f"{path.parent.name}/{path.stem}: {name}",
        str(path.parent),
        str(path),
        path.stem,
        text,
        entry,
    )


def _case(text: str) -> Case:
    sizes: dict[str, int] = {}
    arguments: list[Any] = []
    for name, dtype, dimensions, values in _TENSOR.findall(text):
        extents = tuple(_extent(part, sizes) for part in dimensions.split(","))
        arguments.append(TensorArgument(name, dtype, extents, _values(values)))
    rest = _TENSOR.sub("", text).split()
    weight = next((float(part[7:]) for part in rest if part.startswith("weight=")), 1.0)
    scalars = [part.split("=", 1) for part in rest if not part.startswith("weight=")]
    arguments += [ScalarArgument(name, value) for name, value in scalars]
    return Case(tuple(arguments), weight)


def _extent(text: str, sizes: dict[str, int]) -> Extent:
    name, _, size = text.strip().rpartition(":")
    if not name and not size.isdecimal():
        name, size = size, str(sizes[size])
    if name:
        sizes[name] = int(size)
    return Extent(int(size), name or None)


def _values(text: str) -> Values:
    if ".." in text:
        low, high = text.split("..")
        return Values(Distribution.INTEGERS, (float(low), float(high)))
    match = re.fullmatch(r"normal(?:\*([\d.]+))?(?:\+([\d.]+))?", text or "normal")
    assert match is not None, text
    return Values(Distribution.NORMAL, (float(match.group(1) or 1), float(match.group(2) or 0)))


if __name__ == "__main__":
    raise SystemExit(main())
