"""The real server with the fake search host."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[0] = str(HERE.parents[2])

from kernel_lsp.server import serve  # noqa: E402

serve(command=(sys.executable, str(HERE.with_name("fake_host.py"))))
