"""The slope of (reserve - public) over a group's own submissions, with an interval that holds.

Submissions of a team share their queries, and mostly most of their answers, so a least-squares
line over submissions takes for a trend what is one draw of queries. The interval here resamples
queries; that of least squares is given beside it, to show the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from heldout.stats.resampling import percentile_interval

__all__ = ["FEWEST", "Slope", "fit_slopes"]

FEWEST = 3
"""Submissions that a slope needs: through two points a line always goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """Change of (reserve - public) from one submission of a group to its next.

    Attributes:
        per_submission: by least squares over the submissions in the order they came.
        low, high: its interval by resampling queries; `None` where only means are known.
        low_all, high_all: the same for the slopes of all groups at once, by the greatest
            standardised deviation of any group in a draw.
        ols_low, ols_high: what least squares alone would say, which ignores that submissions
            share their queries: too narrow.
    """

    per_submission: float
    low: float | None
    high: float | None
    low_all: float | None
    high_all: float | None
    ols_low: float
    ols_high: float


def fit_slopes(
    gaps: NDArray[np.float64],
    groups: Sequence[Sequence[int]],
    draws: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    *,
    level: float,
) -> list[Slope | None]:
    """The slope of each group.

    Args:
        gaps: reserve - public of each entry.
        groups: places in `gaps` of each group's entries, in the order they came.
        draws: public and reserve means in each draw of queries, both of shape (draws, entries);
            `None` where only means are known.
        level: of the intervals, in (0, 1).

    Returns:
        A slope for each group, `None` for one with fewer than `FEWEST` entries.
    """
    chosen = [n for n, own in enumerate(groups) if len(own) >= FEWEST]
    weights = np.zeros((len(chosen), len(gaps)))
    for n, group in enumerate(chosen):
        weights[n, list(groups[group])] = _least_squares(len(groups[group]))
    found = weights @ gaps
    drawn = None if draws is None else (draws[1] - draws[0]) @ weights.T
    factor = None if drawn is None else _joint_factor(drawn, found, level)
    slopes: list[Slope | None] = [None] * len(groups)
    for n, group in enumerate(chosen):
        own = gaps[list(groups[group])]
        column = None if drawn is None else drawn[:, n]
        slopes[group] = _slope(float(found[n]), own, column, factor, level=level)
    return slopes


def _slope(
    estimate: float,
    gaps: NDArray[np.float64],
    drawn: NDArray[np.float64] | None,
    factor: float | None,
    *,
    level: float,
) -> Slope:
    low = high = width = None
    if drawn is not None:
        interval = percentile_interval(drawn, estimate, level=level)
        low, high = interval.low, interval.high
        width = None if factor is None or low is None else factor * float(drawn.std())
    error = _ols_width(gaps, estimate, level)
    return Slope(
        per_submission=estimate,
        low=low,
        high=high,
        low_all=None if width is None else estimate - width,
        high_all=None if width is None else estimate + width,
        ols_low=estimate - error,
        ols_high=estimate + error,
    )


def _least_squares(count: int) -> NDArray[np.float64]:
    """What each of so many values adds to the slope of their least-squares line over 1, 2, ..."""
    centred = np.arange(count, dtype=np.float64) - (count - 1) / 2
    return centred / float(np.sum(centred**2))


def _joint_factor(
    drawn: NDArray[np.float64], found: NDArray[np.float64], level: float
) -> float | None:
    """Standard errors to each side such that the intervals of all groups hold at once."""
    errors = drawn.std(axis=0)
    moves = errors > 0
    if not moves.any():
        return None
    greatest = np.max(np.abs(drawn - found)[:, moves] / errors[moves], axis=1)
    return float(np.quantile(greatest, level))


def _ols_width(gaps: NDArray[np.float64], slope: float, level: float) -> float:
    """Half the width of the interval by the residuals of the line."""
    count = len(gaps)
    steps = np.arange(count) - (count - 1) / 2
    residuals = gaps - gaps.mean() - slope * steps
    error = float(np.sqrt(np.sum(residuals**2) / (count - 2) / np.sum(steps**2)))
    return float(stdtrit(count - 2, (1 + level) / 2)) * error
