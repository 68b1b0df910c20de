"""Arithmetic in which a tie is a tie: exact differences, whole numbers, samples.

1/2 - 1/3 is 1/6, which floats do not say. A test that ranks differences must know which of them are
equal. Reciprocal ranks, precisions and the like are rationals of small denominator, stored as the
nearest float64. Their differences are taken between the rationals and rounded once, so that equal
differences are equal floats. Other measures take the general path: differences of floats, rounded
to 1e-12.

A sum of floats depends on the order in which a machine adds, and so would ties, ranks and
p-values. Scores that are fractions of a common denominator (RR@10, P@10, Success, or a table with
four digits) are counted in units of it. Others are counted in units of a power of two, as fine as
the sums still fit into a float64: on 5,793 queries and scores up to 1 that is 2**-40, about 1e-12.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError, quote

DECIMALS = 12
"""Decimals that count in a difference where no exact scale is known."""

_DENOMINATOR = 10_000
_LARGEST = 2.0**24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueScale:
    """The distinct values of a measure, each the nearest float64 to a rational that is known.

    Attributes:
        values: distinct values, ascending, read-only.
        gaps: distinct |value - value|, ascending from 0, each rounded once from the rational,
            read-only.
        classes: int32, shape (values, values), read-only: the place in `gaps` of the difference
            of two values; 0 where they are equal.
    """

    values: NDArray[np.float64]
    gaps: NDArray[np.float64]
    classes: NDArray[np.int32]

    def codes(self, values: ArrayLike) -> NDArray[np.int32]:
        """The place of each value in `values`, in the same shape.

        Raises:
            ValueError: a value is not on this scale.
        """
        wanted = np.asarray(values, np.float64)
        positions = np.searchsorted(self.values, wanted).clip(max=len(self.values) - 1)
        if not np.array_equal(self.values[positions], wanted):
            raise ValueError("a value is not on this scale")
        return positions.astype(np.int32)


def scale_of(values: ArrayLike, *, most: int = 1024) -> ValueScale | None:
    """The scale of all values in an array, of any shape.

    Args:
        values: scores; each must be the float64 nearest to a fraction with a denominator of at
            most 10,000, as are reciprocal ranks to depth 10,000 and numbers of four decimals.
        most: distinct values up to which a scale is made; its memory grows as their square.

    Returns:
        The scale, or `None` where there are more values, none, or one that is no such fraction:
        then take the general path, `differences`.
    """
    distinct = np.unique(np.asarray(values, np.float64)) + 0.0  # -0.0 is 0.0
    if not 0 < len(distinct) <= most or not np.abs(distinct).max() <= _LARGEST:
        return None
    fractions = []
    for value in distinct.tolist():
        fraction = short_fraction(value)
        if fraction is None:
            return None
        fractions.append(fraction)
    ranked = _rank_gaps(fractions)
    if ranked is None:
        return None
    gaps, classes = ranked
    for array in (distinct, gaps, classes):
        array.setflags(write=False)
    return ValueScale(values=distinct, gaps=gaps, classes=classes)


def short_fraction(value: float) -> Fraction | None:
    """The fraction with a denominator of at most 10,000 to which a score is the nearest float64.

    Args:
        value: finite; such a fraction is a reciprocal rank to depth 10,000, or a number of four
            decimals.

    Returns:
        `None` where there is none.
    """
    fraction = Fraction(value).limit_denominator(_DENOMINATOR)
    return fraction if float(fraction) == value else None


def differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Differences B - A in which those of equal size are floats of equal size.

    Args:
        a: finite scores of system A, shape (queries,).
        b: those of system B on the same queries.

    Returns:
        The differences of the rationals, each rounded once, where `scale_of` knows them; else
        those of the floats, rounded to 1e-12.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    scale = scale_of(np.concatenate((first, second)))
    if scale is None:
        return np.round(second - first, DECIMALS) + 0.0
    sizes = scale.gaps[scale.classes[scale.codes(first), scale.codes(second)]]
    return np.where(second < first, -sizes, sizes)


def _rank_gaps(
    fractions: list[Fraction],
) -> tuple[NDArray[np.float64], NDArray[np.int32]] | None:
    """Distinct differences in order; `None` where float64 cannot tell two of them apart."""
    above = np.array([fraction.numerator for fraction in fractions], np.int64)
    below = np.array([fraction.denominator for fraction in fractions], np.int64)
    top = np.abs(above[:, None] * below - above * below[:, None])
    bottom = below[:, None] * below
    shared = np.gcd(top, bottom)
    top, bottom = top // shared, bottom // shared
    # Both are below 2^53, so the quotient is rounded once, and rounding keeps the order.
    gaps, classes = np.unique(top / bottom, return_inverse=True)
    classes = classes.reshape(top.shape)
    for part in (top, bottom):
        one = np.zeros(len(gaps), np.int64)
        one[classes] = part
        if not np.array_equal(one[classes], part):
            return None
    return gaps, classes.astype(np.int32)


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignedRanks:
    """Ranks of the sizes of values, those of 0 left out; ties share their mean rank.

    Attributes:
        doubled: twice the ranks, one for each group of ties, ascending within a sample.
        tied: how many values are in a group.
        owners: the sample of a group.
        above: twice the rank sum of positive values, for each sample.
        ties: the sum of t³ - t over groups of t, for each sample.
        wins: positive values, for each sample.
        losses: negative values, for each sample.
    """

    doubled: Integers
    tied: Integers
    owners: Integers
    above: Integers
    ties: Integers
    wins: Integers
    losses: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Samples, of which some may be empty.

    Attributes:
        values: the distinct values of the first sample, ascending, then those of the second, and
            so on.
        counts: how often each occurs in its sample.
        owners: the place of its sample.
        sizes: how many values each sample has.
    """

    values: Floats
    counts: Integers
    owners: Integers
    sizes: Integers

    def sum(self, terms: Floats | Integers) -> Floats:
        """A sum for each sample, of a term for each distinct value."""
        return np.asarray(np.bincount(self.owners, terms, len(self.sizes)), np.float64)

    def distinct(self) -> Integers:
        """Return how many distinct values each sample has."""
        return np.bincount(self.owners, minlength=len(self.sizes))

    def means(self) -> Floats:
        """The mean of each sample; 0 where it is less than 1e-12, and of an empty sample."""
        means = self.sum(self.counts * self.values) / np.maximum(self.sizes, 1)
        # Values that cancel out leave a rounding error, and that is no direction
        return np.where(np.round(means, DECIMALS) == 0, 0.0, means)

    def squares(self, means: Floats) -> Floats:
        """Sums of squared distances from the means, 0 only where all values are the same."""
        apart = self.values - means[self.owners]
        return np.where(self.distinct() > 1, self.sum(self.counts * apart * apart), 0.0)

    def without_zeros(self) -> "Samples":
        """The samples without their values of 0."""
        selected = self.values != 0
        counts, owners = self.counts[selected], self.owners[selected]
        sizes = np.bincount(owners, weights=counts, minlength=len(self.sizes))
        return Samples(
            values=self.values[selected], counts=counts, owners=owners, sizes=sizes.astype(np.int64)
        )

    def ends(self) -> NDArray[np.intp]:
        """Return where the values of each sample begin and end, shape (samples, 2)."""
        last = np.cumsum(self.distinct())
        return np.stack((last - self.distinct(), last), axis=1)

    def rank_sizes(self) -> SignedRanks:
        """Rank the sizes of all values, none of which is 0, within each sample."""
        size = np.abs(self.values)
        order = np.lexsort((size, self.owners))
        size, owners, counts = size[order], self.owners[order], self.counts[order]
        first = _begins(size, owners)
        tied = np.add.reduceat(counts, first) if len(first) else counts
        positive = counts * (self.values[order] > 0)
        wins = np.add.reduceat(positive, first) if len(first) else positive
        group = owners[first]
        before = np.cumsum(tied) - tied - (np.cumsum(self.sizes) - self.sizes)[group]
        doubled = 2 * before + tied + 1
        above, ties, won = (
            np.bincount(group, weights=terms, minlength=len(self.sizes)).astype(np.int64)
            for terms in (wins * doubled, tied**3 - tied, wins)
        )
        return SignedRanks(
            doubled=doubled,
            tied=tied,
            owners=group,
            above=above,
            ties=ties,
            wins=won,
            losses=self.sizes - won,
        )


