"""Outputs that are codes rather than numbers: integers, booleans, fp8 and rounded int8."""

from __future__ import annotations

from typing import Any

from search_engine.worker.judge_types import Judgement, Miss, Rule

_STEPPED_SHARE = 0.005
_INT8 = ("torch.int8", "torch.uint8")


def is_coded(expected: Any, baseline: Any, rule: Rule) -> bool:
    """True for fp8, and for int8 rounded from floats: there a code may differ by one step."""
    name = str(baseline.dtype)
    if name.startswith("torch.float8"):
        return True
    return name in _INT8 and rule.float_inputs and expected.dtype.is_floating_point


def exact(wanted: Any, got: Any, reason: str) -> Miss | None:
    """The first element in which two tensors differ, or None; NaN equals NaN, -0 equals 0."""
    import torch

    one, other = wanted.reshape(-1), got.reshape(-1)
    if one.dtype != other.dtype:
        common = torch.float64 if _any_float(one, other) else torch.int64
        one, other = one.to(common), other.to(common)
    differs = one != other
    if one.dtype.is_floating_point:
        differs &= ~(one.isnan() & other.isnan())
    if not bool(differs.any()):
        return None
    flat = int(differs.int().argmax())
    index = _unravel(flat, tuple(wanted.shape))
    return Miss(index, float(other[flat]), float(one[flat]), 0.0, reason)


def gate(expected: Any, baseline: Any, rule: Rule) -> Miss | None:
    """As ``judge``, for the baseline alone: it may be one step off anywhere."""
    del rule
    got = _codes(baseline, baseline.dtype)
    return _step_miss(_wanted(expected, got, baseline.dtype), got, expected, baseline)


def judge(expected: Any, baseline: Any, candidate: Any, rule: Rule) -> Judgement:
    """At most one step anywhere, and on no more elements than allowed."""
    del rule
    ours, theirs = _codes(candidate, baseline.dtype), _codes(baseline, baseline.dtype)
    wanted = _wanted(expected, theirs, baseline.dtype)
    miss = _step_miss(wanted, ours, expected, candidate)
    share = float((ours != wanted).double().mean()) if ours.numel() else 0.0
    before = float((theirs != wanted).double().mean()) if ours.numel() else 0.0
    limit = max(2 * before, _STEPPED_SHARE)
    if miss is None and share > limit:
        miss = Miss((), share, before, limit, "too many elements are one code step away")
    return Judgement(min(share / limit, 1.0), min(before / limit, 1.0), miss)


def _step_miss(wanted: Any, got: Any, expected: Any, values: Any) -> Miss | None:
    special = _is_special(wanted, values.dtype) | _is_special(got, values.dtype)
    wrong = ((wanted - got).abs() > 1) | (special & (wanted != got))
    if not bool(wrong.any()):
        return None
    flat = int(wrong.int().argmax())
    index = _unravel(flat, tuple(expected.shape))
    number = float(values.reshape(-1)[flat].float())
    return Miss(index, number, float(expected.reshape(-1)[flat]), 1.0, "more than one code step")


def _wanted(expected: Any, baseline_codes: Any, dtype: Any) -> Any:
    """Codes of the truth; where it does not fit, the baseline decides whether to saturate."""
    import torch

    wanted = _codes(expected, dtype)
    overflows = _is_special(wanted, dtype) & expected.reshape(-1).isfinite()
    return torch.where(overflows, baseline_codes, wanted)


def _codes(values: Any, dtype: Any) -> Any:
    """Codes in the order of the numbers they stand for, as int64."""
    import torch

    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        rounded = values.double().nan_to_num(0.0).round().clamp(info.min, info.max)
        return rounded.reshape(-1).long()
    bits = values.float().to(dtype).reshape(-1).view(torch.uint8).long()
    magnitude = bits & 0x7F
    return torch.where(bits >= 0x80, -magnitude, magnitude)


def _is_special(codes: Any, dtype: Any) -> Any:
    """NaN and infinity: the codes above the largest finite one."""
    import torch

    if not dtype.is_floating_point:
        return codes != codes
    largest = _codes(torch.tensor([float(torch.finfo(dtype).max)], device=codes.device), dtype)
    return codes.abs() > largest


def _any_float(*tensors: Any) -> bool:
    return any(t.dtype.is_floating_point for t in tensors)


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))
