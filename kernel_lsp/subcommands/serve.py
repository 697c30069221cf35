"""Start the language server on standard input and output."""

from __future__ import annotations

import argparse

from kernel_lsp.subcommands._exit import RAN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Accept the flags that clients add by habit."""
    parser.add_argument("--stdio", action="store_true", help="the default, and the only transport")


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves."""
    from kernel_lsp.server import serve  # the other commands start faster without pygls

    serve()
    return RAN
