"""Kernels as people write them, and contexts made from text."""

from __future__ import annotations

from search_engine.domain.candidate import Candidate, Numerics, candidate_id
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.workload import (
    Case,
    Distribution,
    Extent,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.frontends.triton import parse_module
from search_engine.proposers.context import Context
from search_engine.targets.registry import target_named

HEADER = """\
import torch
import triton
import triton.language as tl

"""

SCALE = """
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr{default}):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)

"""


def scale(entry: str, default: str = "", before: str = "", decorator: str = "") -> str:
    """A flat kernel under an entry whose body is ``entry``."""
    kernel = SCALE.format(default=default)
    if decorator:
        kernel = kernel.replace("@triton.jit", f"{decorator}\n@triton.jit")
    lines = "\n".join(f"    {line}" for line in entry.splitlines())
    body = f"    out = torch.empty_like(x)\n    n = x.numel()\n{lines}\n    return out\n"
    return f"{HEADER}{before}{kernel}\ndef scale(x):\n{body}"


CONFIGS = """[
    triton.Config({"BLOCK": 128}, num_warps=4),
    triton.Config({"BLOCK": 256}, num_warps=8),
]"""
BY_META = 'scale_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)'

SPELLINGS: dict[str, str] = {
    "constant": scale(
        "BLOCK = 128\ngrid = (triton.cdiv(n, BLOCK),)\nscale_kernel[grid](x, out, n, BLOCK)"
    ),
    "other name": scale(
        "size: int = 128\nscale_kernel[(triton.cdiv(n, size),)](x, out, n, BLOCK=size)"
    ),
    "tuple": scale(
        "BLOCK, warps = 128, 4\ngrid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)\n"
        "scale_kernel[grid](x, out, n, BLOCK=BLOCK, num_warps=warps)"
    ),
    "keyword and lambda": scale(
        'scale_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n, BLOCK=128)'
    ),
    "grid function": scale(
        'def grid(meta):\n    return (triton.cdiv(n, meta["BLOCK"]),)\n\n'
        "scale_kernel[grid](x, out, n, BLOCK=128)"
    ),
    "number in the grid": scale("scale_kernel[((n + 127) // 128,)](x, out, n, BLOCK=128)"),
    "number in a local grid": scale(
        "blocks = triton.cdiv(n, 128)\nscale_kernel[(blocks,)](x, out, n, 128)"
    ),
    "branches": scale(
        "if n > 4096:\n    size = 256\nelse:\n    size = 64\n"
        "scale_kernel[(triton.cdiv(n, size),)](x, out, n, BLOCK=size)"
    ),
    "conditional": scale(
        "size = 256 if n > 4096 else 64\n"
        "scale_kernel[(triton.cdiv(n, size),)](x, out, n, BLOCK=size)"
    ),
    "module constant": scale(
        '"""Läuft — with a docstring."""\nscale_kernel[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK)',
        before="BLOCK = 128\n",
    ).replace("    out = torch.empty_like(x)\n    n = x.numel()\n", "", 1).replace(
        '    """Läuft — with a docstring."""\n',
        '    """Läuft — with a docstring."""\n    out = torch.empty_like(x)\n    n = x.numel()\n',
    ),
    "signature default": scale(BY_META, default=" = 128"),
    "entry default": scale(
        "scale_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK=block)"
    ).replace("def scale(x):", "def scale(x, block=128):"),
    "autotune": scale(BY_META, decorator=f'@triton.autotune(configs={CONFIGS}, key=["n"])'),
    "autotune by name": scale(
        BY_META, before=f"CONFIGS = {CONFIGS}\n", decorator='@triton.autotune(CONFIGS, key=["n"])'
    ),
    "autotune by comprehension": scale(
        BY_META,
        decorator="@triton.autotune(\n    configs=[\n"
        '        triton.Config(dict(BLOCK=b), num_warps=w) for b in [128, 256] for w in (4, 8)\n'
        '    ],\n    key=["n"],\n)',
    ),
    "device guard and comments": scale(
        "BLOCK = 128\nwith torch.no_grad():\n"
        "    scale_kernel[(triton.cdiv(n, BLOCK),)](  # (launch)\n"
        "        x,\n        out,\n        (n),\n        BLOCK=(BLOCK),  # )\n    )"
    ),
}  # fmt: skip
"""Each spelling launches the same kernel; BLOCK can always be changed."""


def parsed(text: str, kernel: str | None = None) -> tuple[Module, Unit]:
    """The module and its first unit, or the unit of a kernel."""
    module = parse_module(text, "kernels.py")
    assert not module.problems
    units = [unit for unit in module.units if kernel in (None, unit.kernel.name)]
    return module, units[0]


def context(
    text: str,
    shapes: dict[str, tuple[int, ...]],
    target: str = "sm_90",
    dtype: str = "f32",
    scalars: tuple[str, ...] = (),
    **changes,
) -> Context:
    """A baseline node; ``changes`` go to the candidate."""
    module, unit = parsed(text)
    arguments = [
        TensorArgument(
            name, dtype, tuple(Extent(size) for size in shape), Values(Distribution.NORMAL)
        )
        for name, shape in shapes.items()
    ]
    case = Case((*arguments, *(ScalarArgument(name, "1") for name in scalars)))
    assert unit.entry is not None
    workload = Workload(unit.entry.qualified_name, WorkloadSource.DECLARED, (case,))
    identity = candidate_id(text)
    values = {
        "id": identity, "text": text, "parent": None, "structure": identity,
        "proposer": "baseline", "steps": (), "rules": (), "configuration": (),
        "numerics": Numerics.EXACT,
    }  # fmt: skip
    return Context(Candidate(**(values | changes)), module, unit, workload, target_named(target))
