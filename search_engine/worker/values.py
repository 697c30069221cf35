"""Values of tensor arguments: seeded draws for each distribution, and the variants of the plan.

Tensors of at most ``HOST_ELEMENTS`` elements are drawn on the CPU, so that a seed gives the same
values with and without a device; larger ones are drawn where they live, because a transfer would
cost more than the check itself.
"""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import Any

from search_engine.domain.workload import Distribution, TensorArgument

HOST_ELEMENTS = 1 << 22
"""16 MiB of float32: a draw of some 30 ms on one core."""

_TORCH_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "b1": "bool", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip

_OUTLIER = 1e3
_LARGE_MEAN = 300.0
"""Sums of squares lose eight bits at this ratio of mean to deviation; f16 still holds it."""
_MOST_DISTINCT = 1 << 26


class Variant(enum.Enum):
    """What is done to normally distributed inputs; the other distributions stay as declared."""

    NORMAL = "as declared"
    TRIPLED = "three times as large"
    HUNDREDTH = "a hundredth"
    NEGATED = "negated"
    CONSTANT_ROWS = "constant rows"
    OUTLIER = "one huge outlier"
    LARGE_MEAN = "mean 300, deviation 1"
    DENORMALS = "denormals"
    TIES = "many ties"
    ZEROS = "positive and negative zeros"
    INFINITE = "some infinities"
    NAN = "some NaN"

    @property
    def zero_mean(self) -> bool:
        """True where sums cancel as they do for the declared values."""
        return self in (Variant.NORMAL, Variant.TRIPLED, Variant.HUNDREDTH, Variant.NEGATED)


def torch_dtype(name: str) -> Any:
    """The torch dtype of a workload's dtype name."""
    import torch

    return getattr(torch, _TORCH_NAMES[name])


def is_float(name: str) -> bool:
    """True for dtypes whose arithmetic rounds."""
    return name[0] == "f" or name == "bf16"


def draw(argument: TensorArgument, variant: Variant, seed: int, device: str, root: Path) -> Any:
    """A contiguous tensor of the argument's shape and dtype on ``device``.

    Raises ValueError if the distribution cannot fill the shape, OSError if recorded values are
    missing.
    """
    import torch

    count = math.prod(argument.shape)
    where = "cpu" if count <= HOST_ELEMENTS else device
    generator = torch.Generator(device=where).manual_seed(seed)
    flat = _flat(argument, count, generator, where, root)
    if argument.values.distribution is Distribution.NORMAL:
        flat = _varied(torch, flat.reshape(argument.shape), variant, argument, generator)
    dtype = torch_dtype(argument.dtype)
    return _clamped(torch, flat, argument.dtype).reshape(argument.shape).to(dtype).to(device)


def _flat(argument: TensorArgument, count: int, generator: Any, where: str, root: Path) -> Any:
    import torch

    kind, parameters = argument.values.distribution, argument.values.parameters
    if kind is Distribution.NORMAL:
        scale, mean = parameters or (1.0, 0.0)
        drawn = torch.randn(count, generator=generator, device=where, dtype=torch.float32)
        return drawn.mul_(scale).add_(mean)
    if kind is Distribution.UNIFORM:
        low, high = parameters
        drawn = torch.rand(count, generator=generator, device=where, dtype=torch.float32)
        return drawn.mul_(high - low).add_(low)
    if kind is Distribution.BERNOULLI:
        drawn = torch.rand(count, generator=generator, device=where)
        return drawn < (parameters[0] if parameters else 0.5)
    if kind is Distribution.ZEROS:
        return torch.zeros(count, device=where)
    if kind is Distribution.ARANGE:
        return torch.arange(count, device=where)
    if kind is Distribution.RECORDED:
        return _recorded(argument, root)
    return _integers(torch, kind, parameters, count, generator, where)


def _integers(
    torch: Any, kind: Distribution, parameters: tuple[float, ...], count: int, g: Any, where: str
) -> Any:
    if kind is Distribution.PERMUTATION:
        return torch.randperm(count, generator=g, device=where)
    if kind is Distribution.DISTINCT:
        total = int(parameters[0])
        if not count <= total <= _MOST_DISTINCT:
            raise ValueError(f"distinct {total} cannot fill {count} elements")
        return torch.randperm(total, generator=g, device=where)[:count]
    low, high = (0, int(parameters[0])) if kind is Distribution.OFFSETS else map(int, parameters)
    drawn = torch.randint(low, high + 1, (count,), generator=g, device=where)
    if kind is Distribution.INTEGERS:
        return drawn
    drawn = drawn.sort().values
    if kind is Distribution.OFFSETS and count:
        drawn[0] = 0
        drawn[-1] = high if count > 1 else 0
    return drawn


def _recorded(argument: TensorArgument, root: Path) -> Any:
    import torch

    if argument.values.file is None:
        raise ValueError(f"`{argument.name}` has no recorded values")
    values = torch.load(root / argument.values.file, weights_only=True)
    if tuple(values.shape) != argument.shape:
        raise ValueError(f"recorded values of `{argument.name}` have shape {tuple(values.shape)}")
    return values


_FACTORS = {
    Variant.NORMAL: 1.0, Variant.TRIPLED: 3.0, Variant.HUNDREDTH: 0.01, Variant.NEGATED: -1.0,
}  # fmt: skip


def _varied(torch: Any, x: Any, variant: Variant, argument: TensorArgument, g: Any) -> Any:
    """``x`` is float32 of the argument's shape, owned by the caller."""
    if variant in _FACTORS:
        return x * _FACTORS[variant]
    match variant:
        case Variant.CONSTANT_ROWS:
            return x[..., :1].expand(x.shape) if x.dim() and x.shape[-1] else x
        case Variant.LARGE_MEAN:
            return x + _LARGE_MEAN
        case Variant.DENORMALS:
            return x * _smallest_normal(torch, argument.dtype) * 0.25
        case Variant.TIES:
            return x.round()
        case Variant.ZEROS:
            return torch.copysign(torch.zeros_like(x), x)
        case Variant.OUTLIER:
            return _planted(torch, x, (_OUTLIER,), g)
        case Variant.INFINITE:
            return _planted(torch, x, (math.inf, -math.inf), g)
        case _:
            return _planted(torch, x, (math.nan,), g)


def _planted(torch: Any, x: Any, values: tuple[float, ...], generator: Any) -> Any:
    """One of each value somewhere in the tensor; most rows keep none."""
    flat = x.reshape(-1).clone()
    for value in values[: flat.numel()]:
        where = torch.randint(0, flat.numel(), (1,), generator=generator, device=flat.device)
        flat[where] = value
    return flat.reshape(x.shape)


def _smallest_normal(torch: Any, dtype: str) -> float:
    # Wider types keep float32's, since the draw is made in float32.
    return max(float(torch.finfo(torch_dtype(dtype)).tiny), float(torch.finfo(torch.float32).tiny))


def _clamped(torch: Any, x: Any, dtype: str) -> Any:
    """Large finite values stay finite in narrow dtypes; infinities and NaN stay as they are."""
    if not is_float(dtype) or not x.is_floating_point():
        return x
    limit = float(torch.finfo(torch_dtype(dtype)).max)
    return torch.where(x.isfinite(), x.clamp(-limit, limit), x) if limit < 1e6 else x
