"""Run a program and keep the workloads of the kernels it launches.

``kernel-lsp record -- python bench.py`` runs the program unchanged, with a hook, and writes what
each entry was called with to ``.kernel-lsp/workloads/``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from kernel_lsp.subcommands._exit import FOUND, RAN
from kernel_lsp.subcommands._paths import interpreter
from search_engine.service import RecordSummary, RequestError, find_python, record

_READ_FOLDER = Path(".kernel-lsp") / "workloads"
"""Where recordings are looked for, in the project's folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--output",
        type=Path,
        default=_READ_FOLDER,
        help="folder of the recordings; optimize reads .kernel-lsp/workloads of the project alone",
    )
    parser.add_argument("--python", help="interpreter that has torch and triton")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD …")


def run(options: argparse.Namespace) -> int:
    """Run the command. Exits with the program's own code if that is not zero."""
    command = tuple(options.command[1:] if options.command[:1] == ["--"] else options.command)
    if not command:
        raise RequestError("nothing to run; write `kernel-lsp record -- python YOUR_SCRIPT.py`")
    python = str(find_python(Path.cwd(), interpreter(options.python)))
    try:
        work = record(command, python, Path.cwd(), options.output, output=None)
        summary = asyncio.run(work)
    except OSError as error:
        raise RequestError(f"{command[0]}: {error.strerror or error}") from error
    sys.stderr.write(_text(summary))
    if summary.entries and options.output.resolve().parts[-2:] != _READ_FOLDER.parts:
        sys.stderr.write(
            f"note: optimize reads {_READ_FOLDER} of the project, not {options.output}; move the "
            "whole folder there to use it\n"
        )
    return summary.exit_code or (RAN if summary.entries else FOUND)


def _text(summary: RecordSummary) -> str:
    lines = [
        f"{item.module}.{item.entry}: {item.cases} cases of {item.calls} calls, in {item.file}"
        for item in summary.entries
    ]
    lines.extend(f"not recorded: {problem}" for problem in summary.problems)
    if not summary.entries:
        lines.append("no Triton kernel was launched by a function that can be recorded")
    return "\n".join(lines) + "\n"
