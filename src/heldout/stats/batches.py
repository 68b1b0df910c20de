"""The tests of two systems for many samples at once, from their counts and sums.

What `tests.run_test` says of two systems by `t` and by `signed-rank` is said here of many pairs,
from samples with their values counted (`exact.gather_samples`). The answers are the same, up to the
rounding of sums. Arrays of p-values have any common shape; NaN stands for undefined, and a p is
never 0.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtr, stdtr, stdtrit

from heldout.stats import rank_tests
from heldout.stats.exact import Samples
from heldout.stats.results import SMALLEST, TestColumns

_COUNTS = 1 << 21
_NEAR = 1e-9

_Numbers = NDArray[Any]
Ps = NDArray[np.float64]


def sign_p(wins: _Numbers, losses: _Numbers) -> Ps:
    """The exact binomial test of wins against losses; undefined where there are none."""
    fewer, total = np.minimum(wins, losses), wins + losses
    # Many pairs have the same counts; powers of two, so that few tables are made
    width = 1 << int(np.max(total, initial=0)).bit_length()
    if width * width > _COUNTS:
        return _p(2 * bdtr(fewer.astype(np.float64), total, 0.5), total > 0)
    found: Ps = _sign_table(width).take(fewer * width + total)
    return found


@cache
def _sign_table(width: int) -> Ps:
    """Of every two counts with a sum below the width, by the smaller one and the sum."""
    fewer, total = np.divmod(np.arange(width * width), width)
    table = np.full(width * width, np.nan)
    there = np.flatnonzero(2 * fewer <= total)
    fewer, total = fewer[there], total[there]
    table[there] = _p(2 * bdtr(fewer.astype(np.float64), total, 0.5), total > 0)
    return table


def signed_rank_p(
    doubled: _Numbers,
    ties: _Numbers,
    *,
    wins: _Numbers,
    losses: _Numbers,
) -> Ps:
    """Wilcoxon's signed-rank test by the normal approximation, with its continuity correction.

    Args:
        doubled: twice the sum of ranks of positive differences, ranked without those of 0.
        ties: sum of t³ - t over equal differences that are not 0.
        wins: positive differences.
        losses: negative differences.

    Returns:
        Undefined where every difference is 0.
    """
    used = (wins + losses).astype(np.float64)
    squares = used * (used + 1) * (2 * used + 1) / 6 - ties / 12  # of the ranks
    return _normal_p(doubled / 2 - used * (used + 1) / 4, squares / 4, some=used > 0)


def rank_sum_p(doubled: _Numbers, ties: _Numbers, *, size: _Numbers | int) -> Ps:
    """The rank-sum test of two samples of one size, corrected for ties and continuity.

    Args:
        doubled: twice the sum of the second sample's ranks among both.
        ties: sum of t³ - t over equal scores.
        size: of each sample.

    Returns:
        Undefined where all scores are the same.
    """
    each = np.asarray(size, np.float64)
    both = 2 * each
    spread = both + 1 - ties / (both * (both - 1))
    deviation = doubled / 2 - each * (both + 1) / 2
    return _normal_p(deviation, each * each / 12 * spread, some=ties < both**3 - both)


def t_p(
    mean: _Numbers, squares: _Numbers, *, size: _Numbers | int, near: float | None = None
) -> Ps:
    """The paired t test.

    Args:
        mean: of the differences.
        squares: sum of their squared distances from it.
        size: of each sample, >= 2.
        near: a level that p is compared with, where no more is asked: a p that is not within
            1e-9 of it may be any other number on its side of the level. `None`: every p counts.

    Returns:
        Undefined where `squares` is 0: every difference is the same.
    """
    each = np.asarray(size, np.float64)
    some = squares > 0
    error = np.sqrt(np.where(some, squares, 1.0) / (each - 1) / each)
    t = np.abs(mean) / error
    if near is None:
        return _p(2 * stdtr(each - 1, -t), some)
    least, most = (
        np.inf if level <= 0 else -stdtrit(each - 1, level / 2)
        for level in (near + _NEAR, near - _NEAR)
    )
    p = np.where(t > most, 0.0, 1.0)
    unsure = (t >= least) & (t <= most)
    p[unsure] = 2 * stdtr(np.broadcast_to(each - 1, t.shape)[unsure], -t[unsure])
    return _p(p, some)


def _normal_p(deviation: Ps, variance: Ps, *, some: NDArray[np.bool_]) -> Ps:
    error = np.sqrt(np.where(some, variance, 1.0))
    return _p(2 * ndtr((0.5 - np.abs(deviation)) / error), some)


def _p(values: Ps, some: NDArray[np.bool_]) -> Ps:
    return np.where(some, np.clip(values, SMALLEST, 1.0), np.nan)


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_EMPTY = "no query"
_SINGLE = "a single query says nothing of others"
_SAME = "every difference is the same: there is no standard error"
_ZERO = "every difference is 0"
_FEW = "too few differences for an interval: {used}"
_REASONS = (None, _EMPTY, _SINGLE, _SAME, _ZERO, _FEW)


def t_tests(samples: Samples, *, level: float) -> TestColumns:
    """The paired t test of each sample of differences, two-sided.

    Args:
        samples: differences B - A.
        level: of the intervals, between 0 and 1.
    """
    moments = _moments(samples)
    mean, some = moments.mean, moments.squares > 0
    half = stdtrit(moments.freedom, (1 + level) / 2) * moments.error
    return TestColumns(
        **_common(samples, samples.sizes, "t", level),
        difference=_where(samples.sizes > 0, mean),
        low=_where(some, mean - half),
        high=_where(some, mean + half),
        statistic=_where(some, mean / moments.error),
        p=_where(some, t_p(mean, moments.squares, size=np.maximum(samples.sizes, 2))),
        why=_why(samples.sizes, {_SAME: ~some}),
    )


def mean_above_p(samples: Samples, *, null: float, below: bool = False) -> Floats:
    """One-sided p of the t test: is the mean difference above a null?

    Args:
        samples: differences B - A.
        null: the mean under the null hypothesis.
        below: whether to ask for a mean below it instead.

    Returns:
        For each sample; NaN where all differences are the same, or there is at most one.
    """
    moments = _moments(samples)
    statistic = (moments.mean - null) / moments.error
    tail = stdtr(moments.freedom, statistic if below else -statistic)
    return _where(moments.squares > 0, np.clip(tail, SMALLEST, 1.0))


class _Moments(NamedTuple):
    """Means, squared distances from them, and standard errors; 1 where there is no error."""

    mean: Floats
    squares: Floats
    freedom: Floats
    error: Floats


def _moments(samples: Samples) -> _Moments:
    mean = samples.means()
    squares = samples.squares(mean)
    freedom = np.maximum(samples.sizes - 1.0, 1.0)
    error = np.sqrt(squares / freedom / np.maximum(samples.sizes, 1))
    return _Moments(mean, squares, freedom, np.where(squares > 0, error, 1.0))


def signed_rank_tests(samples: Samples, *, level: float, compiled: bool = False) -> TestColumns:
    """The signed-rank test of each sample of differences, two-sided.

    Args:
        samples: differences B - A; equal ones are equal floats.
        level: of the intervals, between 0 and 1.
        compiled: whether numba is used where it is installed; the answer is the same.
    """
    moved = samples.without_zeros()
    used = moved.sizes
    tested = (samples.sizes > 1) & (used > 0)
    estimates = rank_tests.estimate_pseudomedians(moved, level=level, compiled=compiled)
    ranks = moved.rank_sizes()
    p = signed_rank_p(ranks.above, ranks.ties, wins=ranks.wins, losses=ranks.losses)
    ends = np.cumsum(np.bincount(ranks.owners, minlength=len(used)))
    for sample in np.flatnonzero(tested & (used <= rank_tests.EXACT_AT_MOST)):
        part = slice(ends[sample - 1] if sample else 0, ends[sample])
        doubled = np.repeat(ranks.doubled[part], ranks.tied[part])
        p[sample] = rank_tests.exact_p(doubled / 2, ranks.above[sample] / 2, "two-sided")
    return TestColumns(
        **_common(samples, used, "signed-rank", level),
        difference=estimates.centre,
        low=estimates.low,
        high=estimates.high,
        statistic=_where(tested, ranks.above / 2),
        p=_where(tested, p),
        why=_why(samples.sizes, {_ZERO: used == 0, _FEW: np.isnan(estimates.low)}),
    )


def _why(sizes: NDArray[np.int64], others: Mapping[str, Flags]) -> NDArray[np.int8]:
    """Places in `_REASONS`: of samples that are too small, then of the first other one."""
    reasons = {_EMPTY: sizes == 0, _SINGLE: sizes == 1, **others}
    positions = [_REASONS.index(reason) for reason in reasons]
    return np.select(list(reasons.values()), positions, 0).astype(np.int8)


def _where(some: Flags, values: Floats) -> Floats:
    """Numbers where they are defined, else NaN."""
    return np.where(some, values, np.nan)


def _common(samples: Samples, used: NDArray[np.int64], test: str, level: float) -> dict[str, Any]:
    """Return what the columns of both tests have in common."""
    return {
        "test": test,
        "level": level,
        "n": samples.sizes.astype(np.int32),
        "used": used.astype(np.int32),
        "reasons": _REASONS,
    }
