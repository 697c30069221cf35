"""Say what is here, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from kernel_lsp.subcommands._exit import FOUND, RAN
from kernel_lsp.subcommands._paths import archive_path, interpreter
from search_engine.domain.job import ProbeReply, Refusal
from search_engine.service import find_python, probe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--python", help="interpreter that has torch and triton")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    python = find_python(Path.cwd(), interpreter(options.python))
    lines = [f"server      Python {sys.version.split()[0]} ({sys.executable})"]
    lines.append(f"archive     {archive_path()}")
    lines.append(f"worker      {python}")
    reply = asyncio.run(probe(python, Path.cwd()))
    found, complete = _describe(reply)
    sys.stdout.write("\n".join([*lines, *found]) + "\n")
    return RAN if complete else FOUND


def _describe(reply: ProbeReply | Refusal | str) -> tuple[list[str], bool]:
    if not isinstance(reply, ProbeReply):
        message = reply.message if isinstance(reply, Refusal) else reply
        return [f"problem     {_first_line(message)}"], False
    lines = [f"python      {reply.python}"]
    lines.append(f"torch       {reply.torch or 'missing'}")
    lines.append(f"triton      {reply.triton or 'missing'}")
    lines.extend(
        f"device      {d.name}, {d.target}, {d.memory_bytes / 2**30:.0f} GiB, driver {d.driver}"
        for d in reply.devices
    )
    if not reply.devices and reply.torch and reply.triton:
        lines.append(
            "device      none: kernels are compiled and checked on the CPU interpreter, never "
            "timed; open the project where the GPU is to measure"
        )
    lines.extend(f"problem     {problem}" for problem in reply.problems)
    if not sys.platform.startswith("linux"):
        lines.append("platform    Triton has no wheels here: files are parsed, nothing is compiled")
    return lines, not reply.problems


def _first_line(message: str) -> str:
    """What follows is a worker's own output; it says little to someone who chose the program."""
    first, *rest = message.strip().splitlines() or [""]
    remedy = ". `--python` or the setting `kernelLsp.worker.python` chooses the interpreter."
    return f"{first.rstrip('.')}{remedy}" if rest else first
