"""Layer normalisation whose decorator withholds the alignment of the row stride."""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["stride", "n"])
def layer_norm(x_ptr, w_ptr, y_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    x = tl.load(x_ptr + row * stride + cols, mask=keep, other=0.0).to(tl.float32)  # expect: KL106
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(keep, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    w = tl.load(w_ptr + cols, mask=keep, other=0.0)  # expect: KL106
    tl.store(y_ptr + row * stride + cols, centred * scale * w, mask=keep)  # expect: KL106


# kernel-lsp: workload x=f16[4096,4096] w=f16[4096]
# kernel-lsp: reference torch.nn.functional.layer_norm(x, (x.shape[1],), w)
def normalised(x, w):
    y = torch.empty_like(x)
    n = x.shape[1]
    block = triton.next_power_of_2(n)
    layer_norm[(x.shape[0],)](x, w, y, x.stride(0), n, 1e-5, BLOCK=block, num_warps=8)
    return y
