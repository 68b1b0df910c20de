"""Student's t: of paired differences, and of two samples with equal or unequal variances."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from heldout.stats.exact import differences
from heldout.stats.result import Ask, Found, choose_tail

__all__ = ["Variances", "compare_mean", "paired_t_test", "unpaired_t_test", "welch_freedom"]

Variances = Literal["welch", "student"]
Scores = NDArray[np.float64]


def paired_t_test(a: Scores, b: Scores, ask: Ask) -> Found:
    """The paired t test: is the mean difference 0?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
    """
    return compare_mean(differences(a, b), ask)


def compare_mean(difference: Scores, ask: Ask, *, null: float = 0.0) -> Found:
    """The t test of one sample.

    Args:
        difference: of the queries; equal ones are equal floats.
        ask: direction and level.
        null: the mean under the null hypothesis.
    """
    centre = _moments(difference)
    if not centre.variance:
        return Found(
            used=centre.size,
            difference=centre.mean,
            why="every difference is the same: there is no standard error",
        )
    error = math.sqrt(centre.variance / centre.size)
    return _compare(centre.mean, error, centre.size - 1, ask, used=centre.size, null=null)


def unpaired_t_test(a: Scores, b: Scores, ask: Ask, *, kind: Variances) -> Found:
    """The t test of two samples.

    Args:
        a: scores of A.
        b: scores of B, not necessarily on the same queries.
        ask: direction and level.
        kind: `welch` lets the variances differ, `student` takes them as equal.
    """
    first, second = _moments(a), _moments(b)
    used = first.size + second.size
    difference = second.mean - first.mean
    if not (first.variance or second.variance):
        why = "each system's scores are all the same: there is no standard error"
        return Found(used=used, difference=difference, why=why)
    if kind == "student":
        freedom = float(used - 2)
        pooled = (first.squares + second.squares) / freedom
        error = math.sqrt(pooled / first.size + pooled / second.size)
    elif min(first.size, second.size) < 2:  # noqa: PLR2004 - a variance needs two
        return Found(used=used, difference=difference, why="a system has a single score")
    else:
        parts = [sample.variance / sample.size for sample in (first, second)]
        error = math.sqrt(sum(parts))
        freedom = welch_freedom(parts, (first.size, second.size))
    return _compare(difference, error, freedom, ask, used=used)


def welch_freedom(variances: Sequence[float], sizes: Sequence[int]) -> float:
    """Degrees of freedom of a difference of two estimates (Welch and Satterthwaite).

    Args:
        variances: of the two estimates; not both 0.
        sizes: of their samples, each at least 2.
    """
    shares = [variance / sum(variances) for variance in variances]
    return 1 / sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))


class _Moments(NamedTuple):
    """Size, mean and sum of squares about it; the order of the values does not matter."""

    size: int
    mean: float
    squares: float

    @property
    def variance(self) -> float:
        return self.squares / (self.size - 1) if self.squares else 0.0


def _moments(values: Scores) -> _Moments:
    mean = math.fsum(values.tolist()) / len(values)
    # Equal values may differ from their rounded mean, and have no variance all the same
    squares = math.fsum(((values - mean) ** 2).tolist()) if np.ptp(values) > 0 else 0.0
    return _Moments(len(values), mean, squares)


def _compare(
    difference: float, error: float, freedom: float, ask: Ask, *, used: int, null: float = 0.0
) -> Found:
    """The result of a difference with its standard error and degrees of freedom."""
    statistic = (difference - null) / error
    half = float(stdtrit(freedom, (1 + ask.level) / 2)) * error
    return Found(
        used=used,
        difference=difference,
        low=difference - half,
        high=difference + half,
        statistic=statistic,
        p=choose_tail(
            greater=float(stdtr(freedom, -statistic)),
            less=float(stdtr(freedom, statistic)),
            alternative=ask.alternative,
        ),
    )
