"""Search for a faster rewrite of one kernel; verified before it is shown.

``FILE`` may name a kernel as ``FILE::KERNEL``. Progress goes to standard error; standard output
carries the diff and its evidence, or one JSON document with ``--json``.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from pathlib import Path

from kernel_lsp.subcommands._exit import BAD_INPUT, FAULT, FOUND, RAN
from kernel_lsp.subcommands._paths import (
    archive_path,
    interpreter,
    project_root,
    read_source,
)
from kernel_lsp.subcommands._progress import ProgressLine
from search_engine.domain.ports import Listener
from search_engine.domain.run import Effort, ExitReason, Outcome, RunReport
from search_engine.service import (
    RequestError,
    RunRequest,
    card,
    document,
    failed_report,
    on_termination,
    optimize,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE[::KERNEL]")
    parser.add_argument("--effort", choices=[e.value for e in Effort], default=Effort.NORMAL.value)
    parser.add_argument(
        "--budget",
        metavar="NAME=AMOUNT[,…]",
        help="limits over the effort's: wallSeconds, deviceSeconds, evaluations",
    )
    parser.add_argument("--target", help="compile for this target instead of the device's")
    parser.add_argument("--python", help="interpreter that has torch and triton")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--archive", type=Path, default=None, help="another archive file")
    parser.add_argument("--no-archive", action="store_true", help="keep nothing of this run")
    parser.add_argument("--apply", action="store_true", help="write a verified rewrite to FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--fail-without-improvement", action="store_true", help="exit 1 if nothing was found"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    try:
        request = _request(options)
        with ProgressLine(sys.stderr) as progress:
            report = asyncio.run(_search(request, progress.update))
    except RequestError as error:
        _print_failure(options, str(error), ExitReason.FAULTED)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        _print_failure(options, "cancelled", ExitReason.CANCELLED)
        raise KeyboardInterrupt from None
    if options.json:
        sys.stdout.write(json.dumps(document(report), indent=2) + "\n")
    else:
        sys.stdout.write(_text(report))
    if options.apply:
        sys.stderr.write(_apply(report, request) + "\n")
    return _exit_code(report, options.fail_without_improvement)


async def _search(request: RunRequest, emit: Listener) -> RunReport:
    """The search, in a task that SIGTERM and SIGHUP cancel as SIGINT does."""
    task = asyncio.current_task()
    assert task is not None
    on_termination(task.cancel)
    return await optimize(request, emit)


def _print_failure(options: argparse.Namespace, message: str, reason: ExitReason) -> None:
    """The one document of ``--json`` for a run that never got to a report of its own."""
    if options.json:
        path, _, kernel = options.file.partition("::")
        report = dataclasses.replace(
            failed_report(message).report, path=path, kernel=kernel, exit_reason=reason
        )
        sys.stdout.write(json.dumps(document(report), indent=2) + "\n")


def _request(options: argparse.Namespace) -> RunRequest:
    name, _, kernel = options.file.partition("::")
    path = Path(name)
    archive = None if options.no_archive else options.archive or archive_path()
    return RunRequest(
        path=path,
        text=read_source(path),
        kernel=kernel or None,
        root=project_root(path),
        python=interpreter(options.python),
        effort=Effort(options.effort),
        limits=_limits(options.budget),
        target=options.target,
        archive=archive,
        seed=options.seed,
    )


def _limits(text: str | None) -> dict[str, float]:
    limits: dict[str, float] = {}
    for item in (text or "").split(","):
        if not item.strip():
            continue
        name, equals, amount = item.partition("=")
        try:
            limits[name.strip()] = float(amount)
        except ValueError:
            equals = ""
        if not equals:
            raise RequestError(f"--budget {item!r}: expected NAME=AMOUNT, as in wallSeconds=60")
    return limits


def _text(report: RunReport) -> str:
    parts = [f"{report.kernel}: {report.message}"]
    if report.diff:
        parts.append(report.diff.rstrip("\n"))
    if report.evidence is not None:
        parts.append(card(report.evidence, report.kernel))
    spend = report.spend
    parts.append(
        f"spent {spend.wall_seconds:.1f} s, {spend.device_seconds:.1f} device seconds, "
        f"{spend.evaluations} candidates compiled; ended: {report.exit_reason.value}"
    )
    return "\n\n".join(parts) + "\n"


def _apply(report: RunReport, request: RunRequest) -> str:
    if report.outcome is not Outcome.IMPROVED or report.best is None:
        return "nothing applied: only a verified improvement is written"
    if read_source(request.path) != request.text:
        return f"nothing applied: {request.path} changed during the run; run again"
    request.path.write_bytes(report.best.text.encode())
    return f"applied to {request.path}"


def _exit_code(report: RunReport, fail_without_improvement: bool) -> int:
    if report.outcome is Outcome.FAILED:
        # A search that had begun was stopped by the machine; before that it is the user's to mend.
        return FAULT if report.rungs else BAD_INPUT
    if fail_without_improvement and report.outcome is not Outcome.IMPROVED:
        return FOUND
    return RAN
