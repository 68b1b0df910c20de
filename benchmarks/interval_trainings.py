"""Shares of discarded queries and learning curves, where the truth is known."""

import numpy as np
from interval_worlds import Held, Trial, holds
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.tests import run_test
from heldout.survivorship.discarded.judging import wilson

__all__ = ["curve_mean", "share"]

Floats = NDArray[np.float64]

_PAIRS = (1000.0, 2000.0, 4000.0, 8000.0)
_START, _SLOPE, _NOISE, _FALL = 0.3, 0.02, 0.01, 0.1


def share(truth: float, *, queries: int) -> Trial:
    """A share of queries, by Wilson."""

    def trial(rng: Generator, level: float) -> Held:
        return holds(*wilson(int(rng.binomial(queries, truth)), queries, level=level), truth)

    return trial


def curve_mean(*, seeds: int, fails: float) -> Trial:
    """The mean of trainings that differ by seed, of which some fall far short."""

    def trial(rng: Generator, level: float) -> Held:
        scores = draw_trainings(rng, 8000.0, seeds, fails)
        found = run_test("t", np.zeros(seeds), scores, level=level)
        return holds(found.low, found.high, expected(8000.0, fails))

    return trial


def expected(pairs: float, fails: float) -> float:
    """The mean score of trainings on so many pairs."""
    return float(_START + _SLOPE * np.log2(pairs / _PAIRS[0]) - fails * _FALL)


def draw_trainings(rng: Generator, pairs: float, seeds: int, fails: float) -> Floats:
    """Scores of trainings on so many pairs: a line in their logarithm, noise, and failures."""
    scores = expected(pairs, 0.0) + _NOISE * rng.standard_normal(seeds)
    fallen: Floats = scores - _FALL * (rng.random(seeds) < fails)
    return fallen
