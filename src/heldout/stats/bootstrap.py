"""The bootstrap test of two systems by the shift method, and the interval that belongs to it."""

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.exact import ROUNDING, differences, orient
from heldout.stats.results import Alternative, Ask, Found

__all__ = ["bootstrap_test"]

_CELLS = 1 << 20
Scores = NDArray[np.float64]


def bootstrap_test(a: Scores, b: Scores, ask: Ask, *, draws: int, rng: Generator) -> Found:
    """Is the mean difference larger than resampling around 0 makes it?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
        draws: of as many queries as there are, with replacement, >= 1.
        rng: where they come from.

    Returns:
        p is (1 + hits) / (1 + draws): resampled means, shifted to have mean 0, that are at least
        as far out. The interval is the basic one, reflected at the mean.
    """
    difference = differences(a, b)
    oriented = orient(difference, ask.alternative)
    values, centre = oriented.values, abs(oriented.mean)
    if not np.ptp(values):
        why = "every difference is the same: resampling moves nothing"
        return Found(used=len(a), difference=oriented.mean, why=why)
    moves = np.sort(_resample(values, draws, rng) - centre)
    close = ROUNDING * (1 + float(np.abs(values).max()))
    hits = _count_hits(moves, centre, close, oriented.alternative)
    place = math.floor(ask.alpha / 2 * (draws + 1) * (1 + ROUNDING))
    low, high = None, None
    if place:
        low, high = oriented.turn(centre - float(moves[-place]), centre - float(moves[place - 1]))
    return Found(
        used=len(a),
        difference=oriented.mean,
        low=low,
        high=high,
        statistic=oriented.mean,
        p=(1 + hits) / (1 + draws),
        why=None if place else f"too few draws for an interval: {draws}",
    )


def _count_hits(moves: Scores, centre: float, close: float, alternative: Alternative) -> int:
    """How many resampled means, shifted to 0, are at least as far out as the one found."""
    if alternative == "greater":
        return int(np.sum(moves >= centre - close))
    if alternative == "less":
        return int(np.sum(moves <= centre + close))
    return int(np.sum(np.abs(moves) >= centre - close))


def _resample(values: Scores, draws: int, rng: Generator) -> Scores:
    """Means of samples with replacement."""
    rows = max(1, _CELLS // len(values))
    parts = []
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), len(values))
        parts.append(values[rng.integers(0, len(values), size=shape)].mean(axis=1))
    return np.concatenate(parts)
