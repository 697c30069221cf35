"""Rows of a table picked by index (an embedding lookup), 128 columns at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(table_ptr, ids_ptr, out_ptr, table_stride, out_stride, dim, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    row = tl.load(ids_ptr + token)
    for start in range(0, dim, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < dim
        x = tl.load(table_ptr + row * table_stride + cols, mask=mask)
        tl.store(out_ptr + token * out_stride + cols, x, mask=mask)


# kernel-lsp: workload table=bf16[151936,1024] ids=i64[262144]{0..151935}
# kernel-lsp: workload table=bf16[1000,300] ids=i64[77]{0..999} weight=0.1
# kernel-lsp: reference table[ids]
def gather(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The rows of the table named by a vector of ids."""
    n_tokens = ids.numel()
    dim = table.shape[1]
    out = torch.empty((n_tokens, dim), dtype=table.dtype, device=table.device)
    gather_kernel[(n_tokens,)](table, ids, out, table.stride(0), out.stride(0), dim, BLOCK=128)
    return out
