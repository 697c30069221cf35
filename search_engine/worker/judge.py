"""The correctness rule, as pure functions of tensors.

With ``e_b`` and ``e_c`` the distances of baseline and candidate to the float64 truth::

    scale = max(|truth|, rms of its row)
    floor = roundings * u_out * scale + 4 * u_acc * G * max(scale, S / u_acc)
    gate  = 2 * u_out * scale + 2 * 4 * u_base * G_b * max(scale, S / u_acc)
    limit = factor * min(quantile(e_b, 0.999 within a block of rows), gate) + floor

``roundings`` is 1, or 2 where the baseline's own output stands for the truth: it was rounded as the
candidate's is, so two right kernels may lie a whole unit in the last place apart.

Every element of the candidate must stay within ``limit``, the baseline within ``gate``. The user's
own kernel is the yardstick, so no tolerance has to be guessed: g = 4 covers serial and tree sums
from 256 to 131 072 terms with a factor of two to spare.

Large outputs are judged in pieces, so that memory stays bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from search_engine.worker import judge_codes
from search_engine.worker.judge_blocks import block_quantile, row_length
from search_engine.worker.judge_types import Judgement, Miss, Rule

_G = 4.0
_RMS_FACTOR = 1.25
_PIECE = 1 << 24
"""Elements judged at once: 128 MiB for each float64 temporary."""
_FEWEST_FOR_COPY = 64
_HALF_ULP = {
    "bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53,
    "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3,
}  # fmt: skip


def half_ulp(dtype: Any) -> float:
    """Half a unit in the last place at 1."""
    return _HALF_ULP[str(dtype).removeprefix("torch.")]


def contract(baseline: Any, candidate: Any) -> str | None:
    """How the candidate's output differs in kind from the baseline's, or None."""
    for what in ("dtype", "shape", "device"):
        one, other = getattr(baseline, what), getattr(candidate, what)
        if one != other:
            return f"{what} is {_text(other)}, {_text(one)} before"
    if _real_strides(baseline) != _real_strides(candidate):
        return f"strides are {tuple(candidate.stride())}, {tuple(baseline.stride())} before"
    if type(candidate) is not type(baseline):
        return f"the output is a {type(candidate).__name__}"
    return None


def gate(expected: Any, baseline: Any, rule: Rule, spread: Any = None) -> Miss | None:
    """The first element in which the baseline disagrees with the truth, or None."""
    if expected.shape != baseline.shape:
        reason = f"shape {tuple(baseline.shape)} where the reference has {tuple(expected.shape)}"
        return Miss((), math.nan, math.nan, 0.0, reason)
    if judge_codes.is_coded(expected, baseline, rule):
        return judge_codes.gate(expected, baseline, rule)
    if not baseline.dtype.is_floating_point:
        return judge_codes.exact(expected, baseline, "differs from the reference")
    for piece in _pieces(expected, baseline, baseline, spread):
        pattern = piece.pattern_of_truth(baseline.dtype)
        limits = piece.gate(rule, half_ulp(baseline.dtype))
        wrong = pattern | (piece.baseline_error > limits)
        if bool(wrong.any()):
            reason = "the kernel disagrees with its reference"
            return piece.miss(wrong, piece.baseline, limits, baseline.shape, reason)
    return None


def judge(
    expected: Any, baseline: Any, candidate: Any, rule: Rule, spread: Any = None
) -> Judgement:
    """Judge one output of the candidate; ``contract`` holds for it."""
    if judge_codes.is_coded(expected, baseline, rule):
        return judge_codes.judge(expected, baseline, candidate, rule)
    if not candidate.dtype.is_floating_point:
        miss = judge_codes.exact(baseline, candidate, "integers must be equal")
        return Judgement(0.0, 0.0, miss)
    if rule.zero_mean and _is_copy(expected, baseline, rule):
        miss = judge_codes.exact(baseline, candidate, "the output is copied, not computed")
        return Judgement(0.0, 0.0, miss)
    return _judge_floats(expected, baseline, candidate, rule, spread)


def _judge_floats(
    expected: Any, baseline: Any, candidate: Any, rule: Rule, spread: Any
) -> Judgement:
    u_out = half_ulp(baseline.dtype)
    worst = worst_baseline = 0.0
    sums = _Sums()
    for piece in _pieces(expected, baseline, candidate, spread):
        limits = piece.limit(rule, u_out)
        wrong = piece.pattern_of_baseline() | (piece.candidate_error > limits)
        if bool(wrong.any()):
            return Judgement(
                math.inf, 0.0, piece.miss(wrong, piece.candidate, limits, baseline.shape, "")
            )
        worst = max(worst, float((piece.candidate_error / limits).max()))
        worst_baseline = max(worst_baseline, float((piece.baseline_error / limits).max()))
        sums.add(piece, rule, u_out)
    miss = sums.miss(rule, u_out) if rule.zero_mean else None
    return Judgement(worst, worst_baseline, miss)


@dataclass(slots=True)
class _Piece:
    """A [rows, columns] part of an output in float64, with the scale of each element."""

    start: int
    expected: Any
    baseline: Any
    candidate: Any
    scale: Any
    amplified: Any
    smallest: float

    @property
    def baseline_error(self) -> Any:
        return self._error(self.baseline)

    @property
    def candidate_error(self) -> Any:
        return self._error(self.candidate)

    def _error(self, values: Any) -> Any:
        finite = self.expected.isfinite() & values.isfinite()
        return (values - self.expected).abs().where(finite, 0.0)

    def pattern_of_baseline(self) -> Any:
        """Where NaN or infinities of the candidate differ from the baseline's."""
        return _pattern_differs(self.baseline, self.candidate)

    def pattern_of_truth(self, dtype: Any) -> Any:
        """Where NaN or infinities of the baseline differ from the truth rounded to its dtype."""
        return _pattern_differs(self.expected.to(dtype).double(), self.baseline)

    def gate(self, rule: Rule, u_out: float) -> Any:
        second = _G * rule.u_base * rule.baseline_growth * self.amplified
        return 2 * u_out * self.scale + 2 * second + self.smallest

    def floor(self, rule: Rule, u_out: float) -> Any:
        """A rounding of the candidate; where the truth is an output too, a rounding of its own."""
        roundings = 1 if rule.independent else 2
        computed = _G * rule.u_acc * rule.growth * self.amplified
        return roundings * u_out * self.scale + computed + self.smallest

    def yardstick(self, rule: Rule, u_out: float) -> Any:
        """The baseline's error, or what a right kernel may have where it is its own reference."""
        if rule.independent:
            return self.baseline_error
        return 0.5 * u_out * self.scale + 2 * rule.u_acc * rule.growth * self.amplified

    def limit(self, rule: Rule, u_out: float) -> Any:
        quantile = block_quantile(self.yardstick(rule, u_out))
        return rule.factor * quantile.minimum(self.gate(rule, u_out)) + self.floor(rule, u_out)

    def miss(self, wrong: Any, got: Any, limits: Any, shape: Any, reason: str) -> Miss:
        flat = int(wrong.reshape(-1).int().argmax())
        value, expected = (float(t.reshape(-1)[flat]) for t in (got, self.expected))
        odd = not (math.isfinite(value) and math.isfinite(expected))
        text = reason or ("NaN or infinity differs" if odd else "the error is over its limit")
        limit = float(limits.reshape(-1)[flat])
        return Miss(unravel(self.start + flat, tuple(shape)), value, expected, limit, text)


