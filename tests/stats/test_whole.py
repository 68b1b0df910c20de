"""Scores in whole units: sums are exact, in every order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.stats.exact import whole_numbers

finite = st.floats(-1e6, 1e6, allow_nan=False)


def test_reciprocal_ranks_to_ten_are_counted_in_2520ths() -> None:
    values = 1 / np.arange(1.0, 11)

    whole = whole_numbers(values, summed=5793)

    assert (whole.exact, whole.unit) == (True, 2520)
    assert whole.values.tolist() == [2520 / rank for rank in range(1, 11)]


@pytest.mark.parametrize(
    ("values", "unit"),
    [([0.0, 1.0], 1), ([0.3, 0.7], 10), ([0.3333, 0.25], 10_000), ([0.0, 0.0], 1), ([-0.5], 2)],
)
def test_scores_with_a_common_denominator_are_exact(values: list[float], unit: int) -> None:
    whole = whole_numbers(np.array(values), summed=100)

    assert (whole.exact, whole.unit) == (True, unit)


def test_small_sums_are_single_and_large_ones_double() -> None:
    values = 1 / np.arange(1.0, 11)

    assert whole_numbers(values, summed=6000).values.dtype == np.float32
    assert whole_numbers(values, summed=7000).values.dtype == np.float64


@given(st.lists(finite, min_size=1, max_size=30), st.integers(1, 10_000))
def test_a_score_is_at_most_half_a_unit_off(values: list[float], summed: int) -> None:
    whole = whole_numbers(np.array(values), summed=summed)

    for value, units in zip(values, whole.values.tolist(), strict=True):
        off = abs(Fraction(value) * Fraction(whole.unit) - Fraction(units))
        # an exact fraction is off only by what its float64 is
        assert off <= Fraction(1, 2)
        assert not whole.exact or units / whole.unit == value


@given(st.lists(finite, min_size=1, max_size=200), st.randoms(use_true_random=False))
def test_sums_are_the_same_in_every_order(values: list[float], random: object) -> None:
    whole = whole_numbers(np.array(values), summed=len(values)).values.tolist()
    shuffled = list(whole)
    random.shuffle(shuffled)  # type: ignore[attr-defined] # hypothesis gives a random.Random

    total = math.fsum(whole)

    assert sum(whole) == sum(shuffled) == total
    assert sum(int(units) for units in whole) == total


def test_many_values_are_counted_in_about_a_millionth_of_a_millionth() -> None:
    whole = whole_numbers(np.log2(np.arange(2.0, 50)) / 6, summed=5793)

    assert not whole.exact
    assert 1e-13 < 1 / whole.unit < 1e-11


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300, -5e307])
def test_sizes_at_the_ends_of_what_a_float_holds(scale: float) -> None:
    whole = whole_numbers(np.array([0.0, math.pi, math.e]) * scale, summed=10)

    assert np.isfinite(whole.values).all()
    assert (whole.values * np.sign(scale) >= 0).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="not-finite"):
        whole_numbers(np.array([[0.5, value]]), summed=2)
