"""Say what the compiler and a trace show about the kernels of some files; no GPU is used.

Kernels are compiled, so code of the files is run, unless ``--no-compile`` is given.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from kernel_lsp.settings import Settings, parse, project_layer
from kernel_lsp.subcommands._baseline import Baseline, write_baseline
from kernel_lsp.subcommands._exit import FOUND, RAN
from kernel_lsp.subcommands._file_findings import FileFindings
from kernel_lsp.subcommands._finding_reports import github_lines, json_document, sarif_document
from kernel_lsp.subcommands._finding_text import finding_lines, summary_lines
from kernel_lsp.subcommands._kernel_files import KernelFile, kernel_files
from kernel_lsp.subcommands._paths import interpreter, project_root
from search_engine.domain.facts_message import FactsRequest, UnitFindings
from search_engine.domain.finding import Finding, Severity
from search_engine.service import Diagnosis, diagnosis, known_targets, on_termination

_AT_ONCE = 8
"""Files that are read at once; how many are compiled at once is the service's business."""
_LOUDNESS = (Severity.HINT, Severity.INFORMATION, Severity.WARNING)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument(
        "--target", metavar="NAME[,…]", help="compile for these; else the project's, else sm_90"
    )
    parser.add_argument("--format", choices=["text", "json", "sarif", "github"], default="text")
    parser.add_argument("--python", help="interpreter that has torch and triton")
    parser.add_argument("--no-compile", action="store_true", help="only what the text shows")
    parser.add_argument(
        "--all", action="store_true", help="also findings that are off, or too small to matter"
    )
    parser.add_argument("--baseline", type=Path, help="leave out the findings of this file")
    parser.add_argument("--write-baseline", type=Path, metavar="FILE", help="write such a file")
    parser.add_argument(
        "--fail-on", choices=["hint", "warning", "never"], default="never",
        help="exit 1 if something as loud is found",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on-warning", dest="fail_on", action="store_const", const="warning",
        help=argparse.SUPPRESS,
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    baseline = None if options.baseline is None else Baseline(options.baseline)
    targets = known_targets(name for name in (options.target or "").split(",") if name)
    files = kernel_files(options.paths)
    try:
        found = asyncio.run(_diagnosed(files, options, targets))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if options.write_baseline is not None:
        count = write_baseline(options.write_baseline, found)
        sys.stderr.write(f"{options.write_baseline}: {count} findings are known from now on\n")
    shown = [(file, file.findings if baseline is None else baseline.new(file)) for file in found]
    _print(options.format, shown)
    return _exit_code(options.fail_on, [item for _, items in shown for item in items])


async def _diagnosed(
    files: Sequence[KernelFile], options: argparse.Namespace, targets: tuple[str, ...]
) -> list[FileFindings]:
    """Findings of all files, in their order; SIGTERM and SIGHUP cancel as SIGINT does."""
    task = asyncio.current_task()
    assert task is not None
    on_termination(task.cancel)
    slots = asyncio.Semaphore(_AT_ONCE)
    async with diagnosis() as service:
        with _Progress(len(files)) as progress:

            async def one(file: KernelFile) -> FileFindings:
                async with slots:
                    request = _request(file, options, targets)
                    return await _file(service, file, request, progress)

            return list(await asyncio.gather(*(one(file) for file in files)))


async def _file(
    service: Diagnosis, file: KernelFile, request: FactsRequest, progress: _Progress
) -> FileFindings:
    found = FileFindings(file, request.targets)
    async with contextlib.aclosing(service.answers(request)) as answers:
        async for answer in answers:
            found.add(answer)
            if isinstance(answer, UnitFindings):
                progress.show(f"{file.shown}: {answer.kernel} on {answer.target}")
    progress.file_done()
    return found


def _request(
    file: KernelFile, options: argparse.Namespace, targets: tuple[str, ...]
) -> FactsRequest:
    root = project_root(file.path)
    settings = _project_settings(root)
    return FactsRequest(
        id=file.shown,
        path=str(file.path),
        root=str(root),
        text=file.text,
        targets=targets or settings.finding_targets,
        python=interpreter(options.python),
        ignore=settings.ignore,
        everything=options.all,
        compile=not options.no_compile,
    )


def _project_settings(root: Path) -> Settings:
    return parse(project_layer(root)[0])[0]


def _print(kind: str, shown: list[tuple[FileFindings, tuple[Finding, ...]]]) -> None:
    if kind == "json":
        text = json.dumps(json_document(shown), indent=2) + "\n"
    elif kind == "sarif":
        text = json.dumps(sarif_document(shown), indent=2) + "\n"
    elif kind == "github":
        text = "".join(f"{line}\n" for line in github_lines(shown))
    else:
        lines = [
            line
            for file, findings in shown
            for line in (*finding_lines(file, findings), *summary_lines(file))
        ]
        text = "".join(f"{line}\n" for line in lines)
    sys.stdout.write(text)


def _exit_code(fail_on: str, findings: list[Finding]) -> int:
    if fail_on == "never":
        return RAN
    least = _LOUDNESS.index(Severity(fail_on))
    loud = any(_LOUDNESS.index(item.severity) >= least for item in findings)
    return FOUND if loud else RAN


class _Progress:
    """What is being looked at, on a terminal's standard error; nothing elsewhere."""

    def __init__(self, files: int) -> None:
        console = Console(stderr=True, highlight=False)
        self._status = console.status("starting") if console.is_terminal else None
        self._files = files
        self._done = 0

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """Say what was finished last."""
        if self._status is not None:
            self._status.update(f"[{self._done + 1}/{self._files}] {text}".replace("[", r"\["))

    def file_done(self) -> None:
        """Count one file."""
        self._done += 1
