"""Rows of a page table looked up; the stride is a plain argument, the width sizes the block."""

import torch
import triton
import triton.language as tl


@triton.jit
def look_up(table_ptr, index_ptr, out_ptr, table_stride, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, WIDTH)
    index = tl.load(index_ptr + row * WIDTH + cols)
    page = tl.load(table_ptr + row * table_stride + index, mask=index >= 0, other=-1)
    tl.store(out_ptr + row * WIDTH + cols, page, mask=index >= 0)


# kernel-lsp: workload page_table=i32[256,11283]{0..65535} index=i32[256,2048]{-1..11282}
def pages(page_table, index):
    out = torch.empty_like(index)
    look_up[(index.shape[0],)](page_table, index, out, page_table.stride(0), WIDTH=index.shape[1])
    return out
