"""Differences across seeds and queries at once: a t test with crossed random effects.

Where two methods were each run with several seeds, queries and seeds are both samples: another seed
would have scored otherwise, on the same queries. A test over queries alone calls the luck of a seed
significant.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from heldout.stats.result import Alternative, TestResult, choose_tail

__all__ = ["NAME", "crossed_t"]

NAME = "crossed-t"
"""What the test is called in a `TestResult`."""

Floats = NDArray[np.float64]


def crossed_t(
    totals: Floats,
    weights: Floats,
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    null: float = 0.0,
) -> TestResult:
    """The t test of sum(totals) / sum(weights) across seeds and queries.

    The error of the ratio is a sum of three: of queries, of A's seeds and of B's seeds, each from
    the variance of its own means. What is left over belongs to all three and is counted in each,
    so the test is conservative, the less the more queries there are. A system with one seed is
    taken as it is: the test then speaks of that very run, not of its method.

    Args:
        totals: shape (seeds of A, seeds of B, queries); a difference B - A, times its weight.
        weights: the same shape, at least 0: 1, or 0 where there is no difference.
        alternative: the direction.
        level: of the interval.
        null: the difference under the null.

    Returns:
        n and `used` are queries, those used with a weight above 0. The options name the null, the
        degrees of freedom (Satterthwaite) and the shares of the variance. p is `None` with fewer
        than two queries, or where no difference varies.

    Assumes:
        Queries are independent, and so are seeds; seeds of A and of B have nothing in common;
        means are nearly normal, which with two or three seeds has to be believed.

    Source:
        Owen 2007, The pigeonhole bootstrap (variances add); Satterthwaite 1946.
    """
    whole = float(weights.sum())
    blank = TestResult(
        test=NAME,
        n=totals.shape[2],
        used=int((weights.sum(axis=(0, 1)) > 0).sum()),
        difference=float(totals.sum()) / whole if whole else None,
        low=None,
        high=None,
        level=level,
        alternative=alternative,
        statistic=None,
        p=None,
        why=None,
        options={"null": null},
    )
    if blank.difference is None:
        return replace(blank, why="no query has a difference")
    if blank.used < 2:  # noqa: PLR2004 - a variance needs two
        return replace(blank, why="a single query says nothing of others")
    rest = (totals - blank.difference * weights) / (whole / weights.size)
    parts = [_variance(rest.mean(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    if not any(variance for variance, _ in parts):
        return replace(blank, why="every difference is the same: there is no standard error")
    return _compare(blank, blank.difference, parts, null)


def _compare(
    blank: TestResult, ratio: float, parts: list[tuple[float, int]], null: float
) -> TestResult:
    """The result of a ratio with the parts of its variance and their degrees of freedom."""
    total = sum(variance for variance, _ in parts)
    freedom = total**2 / sum(variance**2 / free for variance, free in parts if free)
    error = math.sqrt(total)
    statistic = (ratio - null) / error
    half = float(stdtrit(freedom, (1 + blank.level) / 2)) * error
    names = ("share_seeds_a", "share_seeds_b", "share_queries")
    shares = {name: variance / total for name, (variance, _) in zip(names, parts, strict=True)}
    return replace(
        blank,
        low=ratio - half,
        high=ratio + half,
        statistic=statistic,
        p=choose_tail(
            greater=float(stdtr(freedom, -statistic)),
            less=float(stdtr(freedom, statistic)),
            alternative=blank.alternative,
        ),
        options={"null": null, "freedom": freedom, **shares},
    )


def _variance(means: Floats) -> tuple[float, int]:
    """The variance of the mean of some means, with its degrees of freedom; 0 of a single one."""
    free = len(means) - 1
    # Rounding alone is no variance
    if not free or np.ptp(means) <= 1e-12:  # noqa: PLR2004 - as for differences, exact.DECIMALS
        return 0.0, free
    return float(means.var(ddof=1)) / len(means), free
