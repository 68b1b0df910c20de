"""Power of the paired t test: what a number of queries finds, and how many queries it takes.

Assumptions: queries are drawn independently, and the mean difference is nearly normal; the t
statistic then has the noncentral t distribution, with noncentrality difference / deviation *
root of queries. Source: Cohen 1988, chapter 2; Sakai 2018, chapter 6.

`middle_spread` says how much the difference of two systems varies from query to query: the lower
median over the pairs, so that it is the deviation of some pair. Its interval is that of percentiles
over resampled queries; a resample's deviation is a little too small, by the root of (n - 1) / n,
which is corrected.
"""

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, ndtri, stdtrit

from heldout.stats.resampling import block_size, map_blocks

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
    points, weights = _rule()
    # Quantiles of the estimated variance over the true one: chi-square over its freedom
    spread = gammaincinv(freedom / 2, points) * (2 / freedom)
    edge = float(stdtrit(freedom, 1 - alpha / 2)) * np.sqrt(spread)
    return float(weights @ (ndtr(centre - edge) + ndtr(-centre - edge)))


@cache
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss and Legendre's points on (0, 1), and their weights."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    return (points + 1) / 2, weights / 2


def _check(alpha: float, power: float) -> None:
    if not 0 < alpha < power < 1:
        raise ValueError((alpha, power))


_ROUNDING = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle pair's standard deviation of differences, with its interval.

    Attributes:
        middle: lower median over all pairs.
        low, high: ends of the interval, which holds `middle`; both `None` where the middle pair of
            some resampling does not differ, as with few queries: such a deviation is no estimate.
    """

    middle: float
    low: float | None
    high: float | None


def pair_deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation (n - 1) of each pair's difference, pairs as of `numpy.triu_indices`.

    Args:
        values: finite, shape (systems, queries), both at least 2.
    """
    return _deviations(values, np.ones(values.shape[1]))


def middle_spread(
    values: NDArray[np.float64],
    rng: Generator,
    *,
    level: float = 0.95,
    trials: int = 1000,
    executor: Executor | None = None,
) -> Spread:
    """The deviation of the middle pair, and how far the sample of queries leaves it open.

    Args:
        values: finite, shape (systems, queries), both at least 2.
        rng: where draws come from.
        level: of the interval, in (0, 1).
        trials: resamplings of the queries, >= 1.
        executor: where to compute; `None` for here.
    """
    middle = float(np.quantile(pair_deviations(values), 0.5, method="lower"))
    size = block_size(values.size)
    blocks = map_blocks(_resample, values, rng=rng, draws=trials, size=size, executor=executor)
    found = np.concatenate(blocks)
    if not found.all():
        return Spread(middle=middle, low=None, high=None)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Spread(middle=middle, low=min(low, middle), high=max(high, middle))


def _resample(values: NDArray[np.float64], rng: Generator, draws: int) -> NDArray[np.float64]:
    queries = values.shape[1]
    right = np.sqrt(queries / (queries - 1))
    found = np.empty(draws)
    for draw in range(draws):
        counts = np.bincount(rng.integers(0, queries, queries), minlength=queries)
        found[draw] = right * np.quantile(_deviations(values, counts), 0.5, method="lower")
    return found


def _deviations(
    values: NDArray[np.float64], counts: NDArray[np.integer] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of queries drawn so many times each."""
    total = counts.sum()
    centred = values - (values @ counts / total)[:, None]
    products = (centred * counts) @ centred.T
    first, second = np.triu_indices(len(values), 1)
    own = products.diagonal()
    squares = own[first] + own[second] - 2 * products[first, second]
    deviations: NDArray[np.float64] = np.sqrt(
        np.where(squares > _ROUNDING * total, squares, 0.0) / (total - 1)
    )
    return deviations