@dataclass(slots=True)
class _Sums:
    """Sums of squares over all pieces, for the comparison of root mean squares."""

    count: int = 0
    candidate: float = 0.0
    baseline: float = 0.0
    expected: float = 0.0
    scale: float = 0.0

    def add(self, piece: _Piece, rule: Rule, u_out: float) -> None:
        self.count += piece.expected.numel()
        self.candidate += _squares(piece.candidate_error)
        self.baseline += _squares(piece.yardstick(rule, u_out))
        self.expected += _squares(piece.expected.nan_to_num(0.0, 0.0, 0.0))
        self.scale += _squares(piece.amplified)

    def miss(self, rule: Rule, u_out: float) -> Miss | None:
        """A candidate whose error is larger throughout, though no element is over its limit."""
        rms = [
            math.sqrt(total / max(self.count, 1))
            for total in (self.candidate, self.baseline, self.expected, self.scale)
        ]
        limit = (
            _RMS_FACTOR * rms[1]
            + 0.02 * 2 * u_out * rms[2]
            + 0.5 * rule.u_acc * rule.growth * rms[3]
        )
        if rms[0] <= limit:
            return None
        return Miss((), rms[0], rms[1], limit, "the error is larger throughout (root mean square)")


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the ``flat``-th element in row-major order."""
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _pieces(expected: Any, baseline: Any, candidate: Any, spread: Any) -> Iterator[_Piece]:
    import torch

    columns = row_length(tuple(baseline.shape))
    if baseline.numel() == 0:
        return
    flat = [t.reshape(-1, columns) for t in (expected, baseline, candidate)]
    moved = None if spread is None else spread.reshape(-1, columns)
    info = torch.finfo(baseline.dtype)
    smallest = float(info.smallest_normal) * float(info.eps)
    rows = flat[0].shape[0]
    step = max(_PIECE // columns, 1)
    for row in range(0, rows, step):
        part = slice(row, row + step)
        rms = _row_rms(flat[0][part])
        amplified = None if moved is None else moved[part].amax(1, keepdim=True) / 2.0**-24
        for column in range(0, columns, _PIECE):
            cut = slice(column, column + _PIECE)
            e, b, c = (t[part, cut].double() for t in flat)
            scale = e.abs().nan_to_num(0.0, 0.0, 0.0).maximum(rms)
            amplification = scale if amplified is None else scale.maximum(amplified)
            start = row * columns + column
            yield _Piece(start, e, b, c, scale, amplification, smallest)


def _row_rms(rows: Any) -> Any:
    """Root mean square of the finite elements of each row, as a column."""
    total, count = 0.0, 0.0
    for column in range(0, rows.shape[1], _PIECE):
        part = rows[:, column : column + _PIECE].double()
        finite = part.isfinite()
        total = total + part.where(finite, 0.0).square().sum(1, keepdim=True)
        count = count + finite.sum(1, keepdim=True)
    return (total / count.clamp(min=1)).sqrt()  # pyright: ignore[reportAttributeAccessIssue]


def _pattern_differs(one: Any, other: Any) -> Any:
    infinite = one.isinf()
    differs = (one.isnan() != other.isnan()) | (infinite != other.isinf())
    return differs | (infinite & other.isinf() & (one != other))


def _is_copy(expected: Any, baseline: Any, rule: Rule) -> bool:
    """True if the baseline is exact everywhere on continuous values, as copies and maxima are."""
    if not rule.independent or baseline.numel() < _FEWEST_FOR_COPY:
        return False
    pieces = _pieces(expected, baseline, baseline, None)
    return not any(bool((piece.baseline_error != 0).any()) for piece in pieces)


def _squares(values: Any) -> float:
    return float(values.square().sum())


def _real_strides(tensor: Any) -> tuple[int, ...]:
    """Strides of the dimensions in which they matter."""
    if tensor.numel() == 0:
        return ()
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tuple(stride for size, stride in pairs if size > 1)


def _text(value: Any) -> str:
    return str(tuple(value)) if hasattr(value, "__len__") else str(value).removeprefix("torch.")
