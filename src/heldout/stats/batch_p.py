"""Two-sided p-values of many tests at once, from their counts and sums.

The formulas are those of `sign`, `wins`, `signed_rank`, `rank_sum` and `student`. Arrays have any
common shape. NaN stands for undefined: there is nothing to test. A p is never 0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtr, stdtr

from heldout.stats.rank_sum import Corrections
from heldout.stats.result import SMALLEST
from heldout.stats.signed_rank import Zeros

__all__ = ["rank_sum_p", "sign_p", "signed_rank_p", "t_p"]

Numbers = NDArray[Any]
Ps = NDArray[np.float64]


def sign_p(wins: Numbers, losses: Numbers) -> Ps:
    """The exact binomial test of wins against losses; undefined where there are none."""
    fewer = np.minimum(wins, losses).astype(np.float64)
    return _p(2 * bdtr(fewer, wins + losses, 0.5), wins + losses > 0)


def signed_rank_p(
    doubled: Numbers,
    ties: Numbers,
    *,
    wins: Numbers,
    losses: Numbers,
    size: Numbers | int,
    zeros: Zeros = "wilcox",
    continuity: bool = True,
) -> Ps:
    """Wilcoxon's signed-rank test by the normal approximation.

    Args:
        doubled: twice the sum of ranks of positive differences, ranked without those of 0.
        ties: sum of t³ - t over equal differences that are not 0.
        wins: positive differences.
        losses: negative differences.
        size: all differences.
        zeros: `wilcox` drops differences of 0 before ranking, `pratt` after it, `zsplit` gives
            half of their ranks to each side.
        continuity: whether the statistic is brought half a rank nearer to its mean.

    Returns:
        Undefined where every difference is 0.
    """
    used = (wins + losses).astype(np.float64)
    dropped = 0.0 if zeros == "wilcox" else size - used
    above = doubled / 2 + wins * dropped
    total = used + dropped
    mean = (total * (total + 1) - dropped * (dropped + 1)) / 4
    squares = _squares(total) - ties / 12
    # As in scipy, zsplit leaves the ranks of zeros in the variance
    shared = (dropped**3 - dropped) / 12 if zeros == "zsplit" else _squares(dropped)
    return _normal_p(above - mean, squares / 4 - shared / 4, continuity=continuity, some=used > 0)


def rank_sum_p(
    doubled: Numbers,
    ties: Numbers,
    *,
    size: Numbers | int,
    kind: Corrections = "mann-whitney",
) -> Ps:
    """The rank-sum test of two samples of one size.

    Args:
        doubled: twice the sum of the second sample's ranks among both.
        ties: sum of t³ - t over equal scores.
        size: of each sample.
        kind: `mann-whitney` corrects for ties and continuity, `ranksums` for neither.

    Returns:
        Undefined where all scores are the same.
    """
    each = np.asarray(size, np.float64)
    both = 2 * each
    corrected = kind == "mann-whitney"
    spread = both + 1 - (ties / (both * (both - 1)) if corrected else 0.0)
    deviation = doubled / 2 - each * (both + 1) / 2
    some = ties < both**3 - both
    return _normal_p(deviation, each * each / 12 * spread, continuity=corrected, some=some)


def t_p(mean: Numbers, squares: Numbers, *, size: Numbers | int) -> Ps:
    """The paired t test.

    Args:
        mean: of the differences.
        squares: sum of their squared distances from it.
        size: of each sample, >= 2.

    Returns:
        Undefined where `squares` is 0: every difference is the same.
    """
    each = np.asarray(size, np.float64)
    some = squares > 0
    error = np.sqrt(np.where(some, squares, 1.0) / (each - 1) / each)
    return _p(2 * stdtr(each - 1, -np.abs(mean) / error), some)


def _squares(count: Numbers | float) -> Numbers:
    """1² + 2² + … + count²."""
    return np.asarray(count * (count + 1) * (2 * count + 1) / 6)


def _normal_p(deviation: Ps, variance: Ps, *, continuity: bool, some: NDArray[np.bool_]) -> Ps:
    distance = np.abs(deviation) - (0.5 if continuity else 0.0)
    error = np.sqrt(np.where(some, variance, 1.0))
    return _p(2 * ndtr(-distance / error), some)


def _p(values: Ps, some: NDArray[np.bool_]) -> Ps:
    return np.where(some, np.clip(values, SMALLEST, 1.0), np.nan)
