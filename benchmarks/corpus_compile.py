"""Compiles the kernels of the corpora with launches that are inferred from the text.

Each kernel is compiled in a child of one warm process, so that a compiler that crashes or does not
end costs one kernel. One JSON line a kernel is appended at once; kernels that have a line already
are skipped, so a run can be stopped and goes on where it was.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus_packages import Package, files_of
from search_engine.domain.job import AssumedArgument, AssumedLaunch
from search_engine.domain.kernel import Module, Unit
from search_engine.frontends.assumed import assumed_launch
from search_engine.frontends.triton import parse_module
from search_engine.source import make_source

DEADLINE_SECONDS = 120
_LONGEST_MESSAGE = 400
_WARM_UP = """\
import triton
import triton.language as tl

@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One kernel of a corpus; ``key`` is its file below the folder and its name."""

    package: str
    key: str
    module: Module
    unit: Unit


def items(folder: Path, package: Package) -> Iterator[Item]:
    """Every kernel that can be launched, in file order."""
    for path, text in files_of(folder, package):
        module = parse_module(text, str(path))
        where = path.relative_to(folder).as_posix()
        for unit in module.units:
            kernel = unit.kernel
            suffix = f"#{kernel.ordinal}" if kernel.ordinal else ""
            yield Item(package.name, f"{where}::{kernel.qualified_name}{suffix}", module, unit)


def known(file: Path) -> set[str]:
    """Keys that have a line in the file."""
    if not file.exists():
        return set()
    return {json.loads(line)["kernel"] for line in file.read_text().splitlines() if line.strip()}


class Compiler:
    """A warm process that compiles one kernel per child."""

    def __init__(self, target: str, scratch: Path) -> None:
        os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton")
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"
        from search_engine.worker import fake_driver, fake_torch
        from search_engine.worker.assumed import settle

        self._as_cuda, self._settle = fake_torch.cuda_as, settle
        card = fake_driver.CARDS[target]
        fake_torch.install(card)
        self._driver = fake_driver.install(card)
        settle(_warm_up(scratch), _warm_up_launch(), self._driver)

    def line(self, item: Item) -> dict[str, Any]:
        """What came of one kernel."""
        started = time.perf_counter()
        launch = assumed_launch(item.module, item.unit)
        record: dict[str, Any] = {"kernel": item.key, "package": item.package}
        record["inference_ms"] = round((time.perf_counter() - started) * 1e3, 1)
        if isinstance(launch, str):
            return {**record, "outcome": "not assumed", "reason": launch}
        return {**record, **self._in_child(item, launch)}

    def _in_child(self, item: Item, launch: AssumedLaunch) -> dict[str, Any]:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _quiet()
            signal.alarm(DEADLINE_SECONDS)
            os.write(writer, json.dumps(self._compiled(item, launch)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            answer = stream.read()
        _, status = os.waitpid(child, 0)
        if answer:
            found: dict[str, Any] = json.loads(answer)
            return found
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        if late:
            return {"outcome": "too slow", "reason": f"more than {DEADLINE_SECONDS} s"}
        return {"outcome": "crash", "reason": f"the compiler ended with status {status}"}

    def _compiled(self, item: Item, launch: AssumedLaunch) -> dict[str, Any]:
        from search_engine.worker.assumed_module import extract
        from search_engine.worker.attempt import Attempt

        started = time.perf_counter()
        settled = None
        with Attempt() as attempt, self._as_cuda("meta"):
            source = make_source("corpus", Path(item.module.path), item.module.text, "")
            settled = self._settle(extract(source, launch.kernel), launch, self._driver)
        record: dict[str, Any] = {"seconds": round(time.perf_counter() - started, 2)}
        if settled is not None:
            record |= {"outcome": "compiled", "attempts": settled.attempts}
            return {**record, "notes": list(settled.launch.notes)}
        return {**record, "outcome": "refused", "reason": _reason(attempt.error)}


def run(folder: Path, packages: tuple[Package, ...], file: Path, target: str, limit: int) -> None:
    """Append a line for each kernel that has none, ``limit`` kernels a package at most."""
    done = known(file)
    with tempfile.TemporaryDirectory() as scratch, file.open("a") as stream:
        compiler = Compiler(target, Path(scratch))
        for package in packages:
            for count, item in enumerate(items(folder, package)):
                if count >= limit:
                    break
                if item.key not in done:
                    stream.write(json.dumps(compiler.line(item)) + "\n")
                    stream.flush()


def _reason(error: BaseException | None) -> str:
    """The innermost message of a chain of exceptions, in one line."""
    texts: list[str] = []
    while error is not None:
        text = str(getattr(error, "error_message", None) or error).strip()
        texts.append(f"{type(error).__name__}: {text}")
        error = error.__cause__ or error.__context__
    return " ".join(texts[-1].split())[:_LONGEST_MESSAGE] if texts else "unknown"


def _quiet() -> None:
    """Compilers print; what they print is of no use here."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.dup2(null, sys.stderr.fileno())


def _warm_up(scratch: Path) -> Any:
    path = scratch / "warm_up.py"
    path.write_text(_WARM_UP)
    spec = importlib.util.spec_from_file_location("warm_up", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _warm_up_launch() -> AssumedLaunch:
    pointers = [AssumedArgument(name, "*fp32", None, True) for name in ("x", "y")]
    return AssumedLaunch("copy", (*pointers, AssumedArgument("BLOCK", "constexpr", "64")))
