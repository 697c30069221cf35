"""Print where the archive and the logs are."""

from __future__ import annotations

import argparse
import sys

from kernel_lsp.subcommands._exit import RAN
from kernel_lsp.subcommands._paths import archive_path, state_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options."""


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    sys.stdout.write(f"archive {archive_path()}\nlogs    {state_folder() / 'log'}\n")
    return RAN