def gather_samples(values: Floats, present: NDArray[np.bool_]) -> Samples:
    """Gather the values of each row.

    Args:
        values: shape (samples, places), finite where present; equal ones are equal floats.
        present: same shape: whether a value belongs to the sample.
    """
    # What is not a number is sorted to the end
    ordered = np.sort(np.where(present, values + 0.0, np.nan), axis=1)
    return _gather_sorted(ordered, present.sum(axis=1, dtype=np.int64))


def gather_codes(codes: NDArray[np.uint16], sizes: NDArray[np.int64], values: Floats) -> Samples:
    """As `gather_samples`, of values that are few: 16 bits are sorted by their digits.

    Args:
        codes: shape (samples, places): places in `values`; 65,535 where there is none.
        sizes: how many each row has.
        values: ascending.
    """
    coded = _gather_sorted(np.sort(codes, axis=1, kind="stable"), sizes)
    return replace(coded, values=values[coded.values])


def _gather_sorted(ordered: NDArray[Any], sizes: NDArray[np.int64]) -> Samples:
    """The first so many of each row, which are in order."""
    flat = ordered[np.arange(ordered.shape[1]) < sizes[:, None]]
    owners = np.repeat(np.arange(len(sizes)), sizes)
    first = _begins(flat, owners)
    return Samples(
        values=flat[first],
        counts=np.diff(first, append=len(flat)),
        owners=owners[first],
        sizes=sizes,
    )


