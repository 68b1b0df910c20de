"""Exact ties of differences: 1/2 - 1/3 is 1/6, which floats do not say.

A test that ranks differences must know which of them are equal. Reciprocal ranks, precisions and
the like are rationals of small denominator, stored as the nearest float64. Their differences are
taken between the rationals and rounded once, so that equal differences are equal floats. Other
measures take the general path: differences of floats, rounded to 1e-12.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DECIMALS", "ValueScale", "differences", "scale_of", "short_fraction"]

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
        places = np.searchsorted(self.values, wanted).clip(max=len(self.values) - 1)
        if not np.array_equal(self.values[places], wanted):
            raise ValueError("a value is not on this scale")
        return places.astype(np.int32)


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
    for array in (distinct, ranked.gaps, ranked.classes):
        array.setflags(write=False)
    return ValueScale(values=distinct, gaps=ranked.gaps, classes=ranked.classes)


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


class _Ranked(NamedTuple):
    gaps: NDArray[np.float64]
    classes: NDArray[np.int32]


def _rank_gaps(fractions: list[Fraction]) -> _Ranked | None:
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
    return _Ranked(gaps, classes.astype(np.int32))
