"""How far raters agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

Each is 1 - observed / expected disagreement: 1 where all agree, about 0 where they agree as often
as chance would make them, below 0 where less. What chance is differs: Cohen lets each of two raters
have habits of their own, Fleiss and Krippendorff pool the raters, and Krippendorff corrects for few
ratings. Where all ratings are in one category chance explains everything and nothing can be said:
the coefficient is undefined, and not 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError, quote
from heldout.stats.checks import problem_of

__all__ = [
    "Agreement",
    "KappaWeights",
    "Scale",
    "cohen_kappa",
    "fleiss_kappa",
    "krippendorff_alpha",
    "krippendorff_interval",
]

KappaWeights = Literal["none", "linear", "quadratic"]
"""How bad it is to disagree by d categories: 1, d or d squared."""

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
"""What ratings mean, which says how bad it is to disagree: any disagreement is as bad; by how many
ratings lie between; by the difference squared; by the difference relative to the sum, squared."""

Array = NDArray[np.float64]
_ONE_CATEGORY = "all ratings are in one category"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A coefficient of agreement.

    Attributes:
        value: at most 1; `None` where undefined.
        observed: mean disagreement of the ratings of a unit; `None` where there is none to see.
        expected: the same if ratings fell to units by chance.
        units: how many were rated at least twice.
        why: why it is undefined, else `None`.
    """

    value: float | None
    observed: float | None
    expected: float | None
    units: int
    why: str | None = None


def cohen_kappa(
    first: Sequence[float] | Sequence[str],
    second: Sequence[float] | Sequence[str],
    *,
    weights: KappaWeights = "none",
    categories: Sequence[float] | Sequence[str] | None = None,
) -> Agreement:
    """Agreement of two raters, each with habits of their own.

    Args:
        first: ratings of the units by one rater, none missing.
        second: ratings of the same units by the other.
        weights: how bad it is to disagree by several categories.
        categories: all of them in their order; by default those that occur, sorted. One that
            nobody chose changes a weighted kappa, since it lies between others.

    Returns:
        -1 to 1. Undefined without units, and where both have all ratings in one category.

    Raises:
        InputError: codes `unequal-ratings`, `bad-rating`: NaN, or not among `categories`.

    Source: Cohen 1960; Cohen 1968 for weights.
    """
    if len(first) != len(second):
        found = f"{len(first)} and {len(second)} ratings"
        raise InputError(problem_of("unequal-ratings", "ratings", found, "one of each per unit"))
    known = sorted({*first, *second}) if categories is None else list(categories)
    place = {category: row for row, category in enumerate(known)}
    for rating in (*first, *second):
        if rating not in place or rating != rating:  # noqa: PLR0124 - NaN is not itself
            expected = "one of the categories; leave units out that nobody rated"
            raise InputError(problem_of("bad-rating", "ratings", quote(rating), expected))
    if not first:
        return _undefined("no unit has two ratings", 0)
    counts = np.zeros((len(known), len(known)))
    np.add.at(counts, ([place[r] for r in first], [place[r] for r in second]), 1)
    apart = np.abs(np.subtract.outer(np.arange(len(known)), np.arange(len(known))))
    cost = {"none": np.sign(apart), "linear": apart, "quadratic": apart**2}[weights]
    chance = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    units = len(first)
    return _agreement(
        float(np.sum(cost * counts)) / units, float(np.sum(cost * chance)) / units**2, units
    )


def fleiss_kappa(counts: ArrayLike) -> Agreement:
    """Agreement of several raters, not the same ones for every unit, on nominal categories.

    Args:
        counts: how many raters put a unit in a category, shape (units, categories); every unit
            has the same number of raters, at least two.

    Returns:
        -1 / (raters - 1) to 1. Undefined without units, and where all ratings are in one category.

    Raises:
        InputError: code `unequal-ratings`: not whole numbers from 0, or units with different
            numbers of raters; Krippendorff's alpha takes those.

    Source: Fleiss 1971, Measuring nominal scale agreement among many raters.
    """
    table = np.asarray(counts, np.float64)
    if table.size == 0:
        return _undefined("no unit has two ratings", 0)
    raters = float(table[0].sum())
    fits = (table >= 0) & (table == np.floor(table))
    if not fits.all() or raters < 2 or (table.sum(axis=1) != raters).any():  # noqa: PLR2004 - two to agree
        expected = "whole numbers that sum to the same for every unit, at least 2"
        found = quote(sorted(set(table.sum(axis=1).tolist()))[:5])
        raise InputError(
            problem_of("unequal-ratings", "counts", f"units with {found} ratings", expected)
        )
    together = np.sum(table * (table - 1)) / (len(table) * raters * (raters - 1))
    shares = table.sum(axis=0) / table.sum()
    expected_disagreement = float(np.sum(shares * (1 - shares)))
    return _agreement(1 - float(together), expected_disagreement, len(table))


