"""How far raters agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

Each is 1 - observed / expected disagreement: 1 where all agree, about 0 where they agree as often
as chance would make them, below 0 where less. What chance is differs: Cohen lets each of two raters
have habits of their own, Fleiss and Krippendorff pool the raters, and Krippendorff corrects for few
ratings. Where all ratings are in one category chance explains everything and nothing can be said:
the coefficient is undefined, and not 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError, quote

KappaWeights = Literal["none", "linear", "quadratic"]
"""How bad it is to disagree by d categories: 1, d or d squared."""

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
"""What ratings mean, which says how bad it is to disagree: any disagreement is as bad; by how many
ratings lie between; by the difference squared; by the difference relative to the sum, squared."""

Array = NDArray[np.float64]
_ONE_CATEGORY = "all ratings are in one category"
_CELLS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementCoefficient:
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
) -> AgreementCoefficient:
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
    rows, columns, known = _codes(first, second, categories)
    if not rows:
        return _undefined("no unit has two ratings", 0)
    counts = np.zeros((1, len(known), len(known)))
    np.add.at(counts[0], (rows, columns), 1)
    observed, expected = _disagreement(counts, weights)
    return _agreement(float(observed[0]), float(expected[0]), len(rows))


def cohen_interval(
    first: Sequence[float] | Sequence[str],
    second: Sequence[float] | Sequence[str],
    rng: Generator,
    *,
    weights: KappaWeights = "none",
    categories: Sequence[float] | Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    trials: int = 1000,
) -> tuple[float, float] | None:
    """A percentile interval of Cohen's kappa by drawing groups of units with replacement.

    Args:
        first: as for `cohen_kappa`.
        second: the same.
        rng: where draws come from.
        weights: how bad it is to disagree by several categories.
        categories: all of them in their order; by default those that occur, sorted.
        groups: of each unit, what it is drawn with, as the query of a document; by default every
            unit is drawn by itself.
        level: share of samples in which the interval holds, roughly; above 0 and below 1.
        trials: how many draws, >= 1.

    Returns:
        Both ends; `None` with fewer than two groups, where no draw differs, and where kappa is
        undefined in a draw.

    Raises:
        InputError: as `cohen_kappa`.
    """
    rows, columns, known = _codes(first, second, categories)
    if not rows:
        return None
    size, own = _group(groups, len(rows))
    tables = np.zeros((size, len(known), len(known)))
    np.add.at(tables, (own, np.array(rows), np.array(columns)), 1)
    found = []
    for drawn in _draw(size, rng, trials=trials):
        observed, expected = _disagreement(np.tensordot(drawn, tables, axes=1), weights)
        if not expected.all():
            return None
        found.append(1 - observed / expected)
    return _percentiles(np.concatenate(found) if found else np.zeros(0), level)


def _codes(
    first: Sequence[float] | Sequence[str],
    second: Sequence[float] | Sequence[str],
    categories: Sequence[float] | Sequence[str] | None,
) -> tuple[list[int], list[int], list[float] | list[str]]:
    """The place of each rating among the categories, and the categories."""
    if len(first) != len(second):
        found = f"{len(first)} and {len(second)} ratings"
        raise InputError.of("unequal-ratings", "ratings", found, "one of each per unit")
    known: Any = sorted({*first, *second}) if categories is None else list(categories)
    position = {category: row for row, category in enumerate(known)}
    for rating in (*first, *second):
        if rating not in position or rating != rating:  # noqa: PLR0124 - NaN is not itself
            expected = "one of the categories; leave units out that nobody rated"
            raise InputError.of("bad-rating", "ratings", quote(rating), expected)
    return [position[one] for one in first], [position[one] for one in second], known


def _disagreement(counts: Array, weights: KappaWeights) -> tuple[Array, Array]:
    """Return what is observed and expected in each table of two raters."""
    positions = np.arange(counts.shape[1])
    apart = np.abs(np.subtract.outer(positions, positions))
    cost = {"none": np.sign(apart), "linear": apart, "quadratic": apart**2}[weights]
    units = counts.sum(axis=(1, 2))
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    expected = np.einsum("ti,ij,tj->t", rows, cost, columns) / units**2
    return np.einsum("tij,ij->t", counts, cost) / units, expected


def fleiss_kappa(counts: ArrayLike) -> AgreementCoefficient:
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
        raise InputError.of("unequal-ratings", "counts", f"units with {found} ratings", expected)
    together = np.sum(table * (table - 1)) / (len(table) * raters * (raters - 1))
    shares = table.sum(axis=0) / table.sum()
    expected_disagreement = float(np.sum(shares * (1 - shares)))
    return _agreement(1 - float(together), expected_disagreement, len(table))


def krippendorff_alpha(ratings: ArrayLike, *, scale: Scale = "nominal") -> AgreementCoefficient:
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
    counts, values, _ = _count(ratings, scale)
    if not len(counts):
        return _undefined("no unit has two ratings", 0)
    return _alpha(counts, values, scale, np.ones(len(counts)))


def krippendorff_interval(
    ratings: ArrayLike,
    rng: Generator,
    *,
    scale: Scale = "nominal",
    groups: ArrayLike | None = None,
    level: float = 0.95,
    trials: int = 1000,
) -> tuple[float, float] | None:
    """A percentile interval of alpha by drawing groups of units with replacement.

    It holds for other units of the same kind rated by the same raters. Krippendorff draws
    disagreements instead, which takes pairs of ratings of one unit for independent.

    Args:
        ratings: as for `krippendorff_alpha`.
        rng: where draws come from.
        scale: what the numbers mean.
        groups: of each unit, what it is drawn with, as the query of a document; by default every
            unit is drawn by itself.
        level: share of samples in which the interval holds, roughly; above 0 and below 1.
        trials: how many draws, >= 1.

    Returns:
        Both ends; `None` where alpha is undefined or every unit's ratings are alike, so that no
        draw says anything, and where alpha is undefined in a draw, as with very few units.

    Raises:
        InputError: as `krippendorff_alpha`.
    """
    counts, values, twice = _count(ratings, scale)
    size, own = _group(None if groups is None else np.asarray(groups)[twice], len(counts))
    found = []
    for drawn in _draw(size, rng, trials=trials):
        for weights in drawn:
            value = _alpha(counts, values, scale, weights[own]).value
            if value is None:
                return None
            found.append(value)
    return _percentiles(np.array(found), level)


def _group(groups: ArrayLike | None, units: int) -> tuple[int, NDArray[np.int64]]:
    """Return how many groups there are, and the place of each unit's."""
    if groups is None:
        return units, np.arange(units)
    names, own = np.unique(np.asarray(groups), return_inverse=True)
    return len(names), own


