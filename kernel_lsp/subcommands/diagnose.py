"""Print what is known about the kernels of some files without running them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kernel_lsp.subcommands._exit import FOUND, RAN
from kernel_lsp.subcommands._paths import project_root, read_source
from search_engine.domain.finding import Finding, Severity
from search_engine.service import diagnose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("--target", default=None, help="name of the target the findings are for")
    parser.add_argument("--fail-on-warning", action="store_true", help="exit 1 on any warning")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    found: list[Finding] = []
    for path in options.files:
        found.extend(diagnose(path, read_source(path), project_root(path), options.target))
    if options.format == "json":
        document = {"findings": [_record(finding) for finding in found]}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{_line(finding)}\n" for finding in found)
    warned = any(finding.severity is Severity.WARNING for finding in found)
    return FOUND if options.fail_on_warning and warned else RAN


def _record(finding: Finding) -> dict[str, object]:
    return {
        "path": finding.path,
        "line": finding.line + 1,
        "end_line": finding.end_line + 1,
        "kernel": finding.kernel,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "target": finding.target,
        "facts": finding.facts,
    }


def _line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.line + 1}"
    return f"{place}: {finding.severity.value}: {finding.message} [{finding.code} {finding.name}]"
