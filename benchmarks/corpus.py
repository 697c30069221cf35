"""Runs the Triton front end over a folder of Python files and prints what it finds and how fast.

    python benchmarks/corpus.py FOLDER [FOLDER ...]

Counts are comparable with a count by ``grep``: every ``@triton.jit`` that a parser may miss shows
as a difference between the two columns of the last table.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from search_engine.domain.kernel import Module
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads

_JIT_LINE = re.compile(r"^[ \t]*@(?:triton\.|gluon\.)jit\b", re.M)


def main(arguments: list[str]) -> int:
    """Print the counts; 1 if a file made the front end raise."""
    parser = argparse.ArgumentParser(description="Count what the Triton front end finds.")
    parser.add_argument("folders", nargs="+", type=Path)
    counts: Counter[str] = Counter()
    slowest: list[tuple[float, str]] = []
    missed: list[str] = []
    for path, text in _files(parser.parse_args(arguments).folders):
        start = time.process_time()
        module = parse_module(text, str(path))
        parse_workloads(module)
        slowest.append((time.process_time() - start, f"{path} ({text.count(chr(10))} lines)"))
        found, by_text = _count(module), len(_JIT_LINE.findall(text))
        counts.update(found)
        counts["lines `@triton.jit`"] += by_text
        if by_text > found["kernels and helpers"]:
            missed.append(f"{path}: {by_text} lines, {found['kernels and helpers']} found")
    for name, count in counts.items():
        print(f"{count:8d}  {name}")
    print("\nslowest, CPU milliseconds")
    for seconds, name in sorted(slowest, reverse=True)[:5]:
        print(f"{seconds * 1e3:8.1f}  {name}")
    print("\nfiles with more lines `@triton.jit` than functions found (strings, for the most part)")
    print("\n".join(missed[:20]) or "none")
    return 0


def _files(folders: list[Path]) -> Iterator[tuple[Path, str]]:
    """Python files that name Triton."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if "triton" in text:
                yield path, text


def _count(module: Module) -> Counter[str]:
    launches = module.launches
    return Counter(
        {
            "files that name Triton": 1,
            "files that do not parse": int(bool(module.problems)),
            "kernels and helpers": len(module.kernels),
            "  stacked decorators": sum(len(k.decorators) > 1 for k in module.kernels),
            "  nested": sum(kernel.nested for kernel in module.kernels),
            "  conditional": sum(kernel.conditional for kernel in module.kernels),
            "  never store": sum(not kernel.launchable for kernel in module.kernels),
            "launches": len(launches),
            "  opaque": sum(launch.opaque for launch in launches),
            "  in a host loop": sum(launch.in_loop for launch in launches),
            "  outside functions": sum(launch.entry is None for launch in launches),
            "entries": len(module.entries),
            "  methods": sum(entry.method for entry in module.entries),
            "units": len(module.units),
            "  with an entry": sum(unit.entry is not None for unit in module.units),
        }
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