def _draw(size: int, rng: Generator, *, trials: int) -> Iterator[Array]:
    """Draw how often each of so many groups is in each sample of as many."""
    rows = max(1, _CELLS // max(size, 1))
    for start in range(0, trials if size > 1 else 0, rows):
        count = min(rows, trials - start)
        drawn = rng.integers(0, size, (count, size)) + size * np.arange(count)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=size * count)
        yield times.reshape(count, size).astype(np.float64)


def _percentiles(found: Array, level: float) -> tuple[float, float] | None:
    if not len(found) or np.ptp(found) == 0:
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high


def _count(ratings: ArrayLike, scale: Scale) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Count how often units with two ratings have each value, the values, and the units."""
    table = np.asarray(ratings, np.float64)
    known = ~np.isnan(table)
    given = table[known]
    broken = given[np.isinf(given) | ((given < 0) & (scale == "ratio"))]
    if len(broken):
        expected = "numbers from 0" if scale == "ratio" else "finite numbers, NaN where not rated"
        raise InputError.of("bad-rating", "ratings", quote(float(broken[0])), expected)
    values, codes = np.unique(given, return_inverse=True)
    counts = np.zeros((table.shape[1], len(values)))
    np.add.at(counts, (np.nonzero(known)[1], codes), 1)
    twice = counts.sum(axis=1) > 1
    return counts[twice], values, twice


def _alpha(counts: Array, values: Array, scale: Scale, weights: Array) -> AgreementCoefficient:
    """Alpha where each unit is there as often as its weight."""
    sizes = counts.sum(axis=1)
    totals = weights @ counts
    ratings = float(totals.sum())
    cost = _cost(values, totals, scale)
    # A pair of a rating with itself costs nothing, so it needs not be taken out. Units of one size
    # are added as whole numbers: their order changes no bit.
    pairs = np.zeros((len(values), len(values)))
    for size in np.flatnonzero(np.bincount(sizes.astype(np.int64))):
        of_size = sizes == size
        here = counts[of_size]
        pairs += (weights[of_size, np.newaxis] * here).T @ here / (size - 1)
    observed = float(np.sum(pairs * cost)) / ratings
    expected = float(totals @ cost @ totals) / (ratings * (ratings - 1))
    return _agreement(observed, expected, len(counts))


def _cost(values: Array, totals: Array, scale: Scale) -> Array:
    if scale == "nominal":
        return np.asarray(values[:, np.newaxis] != values, np.float64)
    # On an ordinal scale a value's place is the middle of its ratings
    positions = np.cumsum(totals) - totals / 2 if scale == "ordinal" else values
    apart = positions[:, np.newaxis] - positions
    if scale == "ratio":
        sums = values[:, np.newaxis] + values
        apart = np.divide(apart, sums, out=np.zeros_like(apart), where=sums > 0)
    squared: Array = apart**2
    return squared


def _agreement(observed: float, expected: float, units: int) -> AgreementCoefficient:
    return AgreementCoefficient(
        value=1 - observed / expected if expected else None,
        observed=observed,
        expected=expected,
        units=units,
        why=None if expected else _ONE_CATEGORY,
    )


def _undefined(why: str, units: int) -> AgreementCoefficient:
    return AgreementCoefficient(value=None, observed=None, expected=None, units=units, why=why)
