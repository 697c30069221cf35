"""Run a program and keep the workloads of the kernels it launches.

``kernel-lsp record -- python bench.py`` runs the program unchanged, with a hook, and writes what
each entry was called with to ``.kernel-lsp/workloads/``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from kernel_lsp.subcommands._exit import RAN
from search_engine.service import RequestError, record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--output", type=Path, default=Path(".kernel-lsp") / "workloads")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD …")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise RequestError("nothing to run; write `kernel-lsp record -- python YOUR_SCRIPT.py`")
    summary = asyncio.run(record(command, Path.cwd(), options.output))
    sys.stderr.write(summary.text + "\n")
    return summary.returncode or RAN
