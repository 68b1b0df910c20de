"""How much the difference of two systems varies from query to query: the middle of all pairs.

The middle is the lower median over the pairs, so that it is the deviation of some pair. Its
interval is that of percentiles over resampled queries; a resample's deviation is a little too
small, by the root of (n - 1) / n, which is put right.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.blocks import block_size, map_blocks

__all__ = ["Spread", "middle_spread", "pair_deviations"]

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
