"""Bootstrap confidence intervals: percentile and BCa.

Assumptions: queries are drawn independently from those that the measure is meant for. Both
intervals are for one number; looking at many of them needs a correction (`stats.sign_flips`).
Sources: Efron and Tibshirani 1993, chapters 13 and 14.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from heldout.stats.resample import bootstrap_means

__all__ = ["Interval", "IntervalMethod", "bca_interval", "mean_interval", "percentile_interval"]

IntervalMethod = Literal["percentile", "bca"]

_CONSTANT = "every draw gives the same value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval for one number.

    Attributes:
        estimate: the number itself.
        low, high: its ends, `None` where undefined.
        level: how often such intervals should hold the true value, in (0, 1).
        method: how it was made.
        draws: how many draws it is made of.
        why: why it is undefined, else "".
    """

    estimate: float
    low: float | None
    high: float | None
    level: float
    method: IntervalMethod
    draws: int
    why: str = ""


def mean_interval(
    values: NDArray[np.float64],
    rng: Generator,
    *,
    level: float = 0.95,
    method: IntervalMethod = "bca",
    trials: int = 10_000,
    executor: Executor | None = None,
) -> Interval:
    """An interval for the mean, as of differences between two systems query by query.

    Args:
        values: one finite number for each query, at least one.
        rng: where draws come from.
        level: in (0, 1).
        method: `bca` corrects for bias and for a variance that grows with the mean.
        trials: draws of the bootstrap, >= 1.
        executor: where to compute; `None` for here.

    Returns:
        An interval that is undefined for one value, and for values that are all equal.
    """
    draws = bootstrap_means(values[np.newaxis], rng, trials=trials, executor=executor)[:, 0]
    estimate = float(values.mean())
    if method == "percentile":
        return percentile_interval(draws, estimate, level=level)
    # The mean without one value, up to what all have in common.
    jackknife = (values.sum() - values) / max(len(values) - 1, 1)
    return bca_interval(draws, estimate, jackknife, level=level)


def percentile_interval(
    draws: NDArray[np.float64], estimate: float, *, level: float = 0.95
) -> Interval:
    """The quantiles of the draws.

    Args:
        draws: the number in each trial of a bootstrap, at least one.
        estimate: the number itself.
        level: in (0, 1).
    """
    tails = ((1 - level) / 2, (1 + level) / 2)
    if np.ptp(draws) == 0:
        return _interval(draws, estimate, level, "percentile", why=_CONSTANT)
    return _interval(draws, estimate, level, "percentile", tails)


def bca_interval(
    draws: NDArray[np.float64],
    estimate: float,
    jackknife: NDArray[np.float64],
    *,
    level: float = 0.95,
) -> Interval:
    """Quantiles of the draws, moved for their bias and for their acceleration.

    Args:
        draws: the number in each trial of a bootstrap, at least one.
        estimate: the number itself. Draws equal to it count as half below.
        jackknife: the number without each query in turn.
        level: in (0, 1).

    Returns:
        An interval that is undefined where all draws, or all of the jackknife, are equal, and
        where no draw lies on one side of the estimate.
    """
    if np.ptp(draws) == 0 or np.ptp(jackknife) == 0:
        return _interval(draws, estimate, level, "bca", why=_CONSTANT)
    below = (np.mean(draws < estimate) + np.mean(draws <= estimate)) / 2
    if below in (0, 1):
        why = "every draw lies on one side of the estimate"
        return _interval(draws, estimate, level, "bca", why=why)
    pull = jackknife.mean() - jackknife
    acceleration = np.sum(pull**3) / (6 * np.sum(pull**2) ** 1.5)
    bias = ndtri(below)
    at = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
    moved = ndtr(bias + at / (1 - acceleration * at))
    return _interval(draws, estimate, level, "bca", (float(moved[0]), float(moved[1])))


def _interval(
    draws: NDArray[np.float64],
    estimate: float,
    level: float,
    method: IntervalMethod,
    tails: Sequence[float] = (),
    *,
    why: str = "",
) -> Interval:
    ends = np.quantile(draws, tails).tolist() if tails else (None, None)
    return Interval(
        estimate=estimate,
        low=ends[0],
        high=ends[1],
        level=level,
        method=method,
        draws=len(draws),
        why=why,
    )
