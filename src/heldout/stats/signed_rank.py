"""Wilcoxon's signed-rank test, with exact ties, exact or approximate, and its own interval."""

import math
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from heldout.errors import InputError, Problem
from heldout.stats.exact import differences
from heldout.stats.ranking import midranks
from heldout.stats.result import Alternative, Ask, Found, choose_tail, normal_p
from heldout.stats.walsh import WalshAverages

__all__ = [
    "EXACT_AT_MOST",
    "Method",
    "Zeros",
    "place_of_end",
    "rank_differences",
    "signed_rank_test",
]

Zeros = Literal["wilcox", "pratt", "zsplit"]
Method = Literal["auto", "exact", "approximate"]
Scores = NDArray[np.float64]

EXACT_AT_MOST = 50
"""Differences up to which `auto` is exact."""

_EXACT_LIMIT = 500


def signed_rank_test(
    a: Scores, b: Scores, ask: Ask, *, zeros: Zeros, continuity: bool, method: Method
) -> Found:
    """The signed-rank test of two systems; see `rank_differences`."""
    return rank_differences(
        differences(a, b), ask, zeros=zeros, continuity=continuity, method=method
    )


def rank_differences(
    difference: Scores, ask: Ask, *, zeros: Zeros, continuity: bool, method: Method
) -> Found:
    """Are the differences symmetric about 0?

    Args:
        difference: of the queries; equal ones are equal floats.
        ask: direction and level.
        zeros: `wilcox` drops differences of 0 before ranking, `pratt` after it, `zsplit` gives
            half of their ranks to each side.
        continuity: of the normal approximation.
        method: `exact` is the distribution of the given ranks, tied ones too, under all signs;
            `auto` is that up to 50 differences that are not 0.

    Raises:
        InputError: code `test-option`: `exact` with more than 500 differences.

    Returns:
        The difference is the pseudomedian of the differences that are not 0, under `zsplit` of
        all. Its interval counts Walsh averages as if no two differences were tied, which is
        conservative.
    """
    moved = difference[difference != 0]
    used = len(moved)
    if not used:
        centre = 0.0 if zeros == "zsplit" else None
        return Found(used=0, difference=centre, why="every difference is 0")
    if method == "exact" and used > _EXACT_LIMIT:
        raise InputError(
            Problem(
                code="test-option",
                path="test signed-rank",
                found=f"method exact with {used} differences",
                expected=f"at most {_EXACT_LIMIT}",
                hint="with so many the normal approximation is as good",
            )
        )
    kept = moved if zeros == "wilcox" else difference
    ranks = midranks(np.abs(kept))
    signed = ranks[kept != 0]
    above = float(signed[moved > 0].sum())
    if method == "exact" or (method == "auto" and used <= EXACT_AT_MOST):
        p = _exact_p(signed, above, ask.alternative)
    else:
        # scipy's zsplit leaves the ranks of zeros in the variance, and so does this
        spread = ranks if zeros == "zsplit" else signed
        error = math.sqrt(float(np.sum(spread**2))) / 2
        deviation = above - float(signed.sum()) / 2
        p = normal_p(deviation, error=error, continuity=continuity, alternative=ask.alternative)
    estimate, low, high = _estimate(difference if zeros == "zsplit" else moved, ask.level)
    return Found(
        used=used,
        difference=estimate,
        low=low,
        high=high,
        statistic=above,
        p=p,
        why=None if low is not None else f"too few differences for an interval: {used}",
    )


def _exact_p(ranks: Scores, above: float, alternative: Alternative) -> float:
    """The chance of such a sum of positive ranks when every sign is tossed."""
    doubled = np.rint(2 * ranks).astype(np.int64)
    chances = _sum_chances(doubled)
    place = round(2 * above)
    return choose_tail(
        greater=float(chances[place:].sum()),
        less=float(chances[: place + 1].sum()),
        alternative=alternative,
    )


def _sum_chances(weights: NDArray[np.int64]) -> Scores:
    """Chance of each sum, from 0, of weights that are each in or out by a fair coin."""
    chances = np.zeros(int(weights.sum()) + 1)
    chances[0], top = 1.0, 0
    for weight in weights.tolist():
        top += weight
        chances[weight : top + 1] += chances[: top + 1 - weight].copy()
        chances[: top + 1] /= 2
    return chances


def _estimate(values: Scores, level: float) -> tuple[float, float | None, float | None]:
    """The pseudomedian and the ends of its interval."""
    averages = WalshAverages(values)
    place = place_of_end(len(values), (1 - level) / 2)
    if place < 1:
        return averages.median(), None, None
    return averages.median(), averages.find(place), averages.find(averages.count + 1 - place)


def place_of_end(size: int, tail: float) -> int:
    """Place of the Walsh average that is an interval's lower end; below 1 where there is none.

    Args:
        size: differences, at least 1.
        tail: chance that is left below the interval, above 0 and at most 0.5.
    """
    if size <= EXACT_AT_MOST:
        return int(_untied_chances(size).searchsorted(tail, "right"))
    mean = size * (size + 1) / 4
    error = math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
    return math.floor(mean + 0.5 + float(ndtri(tail)) * error)


@cache
def _untied_chances(size: int) -> Scores:
    """Chance of each sum of positive ranks, or of a smaller one, where no two are tied."""
    return np.cumsum(_sum_chances(np.arange(1, size + 1)))
