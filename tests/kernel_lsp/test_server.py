"""What an editor waits for at the start."""

import subprocess
import sys

from kernel_lsp.command_names import COMMAND_NAMES
from kernel_lsp.commands import COMMANDS

LOADED = """
import sys
import kernel_lsp.server
print(*(m for m in sys.modules if m.startswith(("search_engine", "kernel_lsp.", "tree_sitter"))))
"""


def test_initialize_waits_for_no_import_of_session_or_search():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "kernel_lsp.protocol.base" in loaded
    assert not [m for m in loaded if not m.startswith("kernel_lsp.")]
    assert not {"kernel_lsp.session", "kernel_lsp.commands", "kernel_lsp.settings"} & {*loaded}


def test_every_command_is_advertised_and_every_advertised_name_is_a_command(wire):
    server = wire()
    provider = server.initialize()["capabilities"]["executeCommandProvider"]
    assert sorted(provider["commands"]) == sorted(command.name for command in COMMANDS)
    assert len(set(COMMAND_NAMES)) == len(COMMANDS)
