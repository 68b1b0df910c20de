"""Power of the paired t test: what a number of queries finds, and how many queries it takes.

Assumptions: queries are drawn independently, and the mean difference is nearly normal; the t
statistic then has the noncentral t distribution, with noncentrality difference / deviation *
root of queries. Source: Cohen 1988, chapter 2; Sakai 2018, chapter 6.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, ndtri, stdtrit

__all__ = ["detectable_difference", "power_of_t", "queries_needed"]

_FEWEST = 2
_MANY = 1_000_000
_CLOSE = 1e-13
_POINTS = 400
"""Of the rule of integration; so many serve two queries as well."""


def power_of_t(queries: int, shift: float, *, alpha: float = 0.05) -> float:
    """The chance that the two-sided paired t test is significant.

    Args:
        queries: at least 2.
        shift: true mean difference over the standard deviation of differences, any sign.
        alpha: level of the test, in (0, 1).
    """
    return _power(queries, abs(shift) * math.sqrt(queries), alpha)


def detectable_difference(
    queries: int, deviation: float, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """The smallest true mean difference that is found with the power asked for.

    Args:
        queries: at least 2.
        deviation: standard deviation of the differences by query, from 0.
        alpha: level of the two-sided test, in (0, 1).
        power: in (alpha, 1).

    Raises:
        ValueError: one of them is out of range.
    """
    _check(alpha, power)
    if queries < _FEWEST or deviation < 0:
        raise ValueError((queries, deviation))
    # By halves: scipy.optimize takes longer to load than all else that `board new` does with it.
    low, high = 0.0, 1.0
    while _power(queries, high, alpha) < power:
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if _power(queries, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high * deviation / math.sqrt(queries)


def queries_needed(
    difference: float, deviation: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
    """The fewest queries that find a true mean difference with the power asked for.

    Args:
        difference: above 0, in the unit of the deviation.
        deviation: standard deviation of the differences by query, from 0.
        alpha: level of the two-sided test, in (0, 1).
        power: in (alpha, 1).

    Returns:
        At least 2. Above a million by the normal approximation, which is then within 2 queries.

    Raises:
        ValueError: one of them is out of range.
    """
    _check(alpha, power)
    if difference <= 0 or deviation < 0:
        raise ValueError((difference, deviation))
    if deviation == 0:
        return _FEWEST
    shift = difference / deviation
    normal = (float(ndtri(1 - alpha / 2) + ndtri(power)) / shift) ** 2
    if normal > _MANY:
        return math.ceil(normal)
    low, high = _FEWEST - 1, max(_FEWEST, math.ceil(normal))  # the first is too few
    while power_of_t(high, shift, alpha=alpha) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if power_of_t(middle, shift, alpha=alpha) < power:
            low = middle
        else:
            high = middle
    return high


def _power(queries: int, centre: float, alpha: float) -> float:
    """Both tails of the noncentral t: normal tails, averaged over the estimated deviation.

    scipy's own `nctdtr` has no number for many arguments.
    """
    freedom = queries - 1
    edge = float(stdtrit(freedom, 1 - alpha / 2)) * np.sqrt(_spread(freedom))
    return float(_rule()[1] @ (ndtr(centre - edge) + ndtr(-centre - edge)))


def _spread(freedom: int) -> NDArray[np.float64]:
    """Quantiles of the estimated variance over the true one: chi-square over its freedom."""
    quantiles: NDArray[np.float64] = gammaincinv(freedom / 2, _rule()[0]) * (2 / freedom)
    return quantiles


@cache
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss and Legendre's points on (0, 1), and their weights."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    return (points + 1) / 2, weights / 2


def _check(alpha: float, power: float) -> None:
    if not 0 < alpha < power < 1:
        raise ValueError((alpha, power))