def krippendorff_alpha(ratings: ArrayLike, *, scale: Scale = "nominal") -> Agreement:
    """Agreement of any number of raters of whom each rated some of the units.

    Args:
        ratings: numbers, shape (raters, units); NaN where a rater did not rate a unit. Units with
            fewer than two ratings are left out. Nominal categories are any different numbers.
        scale: what the numbers mean; `ratio` needs numbers from 0.

    Returns:
        At most 1; below 0 where raters disagree more than by chance. Undefined where no unit has
        two ratings, and where all ratings of those that have are equal.

    Raises:
        InputError: code `bad-rating`: infinite, or below 0 on a ratio scale.

    Source: Krippendorff 2011, Computing Krippendorff's alpha-reliability.
    """
    counts, values = _count(ratings, scale)
    if not len(counts):
        return _undefined("no unit has two ratings", 0)
    return _alpha(counts, values, scale)


def krippendorff_interval(
    ratings: ArrayLike,
    rng: Generator,
    *,
    scale: Scale = "nominal",
    level: float = 0.95,
    trials: int = 1000,
) -> tuple[float, float] | None:
    """A percentile interval of alpha by drawing units with replacement.

    It holds for other units of the same kind rated by the same raters. Krippendorff draws
    disagreements instead, which takes pairs of ratings of one unit for independent.

    Args:
        ratings: as for `krippendorff_alpha`.
        rng: where draws come from.
        scale: what the numbers mean.
        level: share of samples in which the interval holds, roughly; above 0 and below 1.
        trials: how many draws, >= 1.

    Returns:
        Both ends; `None` where alpha is undefined or every unit's ratings are alike, so that no
        draw tells anything, and where alpha is undefined in a draw, as with very few units.

    Raises:
        InputError: as `krippendorff_alpha`.
    """
    counts, values = _count(ratings, scale)
    found = []
    for _ in range(trials if len(counts) > 1 else 0):
        drawn = _alpha(counts[rng.integers(0, len(counts), len(counts))], values, scale).value
        if drawn is None:
            return None
        found.append(drawn)
    if not found or min(found) == max(found):
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high


def _count(ratings: ArrayLike, scale: Scale) -> tuple[Array, Array]:
    """How often each unit with two ratings has each value, and the values."""
    table = np.asarray(ratings, np.float64)
    known = ~np.isnan(table)
    given = table[known]
    broken = given[np.isinf(given) | ((given < 0) & (scale == "ratio"))]
    if len(broken):
        expected = "numbers from 0" if scale == "ratio" else "finite numbers, NaN where not rated"
        raise InputError(problem_of("bad-rating", "ratings", quote(float(broken[0])), expected))
    values, codes = np.unique(given, return_inverse=True)
    counts = np.zeros((table.shape[1], len(values)))
    np.add.at(counts, (np.nonzero(known)[1], codes), 1)
    return counts[counts.sum(axis=1) > 1], values


def _alpha(counts: Array, values: Array, scale: Scale) -> Agreement:
    sizes = counts.sum(axis=1, keepdims=True)
    totals = counts.sum(axis=0)
    ratings = float(totals.sum())
    cost = _cost(values, totals, scale)
    # A pair of a rating with itself costs nothing, so it needs not be taken out
    observed = float(np.sum((counts / (sizes - 1)).T @ counts * cost)) / ratings
    expected = float(totals @ cost @ totals) / (ratings * (ratings - 1))
    return _agreement(observed, expected, len(counts))


def _cost(values: Array, totals: Array, scale: Scale) -> Array:
    if scale == "nominal":
        return np.asarray(values[:, np.newaxis] != values, np.float64)
    # On an ordinal scale a value's place is the middle of its ratings
    places = np.cumsum(totals) - totals / 2 if scale == "ordinal" else values
    apart = places[:, np.newaxis] - places
    if scale == "ratio":
        sums = values[:, np.newaxis] + values
        apart = np.divide(apart, sums, out=np.zeros_like(apart), where=sums > 0)
    squared: Array = apart**2
    return squared


def _agreement(observed: float, expected: float, units: int) -> Agreement:
    if not expected:
        return Agreement(
            value=None, observed=observed, expected=expected, units=units, why=_ONE_CATEGORY
        )
    return Agreement(
        value=1 - observed / expected, observed=observed, expected=expected, units=units
    )


def _undefined(why: str, units: int) -> Agreement:
    return Agreement(value=None, observed=None, expected=None, units=units, why=why)
