"""The command line: ``kernel-lsp optimize | diagnose | record | doctor | serve | where``.

Exit codes: 0 ran; 1 findings or no improvement where asked to fail on it; 2 bad input; 3 fault.
"""

from __future__ import annotations

import argparse
import logging
import sys
import traceback

from kernel_lsp.subcommands import diagnose, doctor, optimize, record, serve, where
from kernel_lsp.subcommands._exit import BAD_INPUT, FAULT
from search_engine.service import ArchiveError, RequestError

_COMMANDS = (optimize, diagnose, record, doctor, serve, where)


def main(argv: list[str] | None = None) -> int:
    """Entry point of ``kernel-lsp``."""
    parser = _parser()
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        return options.run(options)
    except (RequestError, ArchiveError) as error:
        sys.stderr.write(f"kernel-lsp: {error}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130
    except Exception:
        sys.stderr.write(traceback.format_exc())
        sys.stderr.write("kernel-lsp: this is a fault of kernel-lsp; please report it\n")
        return FAULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernel-lsp", description=_first_line(__doc__))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in _COMMANDS:
        name = module.__name__.rsplit(".", 1)[-1]
        summary = _first_line(module.__doc__)
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
