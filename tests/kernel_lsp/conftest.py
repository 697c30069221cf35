"""Helpers and kernels that the server's tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lsp_conformance import check_traffic  # noqa: E402
from lsp_wire import Wire  # noqa: E402

KERNEL = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, 2 * x, mask=mask)


# kernel-lsp: workload x=f32[1000]
def double(x):
    y = torch.empty_like(x)
    n = x.numel()
    BLOCK = 128
    double_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)
    return y
'''


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
