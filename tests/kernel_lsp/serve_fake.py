"""The real server with the fake search host."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[0] = str(HERE.parents[2])

from kernel_lsp.subcommands.serve import start  # noqa: E402

start(command=(sys.executable, str(HERE.with_name("fake_host.py"))))
