"""Helpers and kernels that the server's tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conftest_kernel import KERNEL
from lsp_conformance import check_traffic
from lsp_wire import Wire


@pytest.fixture
def kernel() -> str:
    """One kernel with a workload; the fake host rewrites ``BLOCK = 128``."""
    return KERNEL


@pytest.fixture
def wire(tmp_path):
    """A factory of raw connections; each one's traffic is checked at the end of the test."""
    made: list[Wire] = []

    def start(**options) -> Wire:
        made.append(Wire(tmp_path, **options))
        return made[-1]

    yield start
    for connection in made:
        connection.finish()
        check_traffic(connection.traffic)
