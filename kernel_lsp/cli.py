"""The command line: ``kernel-lsp optimize | diagnose | record | doctor | serve | where``.

Exit codes: 0 ran; 1 findings or no improvement where asked to fail on it; 2 bad input; 3 fault.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
import traceback
from types import ModuleType

from kernel_lsp.subcommands._exit import BAD_INPUT, FAULT, INTERRUPTED

_COMMANDS = ("optimize", "diagnose", "record", "doctor", "serve", "where")


def main(argv: list[str] | None = None) -> int:
    """Entry point of ``kernel-lsp``."""
    arguments = sys.argv[1:] if argv is None else argv
    options = _parser(arguments).parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if _is_bad_input(error):
            sys.stderr.write(f"kernel-lsp: {error}\n")
            return BAD_INPUT
        sys.stderr.write(traceback.format_exc())
        sys.stderr.write("kernel-lsp: this is a fault of kernel-lsp; please report it\n")
        return FAULT


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernel-lsp", description=_first_line(__doc__))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    # The server must answer quickly: it does not wait for the imports of the other commands.
    asked = arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS
    for name in asked:
        module = _command(name)
        summary = _first_line(module.__doc__)
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _command(name: str) -> ModuleType:
    return importlib.import_module(f"kernel_lsp.subcommands.{name}")


def _is_bad_input(error: Exception) -> bool:
    from search_engine.service import ArchiveError, RequestError

    return isinstance(error, ArchiveError | RequestError)


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
