"""One order and one direction of differences, so that what is drawn does not depend on the input's.

Whoever swaps the systems or shuffles the queries gets the mirrored or the same result, also from
random draws of the same seed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.stats.result import Alternative

__all__ = ["ROUNDING", "Oriented", "orient"]

ROUNDING = 1e-12
"""Means are equal within this, and within this share of the size of what is averaged."""

_TURNED: dict[Alternative, Alternative] = {
    "two-sided": "two-sided",
    "greater": "less",
    "less": "greater",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Oriented:
    """Differences in ascending order, of the system that is better by mean less the other.

    Attributes:
        values: the differences; their sum is not negative.
        mean: the mean of the differences as they were given.
        alternative: the direction, turned as the differences are.
    """

    values: NDArray[np.float64]
    mean: float
    alternative: Alternative

    def turn(self, low: float | None, high: float | None) -> tuple[float | None, float | None]:
        """Turn an interval of `values` back."""
        if self.mean >= 0 or low is None or high is None:
            return low, high
        return -high, -low


def orient(difference: NDArray[np.float64], alternative: Alternative) -> Oriented:
    """Order differences, and turn them where A is better by mean."""
    mean = math.fsum(difference.tolist()) / len(difference)
    if mean >= 0:
        return Oriented(values=np.sort(difference), mean=mean, alternative=alternative)
    return Oriented(values=np.sort(-difference), mean=mean, alternative=_TURNED[alternative])
