"""Reductions and scans with functions of their own, on integers: every result is exact."""

import torch
import triton
import triton.language as tl


@triton.jit
def affine(a, b, c, d):
    return a * d + c, b * d


@triton.jit
def mixed(a, b):
    return a ^ (b * 1)


@triton.jit
def reducing_kernel(
    x_ptr, y_ptr, scanned_ptr, reduced_ptr, AXIS: tl.constexpr, KEEP: tl.constexpr,
    BACK: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    scanned, _ = tl.associative_scan((x, y), AXIS, affine, reverse=BACK)
    tl.store(scanned_ptr + at, scanned)
    reduced = tl.reduce(x, AXIS, mixed, keep_dims=KEEP)
    reduced = reduced if KEEP else tl.sum(reduced)
    tl.store(reduced_ptr + at, reduced + tl.zeros_like(at))


def results():
    """What the kernel computes for each axis and option."""
    made = []
    x = torch.arange(32, dtype=torch.int32).reshape(4, 8) % 5
    y = torch.arange(32, dtype=torch.int32).reshape(4, 8) % 3
    for axis in (0, 1):
        for keep in (True, False):
            for back in (False, True):
                scanned, reduced = torch.zeros_like(x), torch.zeros_like(x)
                reducing_kernel[(1,)](x, y, scanned, reduced, axis, keep, back, 4, 8)
                made += [scanned, reduced]
    return made
