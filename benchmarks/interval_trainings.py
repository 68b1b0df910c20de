"""Shares of discarded queries, a gain over BM25 and learning curves, where the truth is known."""

import numpy as np
from interval_worlds import Held, Trial, holds
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.rankers.playbook.fine_tuning import (
    Advice,
    CurveBaseline,
    CurvePoint,
    LearningCurve,
    advise,
)
from heldout.stats.resampling import mean_interval
from heldout.stats.tests import run_test
from heldout.survivorship.discarded.judging import wilson

__all__ = ["curve_mean", "gain_over_baseline", "pairs_needed", "per_doubling", "share"]

Floats = NDArray[np.float64]

_PAIRS = (1000.0, 2000.0, 4000.0, 8000.0)
_START, _SLOPE, _NOISE, _FALL = 0.3, 0.02, 0.01, 0.1
_TARGET_GAIN = 0.09


def share(truth: float, *, queries: int) -> Trial:
    """A share of queries, by Wilson."""

    def trial(rng: Generator, level: float) -> Held:
        return holds(*wilson(int(rng.binomial(queries, truth)), queries, level=level), truth)

    return trial


def gain_over_baseline(*, queries: int) -> Trial:
    """The wider ends of t and BCa, where a ranker gains a little and loses .9 on 1% of queries."""

    def trial(rng: Generator, level: float) -> Held:
        gains = 0.009 + 0.005 * rng.standard_normal(queries)
        gains -= 0.9 * (rng.random(queries) < 1 / 100)
        found = run_test("t", np.zeros(queries), gains, level=level)
        drawn = mean_interval(gains, rng, level=level, trials=499)
        if None in (found.low, found.high, drawn.low, drawn.high):
            return None
        low = min(found.low or 0.0, drawn.low or 0.0)
        return holds(low, max(found.high or 0.0, drawn.high or 0.0), 0.0)

    return trial


def curve_mean(*, seeds: int, fails: float) -> Trial:
    """The mean of trainings that differ by seed, of which some fall far short."""

    def trial(rng: Generator, level: float) -> Held:
        scores = draw_trainings(rng, 8000.0, seeds, fails)
        found = run_test("t", np.zeros(seeds), scores, level=level)
        return holds(found.low, found.high, expected(8000.0, fails))

    return trial


def per_doubling(*, seeds: int, fails: float) -> Trial:
    """The slope of a line through the last sizes."""

    def trial(rng: Generator, level: float) -> Held:
        ends = draw_advice(rng, seeds, fails, level).per_doubling_interval
        return None if ends is None else holds(*ends, _SLOPE)

    return trial


def pairs_needed(*, seeds: int) -> Trial:
    """How many pairs reach a score, by Fieller; samples without an upper end have no interval."""

    def trial(rng: Generator, level: float) -> Held:
        advice = draw_advice(rng, seeds, 0.0, level)
        truth = _PAIRS[0] * 2 ** (_TARGET_GAIN / _SLOPE)
        if advice.pairs_low is None or advice.pairs_high is None:
            return None
        return advice.pairs_low - 1 <= truth <= advice.pairs_high

    return trial


def expected(pairs: float, fails: float) -> float:
    """The mean score of trainings on so many pairs."""
    return float(_START + _SLOPE * np.log2(pairs / _PAIRS[0]) - fails * _FALL)


def draw_trainings(rng: Generator, pairs: float, seeds: int, fails: float) -> Floats:
    """Scores of trainings on so many pairs: a line in their logarithm, noise, and failures."""
    scores = expected(pairs, 0.0) + _NOISE * rng.standard_normal(seeds)
    fallen: Floats = scores - _FALL * (rng.random(seeds) < fails)
    return fallen


def draw_advice(rng: Generator, seeds: int, fails: float, level: float) -> Advice:
    """What the playbook says of a curve that is drawn."""
    points = tuple(
        CurvePoint(pairs=pairs, trials=tuple(draw_trainings(rng, pairs, seeds, fails).tolist()))
        for pairs in _PAIRS
    )
    curve = LearningCurve(
        measure="nDCG@10", baseline=CurveBaseline(name="bm25", mean=_START), points=points
    )
    return advise(curve, gain=_TARGET_GAIN, level=level)
