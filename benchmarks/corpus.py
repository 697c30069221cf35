"""Public packages with Triton kernels as a test: what is found, what compiles, what is reported.

    python benchmarks/corpus.py install  FOLDER
    python benchmarks/corpus.py recall   FOLDER [--output TABLE.md]
    python benchmarks/corpus.py compile  FOLDER --lines LINES.jsonl [--target sm_90] [--limit 50]
    python benchmarks/corpus.py findings FOLDER --lines FINDINGS.jsonl [--target sm_90]
    python benchmarks/corpus.py table    --lines LINES.jsonl [--output TABLE.md] [--compact FILE]

``install`` needs PyPI; nothing else needs a network, and nothing needs a GPU. ``--package NAME``
may be given several times. ``compile`` and ``findings`` go on where an earlier run stopped.
``--compact`` writes the lines without the notes, sorted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import corpus_compile, corpus_findings, corpus_recall, corpus_table
from benchmarks.corpus_packages import chosen, install

_FUNCTIONS_SHARE, _LAUNCHES_SHARE, _SLOWEST_MS = 0.99, 0.97, 1000.0
"""What the finder has to reach: device functions, launches, and the time of any one file."""


def main(arguments: list[str]) -> int:
    """Do one step; 1 if the finder misses what it has to reach."""
    options = _parser().parse_args(arguments)
    packages = chosen(options.package)
    match options.step:
        case "install":
            install(options.folder, packages)
        case "recall":
            results = [corpus_recall.measure(options.folder, package) for package in packages]
            _show(corpus_table.recall_table(results), options.output)
            missed = [place for result in results for place in result.missed]
            print("\n".join(["", f"missed: {len(missed)}", *missed[:40]]))
            return 0 if _reached(results) else 1
        case "compile" | "findings":
            step = corpus_compile if options.step == "compile" else corpus_findings
            step.run(options.folder, packages, options.lines, options.target, options.limit)
        case _:
            _show(corpus_table.compile_table(options.lines), options.output)
            if options.compact is not None:
                options.compact.write_text(corpus_table.compact(options.lines))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    steps = ("install", "recall", "compile", "findings", "table")
    parser.add_argument("step", choices=steps)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--package", action="append")
    parser.add_argument("--lines", type=Path, default=Path("corpus.jsonl"))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--compact", type=Path)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--limit", type=int, default=sys.maxsize)
    return parser


def _show(table: str, output: Path | None) -> None:
    print(table)
    if output is not None:
        output.write_text(table + "\n")


def _reached(results: list[corpus_recall.Recall]) -> bool:
    functions = sum(result.functions for result in results)
    launches = sum(result.launches for result in results)
    found = sum(result.functions_found for result in results)
    launched = sum(result.launches_found for result in results)
    return (
        found >= functions * _FUNCTIONS_SHARE
        and launched >= launches * _LAUNCHES_SHARE
        and all(result.slowest_ms < _SLOWEST_MS for result in results)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
