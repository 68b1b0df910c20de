"""How small a difference between two systems a query set can show."""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from heldout.scores import ScoreTable
from heldout.stats.power import detectable_difference

__all__ = ["ASSUMED", "Resolution", "Spread", "measure_spread", "resolve"]

_FEWEST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How much the difference of two systems varies from query to query.

    Attributes:
        deviation: standard deviation of the paired difference, in the measure's unit.
        source: `pilot` where it was measured, `assumed` where it was not.
        why: where the figure comes from, in words.
    """

    deviation: float
    source: Literal["pilot", "assumed"]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The smallest true difference that a query set finds.

    Attributes:
        queries: number averaged over.
        difference: smallest true mean difference that a paired two-sided t test at `alpha` finds
            with `power`, in the measure's unit; `None` for fewer than two queries.
        alpha: level of the test.
        power: share of the tests that find it.
        spread: what was put in for the variation between queries.
        why: why there is no difference; empty where there is one.
    """

    queries: int
    difference: float | None
    alpha: float
    power: float
    spread: Spread
    why: str = ""


def _assume(deviation: float, correlation: float) -> Spread:
    return Spread(
        deviation=deviation * math.sqrt(2 * (1 - correlation)),
        source="assumed",
        why=(
            f"assumed: per query, scores have a standard deviation of {deviation:.2f}, and those "
            f"of two systems a correlation of {correlation:.2f}"
        ),
    )


ASSUMED = _assume(0.40, 0.67)
"""What reciprocal ranks with one known relevant document are like; said wherever it is used."""


def resolve(queries: int, spread: Spread, *, alpha: float = 0.05, power: float = 0.8) -> Resolution:
    """The smallest difference that a number of queries tells apart.

    Args:
        queries: number averaged over.
        spread: of the paired difference.
        alpha: level of the two-sided test, between 0 and 1.
        power: between alpha and 1.

    Raises:
        ValueError: one of the two is out of range.
    """
    if not 0 < alpha < power < 1:
        raise ValueError((alpha, power))
    if queries < _FEWEST:
        why = f"{queries} judged queries; a paired test needs two"
        return Resolution(
            queries=queries, difference=None, alpha=alpha, power=power, spread=spread, why=why
        )
    difference = detectable_difference(queries, spread.deviation, alpha=alpha, power=power)
    return Resolution(
        queries=queries, difference=difference, alpha=alpha, power=power, spread=spread
    )


def measure_spread(pilot: ScoreTable) -> Spread:
    """The spread between systems that were run already: the median over their pairs.

    Args:
        pilot: scores by query; each pair is compared on the queries that both have.

    Raises:
        ValueError: no two systems share two queries, or half of the pairs never differ.
    """
    deviations = []
    for a, b in combinations(range(len(pilot.systems)), 2):
        both = pilot.known[a] & pilot.known[b]
        if both.sum() >= _FEWEST:
            difference = pilot.values[a][both] - pilot.values[b][both]
            deviations.append(float(np.std(difference, ddof=1)))
    if not deviations or not np.median(deviations) > 0:
        raise ValueError("a pilot needs two systems that differ on two queries or more")
    return Spread(
        deviation=float(np.median(deviations)),
        source="pilot",
        why=(
            f"measured: median of {len(deviations):,} pairs of {len(pilot.systems)} systems on "
            f"{len(pilot.queries):,} queries"
        ),
    )
