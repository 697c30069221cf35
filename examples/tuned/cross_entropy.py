"""Cross-entropy loss of each row of logits in one read, with a running maximum and sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, losses_ptr, logits_stride, n_classes, BLOCK: tl.constexpr
):
    LOG2E: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * logits_stride
    picked = tl.load(logits_row + tl.load(targets_ptr + row)).to(tl.float32)

    # One sum for each lane, in base 2: only the maximum is reduced across the program in the loop.
    # The maximum starts finite, so that a block of nothing but -inf adds nothing.
    cols = tl.arange(0, BLOCK)
    high = -1e38
    totals = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        mask = start + cols < n_classes
        x = tl.load(logits_row + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        new_high = tl.maximum(high, tl.max(x, axis=0) * LOG2E)
        totals = totals * tl.exp2(high - new_high) + tl.exp2(x * LOG2E - new_high)
        high = new_high

    log_total = (tl.log2(tl.sum(totals, axis=0)) + high) / LOG2E
    tl.store(losses_ptr + row, log_total - picked)


# kernel-lsp: workload logits=bf16[N:8192,32000] targets=i64[N]{0..31999}
# kernel-lsp: workload logits=bf16[N:256,1000] targets=i64[N]{0..999} weight=0.1
# kernel-lsp: reference torch.nn.functional.cross_entropy(logits, targets, reduction="none")
def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss of each row, in float32."""
    n_rows, n_classes = logits.shape
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    # Many small programs on an SM: while some reduce, the others keep loads in flight.
    block = min(triton.next_power_of_2(n_classes), 4096)
    cross_entropy_kernel[(n_rows,)](
        logits, targets, losses, logits.stride(0), n_classes, BLOCK=block, num_warps=4
    )
    return losses
