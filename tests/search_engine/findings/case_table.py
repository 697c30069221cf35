"""Prints what the checks find in the cases, for ``docs/findings-cases.md``.

``python tests/search_engine/findings/case_table.py > docs/findings-cases.md`` compiles and traces
every case for sm_90, which takes a minute or two.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from case_runs import CaseFile, expected, run_files

CASES = Path(__file__).parent / "cases"

REPORTS = {
    "ho01": "triton-lang/triton issue 1101",
    "ho02": "ROCm/aiter pull request 306",
    "ho03": "sgl-project/sglang issue 2271, vllm-project/vllm pull request 19152",
    "ho04": "vllm-project/vllm pull request 54929",
    "ho05": "pytorch/helion pull request 2426",
    "ho06": "sgl-project/sglang pull request 36888, triton-lang/triton issue 10872",
    "ho07": "pytorch/pytorch pull request 167894, triton-lang/triton issue 1172",
    "ho08": "pytorch/helion issue 660, pytorch/pytorch pull request 91316",
    "ho09": "sgl-project/sglang pull requests 3490 and 4396",
    "ho10": "vllm-project/vllm pull request 39641",
    "ho11": "sgl-project/sglang issue 3993",
    "ho12": "flagos-ai/FlagGems pull request 3749",
    "ho13": "triton-lang/triton issue 7815",
    "ho14": "meta-pytorch/MSLK pull request 372",
    "ho15": "lightseekorg/tokenspeed pull request 1559",
    "ho20": "karpathy/llm.c pull request 162",
    "sp05": "kekzl/imp issue 1421",
    "sp06": "triton-lang/triton issue 5174",
    "sp08": "triton-lang/triton issue 10389",
    "sp09": "triton-lang/triton issue 10987",
}
"""By the beginning of a case's name; other cases are patterns without a report."""

HEAD = """# What the checks find in known cases

<!-- Printed by `python tests/search_engine/findings/case_table.py`; the same cases are tests. -->

Reports of slow kernels, each rebuilt in a few lines as a *bad* file with the pattern and a *good*
file without it, compiled for sm_90 with Triton {triton} and traced at the sizes in the file, which
are the report's or smaller where the report's take long to trace. Nothing was timed.

- *found*: expected codes that stand on the expected line of the bad file; *missed*: the others.
- *false*: expected codes that are also said of the good file.
- *also said*: every other finding, for a reader to judge. Many are true of both files.
"""

TAIL = """
## What is not found

- A second read that the L2 cache serves (pytorch/helion issue 660 at 2,048 x 2,048: 16.8 MB) is not
  named: the report's gain came from eviction hints, which no fact without a GPU foresees.
- A loop that runs to the capacity of a list instead of its length is named only where masks show it
  for the declared values (vllm-project/vllm pull request 54929 has this beside its small grid).
- Reports on CUDA C++ have no case here: the files are Triton.
"""


def main() -> None:
    """Print the page."""
    names = sys.argv[1:] or ["*"]
    paths = sorted(path for name in names for path in CASES.glob(f"{name}.py"))
    with tempfile.TemporaryDirectory() as scratch:
        files = {file.path.stem: file for file in run_files(paths, Path(scratch)).values()}
    sys.stdout.write("\n".join(page(files)) + "\n")


def page(files: dict[str, CaseFile]) -> Iterator[str]:
    """The lines of the page."""
    from importlib.metadata import version

    yield HEAD.format(triton=version("triton"))
    yield "| case | report | pattern | found | missed | false | also said, bad | also said, good |"
    yield "|---|---|---|---|---|---|---|---|"
    names = sorted(name.removesuffix("_bad") for name in files if name.endswith("_bad"))
    counts = [0, 0, 0]
    for name in names:
        bad, good = files[f"{name}_bad"], files[f"{name}_good"]
        wanted = set(expected(bad.path.read_text()))
        said = {(item.line, item.code) for item in bad.findings()}
        codes = {code for _, code in wanted}
        false = [item.code for item in good.findings() if item.code in codes]
        found, missed = wanted & said, wanted - said
        for index, part in enumerate((found, missed, false)):
            counts[index] += len(part)
        cells = (
            name, _report(name), _pattern(bad), _codes(code for _, code in found),
            _codes(code for _, code in missed), _codes(false),
            _codes(item.code for item in bad.findings() if item.code not in codes),
            _codes(item.code for item in good.findings() if item.code not in codes),
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"{counts[0]} found, {counts[1]} missed, {counts[2]} false in {len(names)} pairs."
    yield from _innocent(files)
    yield TAIL.rstrip()


def _innocent(files: dict[str, CaseFile]) -> Iterator[str]:
    yield "\n## Kernels that only look slow\n"
    yield "Nothing may be said of these.\n"
    yield "| case | kernel | said |"
    yield "|---|---|---|"
    for name in sorted(name for name in files if name.endswith("_innocent")):
        said = _codes(item.code for item in files[name].findings())
        yield f"| {name.removesuffix('_innocent')} | {_pattern(files[name])} | {said} |"


def _report(name: str) -> str:
    return next((text for key, text in REPORTS.items() if name.startswith(key)), "–")


def _pattern(file: CaseFile) -> str:
    text = ast.get_docstring(ast.parse(file.path.read_text())) or ""
    return " ".join(text.split())


def _codes(codes: Iterator[str] | list[str]) -> str:
    return " ".join(sorted(set(codes))) or "–"


if __name__ == "__main__":
    main()
