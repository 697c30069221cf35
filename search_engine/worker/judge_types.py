"""What the correctness rule needs to know and what it says."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Parameters of the rule for one output on one input.

    ``reduction`` bounds the number of terms that one output element sums, ``terms`` estimates it;
    ``chain`` is the longest run of dependent additions that is granted to the candidate.
    ``u_acc`` is half an ulp of float32 (of float64 for float64 kernels), ``u_base`` that of the
    coarsest arithmetic in the baseline.
    """

    factor: float = 2.0
    reduction: int = 2
    terms: int = 2
    chain: int = 1
    baseline_chain: int = 1
    u_acc: float = 2.0**-24
    u_base: float = 2.0**-24
    zero_mean: bool = True
    independent: bool = True
    float_inputs: bool = True

    @property
    def growth(self) -> float:
        """Growth of the rounding error of a sum in the candidate."""
        return _growth(self.chain, self.reduction)

    @property
    def baseline_growth(self) -> float:
        """As ``growth``, for the baseline."""
        return _growth(max(self.baseline_chain, self.chain), self.reduction)


@dataclass(frozen=True, slots=True)
class Miss:
    """The first element that broke the rule; ``index`` is () for statements about all elements."""

    index: tuple[int, ...]
    got: float
    expected: float
    limit: float
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Largest errors over their limits, and the first element over it."""

    error: float
    baseline_error: float
    miss: Miss | None


def _growth(chain: int, reduction: int) -> float:
    return max(math.sqrt(chain), math.sqrt(math.log2(max(reduction, 2))), 1.0)
