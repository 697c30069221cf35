"""Start the language server on standard input and output."""

from __future__ import annotations

import argparse
import gc
from typing import NoReturn

from kernel_lsp.subcommands._exit import RAN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Accept the flags that clients add by habit."""
    parser.add_argument("--stdio", action="store_true", help="the default, and the only transport")


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves."""
    start()
    return RAN


def start(command: tuple[str, ...] | None = None) -> NoReturn:
    """Import the server and serve. ``command`` starts a search host; None is this installation's.

    Imports stand here in their order: the other commands need no pygls, and the protocol's types
    come from the cache before pygls imports them.
    """
    from kernel_lsp.places import find_places
    from kernel_lsp.protocol.quick_import import import_protocol

    gc.disable()  # imports make many objects and no garbage
    import_protocol(find_places().cache)
    from kernel_lsp.server import serve

    gc.enable()
    serve(command=command)