def _begins(values: NDArray[Any], owners: Integers) -> Integers:
    """Return where a value differs from the one before, or is of another sample."""
    begins = np.ones(len(values), np.bool_)
    begins[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
    return np.flatnonzero(begins)


_LOOKED_AT = 64
_EXACT_32, _EXACT_64 = 24, 53
_FINEST = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """Scores in whole units.

    Attributes:
        values: whole numbers as float32 or float64, whichever holds every sum exactly.
        unit: how many units make 1.
        exact: whether `values / unit` are the scores, and not the nearest multiples.
    """

    values: NDArray[np.floating]
    unit: float
    exact: bool

    @property
    def nothing(self) -> float:
        """Differences up to so many units are rounding, and 0: half of 1e-12, or none if exact."""
        return 0.0 if self.exact else 0.5 * 10.0**-DECIMALS * self.unit


def mean_of_sums(sums: NDArray[np.float64], whole: Whole, size: int) -> NDArray[np.float64]:
    """Means of sums of `size` whole numbers: equal for equal sums.

    Where units are not exact, means are rounded to 1e-12, so that near-equal ones are equal.
    """
    means = sums / (whole.unit * size)
    return means if whole.exact else np.round(means, DECIMALS)


def whole_numbers(values: NDArray[np.float64], *, summed: int) -> Whole:
    """Scores in the units in which they can be added without an error.

    Args:
        values: finite scores, any shape.
        summed: how many are added at most, >= 1.

    Raises:
        InputError: code `not-finite`.
    """
    if not np.isfinite(values).all():
        first = values[~np.isfinite(values)].flat[0]
        raise InputError.of("not-finite", "scores", quote(float(first)))
    # Zero counts as a value: a difference lies within the spread, and so does a sum within
    # as many times the spread as there are values. The largest floats have no spread, but half.
    half = float(values.max(initial=0.0) / 2 - values.min(initial=0.0) / 2)
    found = _fractions(values, most=2**_EXACT_64 / summed)
    if found is not None:
        whole, unit = found
        small = 2 * half * unit * summed <= 2**_EXACT_32
        return Whole(values=whole.astype(np.float32) if small else whole, unit=unit, exact=True)
    room = _EXACT_64 - math.frexp(summed)[1] - math.frexp(half)[1] - 1
    room = min(room, _FINEST)
    return Whole(values=np.rint(np.ldexp(values, room)), unit=math.ldexp(1.0, room), exact=False)


def _fractions(
    values: NDArray[np.float64], *, most: float
) -> tuple[NDArray[np.float64], int] | None:
    """Whole numbers of at most `most` and their common denominator, where there is one."""
    unit = 1
    largest = float(np.abs(values).max(initial=0.0))
    while largest * unit <= most:
        whole = np.rint(values * unit)
        others = values[whole / unit != values][:_LOOKED_AT].tolist()
        if not others:
            return whole + 0.0, unit
        for value in others:
            fraction = short_fraction(value)
            if fraction is None:
                return None
            unit = math.lcm(unit, fraction.denominator)
    return None


@cache
def load_compiled() -> ModuleType | None:
    """Return the loops that numba compiles (`stats.compiled`), `None` where it does not load."""
    try:
        from heldout.stats import compiled  # noqa: PLC0415 - numba is an extra, slow to load
    except (ImportError, RuntimeError):  # or no folder can be written to
        return None
    return compiled
