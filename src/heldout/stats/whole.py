"""Scores as whole numbers, so that sums of them are exact in every order of adding.

A sum of floats depends on the order in which a machine adds, and so would ties, ranks and
p-values. Scores that are fractions of a common denominator (RR@10, P@10, Success, or a table with
four digits) are counted in units of it. Others are counted in units of a power of two, as fine as
the sums still fit into a float64: on 5,793 queries and scores up to 1 that is 2**-40, about 1e-12.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, quote
from heldout.stats.exact import DECIMALS, short_fraction

__all__ = ["Whole", "mean_of_sums", "whole_numbers"]

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
        raise InputError(
            Problem(
                code="not-finite",
                path="scores",
                found=quote(float(first)),
                expected="finite numbers",
                hint="a score that is missing or undefined is none: leave its query out",
            )
        )
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
