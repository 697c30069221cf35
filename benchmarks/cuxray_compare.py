"""What cuxray and kernel-lsp each say about the same cubins, line by line.

Compiles every launch of the given files for sm_90 without a GPU, gives each cubin with its launch
to ``cuxray`` (an executable of its own, ``pip install cuxray``), and the files to
``kernel-lsp diagnose``. Prints a table with one row per line that either of them names.

    python benchmarks/cuxray_compare.py --cuxray PATH/TO/cuxray [--output FILE] [FILES]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

TARGET = "sm_90"
_WASTEFUL_PERCENT = 60.0
"""Accesses whose efficiency cuxray puts below this count as something it says about the line."""


@dataclass(frozen=True)
class Cubin:
    """One compiled launch with what cuxray needs to know of it."""

    path: Path
    kernel: str
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--cuxray", default="cuxray", help="its executable")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dump is not None:
        dump(options.files[0], options.dump)
        return 0
    files = options.files or sorted((ROOT / "examples").glob("*.py")) + sorted(
        (ROOT / "tests" / "search_engine" / "findings" / "cases").glob("*_bad.py")
    )
    rows: list[tuple[str, int, str, str]] = []
    for path in files:
        rows.extend(compare(path.resolve(), options.cuxray))
        print(f"{path.stem}: done", file=sys.stderr)
    text = table(rows, version(options.cuxray))
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def compare(path: Path, cuxray: str) -> list[tuple[str, int, str, str]]:
    """Rows ``(file, 1-based line, ours, cuxray's)``."""
    mine, theirs = ours(path), cuxrays(path, cuxray)
    name = path.relative_to(ROOT).as_posix()
    return [
        (name, line, "; ".join(mine.get(line, ())), "; ".join(theirs.get(line, ())))
        for line in sorted({*mine, *theirs})
    ]


def ours(path: Path) -> dict[int, list[str]]:
    """Our findings by 1-based line."""
    command = [sys.executable, "-m", "kernel_lsp.cli", "diagnose", str(path), "--target", TARGET,
               "--format", "json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    found: dict[int, list[str]] = {}
    for item in json.loads(done.stdout)["findings"]:
        if not item["code"].startswith(("KL0", "KL8")):
            found.setdefault(item["line"] + 1, []).append(f"{item['name']}: {item['message']}")
    return found


def cuxrays(path: Path, cuxray: str) -> dict[int, list[str]]:
    """What cuxray says by 1-based line; line 0 holds what it says of a whole kernel."""
    found: dict[int, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(path), "--dump", folder]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        for item in json.loads((Path(folder) / "cubins.json").read_text()):
            cubin = Cubin(**item)
            for line, text in _report(cubin, path, cuxray):
                if text not in found.setdefault(line, []):
                    found[line].append(text)
    return found


def _report(cubin: Cubin, path: Path, cuxray: str) -> list[tuple[int, str]]:
    launch = ["--threads", str(cubin.threads), "--grid", ",".join(map(str, cubin.grid)),
              "--smem-dynamic", str(cubin.shared_bytes), "--json"]  # fmt: skip
    report = _run([cuxray, "report", str(cubin.path), *launch])
    said: list[tuple[int, str]] = []
    for kernel in (k for unit in report["units"] for k in unit["kernels"]):
        sites = (kernel.get("access") or {}).get("by_site") or []
        said += [(s["line"], _site(s)) for s in sites if _own(s, path) and _site(s)]
        spills = (kernel.get("spills") or {}).get("by_line") or []
        said += [(s["line"], f"spill: {json.dumps(_short(s))}") for s in spills if _own(s, path)]
    advice = _run([cuxray, "advise", str(cubin.path), *launch])
    for action in (a for result in advice["results"] for a in result["actions"]):
        title = action.get("title") or action.get("action") or action.get("kind")
        said.append((int(action.get("line") or 0), f"advice: {title}"))
    return said


def _site(site: dict) -> str:
    if (site.get("conflict_ways") or 1) > 1:
        return f"{site['conflict_ways']}-way bank conflict"
    efficiency = site.get("efficiency_pct")
    if site["space"] == "global" and efficiency is not None and efficiency < _WASTEFUL_PERCENT:
        return f"{site['verdict']}, {efficiency:.0f} % of the sectors' bytes used"
    return ""


def _short(entry: dict) -> dict:
    return {key: value for key, value in entry.items() if isinstance(value, int | float)}


def _own(entry: dict, path: Path) -> bool:
    return Path(entry.get("file") or "").name == path.name


def _run(command: list[str]) -> dict:
    import triton.backends.nvidia as backend

    tools = Path(str(backend.__file__)).parent / "bin"
    environment = dict(os.environ, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def dump(path: Path, folder: Path) -> None:
    """Compile a file's launches under the fake driver and write their cubins to ``folder``."""
    from search_engine.domain.job import CompileJob
    from search_engine.frontends.triton import parse_module
    from search_engine.frontends.workload import parse_workloads
    from search_engine.source import make_source
    from search_engine.worker import compile as compiler

    text = path.read_text()
    workloads, _ = parse_workloads(parse_module(text, str(path)))
    cubins: list[dict] = []
    for workload in workloads:
        cases = workload.cases
        case = max(range(len(cases)), key=lambda i: (cases[i].weight, -i))
        source = make_source("dump", path, text, workload.entry)
        compiler.compile_source(CompileJob(source, workload, case, TARGET))
        for launch in compiler._active[TARGET].launches:
            compiled = launch.compiled
            target = folder / f"{len(cubins)}.cubin"
            target.write_bytes(compiled.asm["cubin"])
            metadata = compiled.metadata
            cubins.append({"path": str(target), "kernel": metadata.name, "grid": launch.grid,
                           "threads": metadata.num_warps * 32,
                           "shared_bytes": metadata.shared})  # fmt: skip
    (folder / "cubins.json").write_text(json.dumps(cubins))


def version(cuxray: str) -> str:
    """Name and version of the other tool."""
    return subprocess.run(
        [cuxray, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def table(rows: list[tuple[str, int, str, str]], other: str) -> str:
    """Markdown; line 0 is a whole kernel."""
    both = sum(1 for row in rows if row[2] and row[3])
    mine = sum(1 for row in rows if row[2] and not row[3])
    theirs = sum(1 for row in rows if row[3] and not row[2])
    lines = [
        f"# kernel-lsp and {other} on the same cubins",
        "",
        f"`python benchmarks/cuxray_compare.py`, target {TARGET}. Lines that both name: {both}; "
        f"only kernel-lsp: {mine}; only cuxray: {theirs}.",
        "",
        "| file | line | kernel-lsp | cuxray |",
        "|---|---|---|---|",
        *[f"| {f} | {line or 'kernel'} | {a or '-'} | {b or '-'} |" for f, line, a, b in rows],
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
