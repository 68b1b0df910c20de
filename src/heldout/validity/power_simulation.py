"""Power of a test by simulation, on queries drawn from the differences of a pilot's pair.

Differences are drawn as they are, zeros and ties too, but some more often than others: with
probabilities that make their mean the one asked for and else change as little as possible
(exponential tilting). This says whether a plan by the t test holds on scores that are not normal,
and what other tests find. Source: Efron 1981, nonparametric tilting.
"""

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq

from heldout.stats.resampling import map_blocks
from heldout.stats.tests import run_test

__all__ = ["MOST_QUERIES", "Simulated", "SimulatedTest", "simulate_power"]

MOST_QUERIES = 20_000
"""Queries of a simulated set at most; a plan for more stands without a simulation."""

_BLOCK = 32

SimulatedTest = Literal["t", "signed-rank", "sign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A test on drawn queries.

    Attributes:
        test: its name.
        queries: drawn in each trial.
        difference: true mean difference.
        power: share of trials that are significant in the right direction.
        wrong: share that are significant in the wrong one.
        error: standard error of `power` that the number of trials leaves.
        trials: how many.
        why: why there is none, as where the pair has no difference so large, or where a set would
            have more than `MOST_QUERIES` queries; else "".
    """

    test: SimulatedTest
    queries: int
    difference: float
    trials: int
    power: float | None = None
    wrong: float | None = None
    error: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """What every trial needs: the arguments of `simulate_power`, and the differences' chances."""

    differences: NDArray[np.float64]
    chances: NDArray[np.float64]
    test: SimulatedTest
    queries: int
    alpha: float


def simulate_power(
    differences: NDArray[np.float64],
    test: SimulatedTest,
    rng: Generator,
    *,
    difference: float,
    queries: int,
    alpha: float = 0.05,
    trials: int = 1000,
    executor: Executor | None = None,
) -> Simulated:
    """How often a test is significant on queries drawn from a pair's differences.

    Args:
        differences: of a pilot pair, by query.
        test: a test of `stats.tests`.
        rng: where draws come from.
        difference: true mean difference, from 0.
        queries: drawn in each trial, at least 2.
        alpha: level of the two-sided test, in (0, 1).
        trials: how many, >= 1.
        executor: where to compute; `None` for here.

    Returns:
        Without a power where no differences are so large, and where the queries are too many.
    """
    chances = _tilt(differences, difference)
    if chances is None or queries > MOST_QUERIES:
        why = f"no difference of the pilot's pair lies beyond {difference:.4g}"
        if queries > MOST_QUERIES:
            why = f"more than {MOST_QUERIES:,} queries are not simulated"
        return Simulated(test=test, queries=queries, difference=difference, trials=trials, why=why)
    plan = _Plan(differences=differences, chances=chances, test=test, queries=queries, alpha=alpha)
    blocks = map_blocks(_draw, plan, rng=rng, draws=trials, size=_BLOCK, executor=executor)
    won, lost = (sum(counts) for counts in zip(*blocks, strict=True))
    share = won / trials
    return Simulated(
        test=test,
        queries=queries,
        difference=difference,
        power=share,
        wrong=lost / trials,
        error=math.sqrt(share * (1 - share) / trials),
        trials=trials,
    )


def _draw(plan: _Plan, rng: Generator, draws: int) -> tuple[int, int]:
    """How many query sets are significant in the right direction, and in the wrong one."""
    won = lost = 0
    for _ in range(draws):
        drawn = rng.choice(plan.differences, plan.queries, p=plan.chances)
        found = run_test(plan.test, np.zeros(plan.queries), drawn)
        if found.p is not None and found.p <= plan.alpha:
            right = (found.difference or 0.0) > 0
            won, lost = won + right, lost + (not right)
    return won, lost


def _tilt(differences: NDArray[np.float64], mean: float) -> NDArray[np.float64] | None:
    """Probabilities of the differences under which their mean is as asked; `None` if none are."""
    if not differences.min() < mean < differences.max():
        return None
    # In units of the deviation; beyond 700, exp leaves float64.
    unit = (differences - mean) / differences.std()
    limit = 700 / np.abs(unit).max()
    angle = brentq(lambda one: _chances(unit, one) @ unit, -limit, limit)
    return _chances(unit, float(angle))


def _chances(unit: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    heights = angle * unit
    raised = np.exp(heights - heights.max())
    chances: NDArray[np.float64] = raised / raised.sum()
    return chances
