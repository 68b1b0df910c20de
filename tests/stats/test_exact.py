"""Ties of differences are those of the rationals."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.stats.exact import differences, scale_of

rationals = st.fractions(min_value=-3, max_value=3, max_denominator=200)
floats = st.floats(-5, 5, allow_subnormal=False)


def test_a_half_less_a_third_is_a_sixth_here_and_not_in_floats() -> None:
    scale: Any = scale_of([0, 1 / 6, 1 / 3, 1 / 2])
    assert scale.classes[3, 2] == scale.classes[1, 0] == scale.classes[2, 1]
    assert 1 / 2 - 1 / 3 != 1 / 6
    assert differences([1 / 3, 0.0], [1 / 2, 1 / 6]).tolist() == [1 / 6, 1 / 6]


def test_reciprocal_ranks_to_100_have_4640_differences() -> None:
    scale: Any = scale_of([0.0, *(1 / rank for rank in range(1, 101))])
    assert (len(scale.values), len(scale.gaps)) == (101, 4640)


@given(st.lists(rationals, min_size=1, max_size=12))
def test_classes_are_the_ranks_of_the_differences_of_the_fractions(parts: list[Fraction]) -> None:
    scale: Any = scale_of([float(part) for part in parts])
    ordered: Any = sorted(set(parts))
    gaps: Any = sorted({abs(x - y) for x in ordered for y in ordered})
    assert scale.classes.tolist() == [[gaps.index(abs(x - y)) for y in ordered] for x in ordered]
    assert scale.gaps.tolist() == [float(gap) for gap in gaps]
    assert scale.codes([float(part) for part in parts]).tolist() == list(map(ordered.index, parts))


@given(st.lists(st.tuples(rationals, rationals), min_size=1, max_size=12))
def test_differences_are_the_fractions_rounded_once(pairs: list[tuple[Fraction, Fraction]]) -> None:
    found = differences([float(x) for x, _ in pairs], [float(y) for _, y in pairs])
    assert found.tolist() == [float(y - x) for x, y in pairs]


@given(st.lists(st.tuples(floats, floats), max_size=12))
def test_any_differences_are_right_to_their_rounding_and_opposite_when_swapped(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    assert np.allclose(differences(a, b), b - a, rtol=0, atol=1e-12)
    assert np.array_equal(differences(a, b), -differences(b, a))


def test_differences_of_many_valued_measures_are_equal_to_twelve_decimals() -> None:
    noisy = np.array([0.1, 0.7]) / np.pi
    assert np.unique(differences(noisy, noisy + np.array([0.3, 0.3]))).size == 1


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([], id="none"),
        pytest.param([float("nan"), 1.0], id="nan"),
        pytest.param([float("inf"), 1.0], id="infinite"),
        pytest.param([1e300, 1.0], id="too large for whole numbers"),
        pytest.param([0.5, 1 / np.pi], id="irrational"),
        pytest.param(np.arange(1025) / 1024, id="too many"),
    ],
)
def test_what_has_no_exact_scale_has_none(values: list[float]) -> None:
    assert scale_of(values) is None


def test_minus_zero_is_zero_and_one_value_is_a_scale() -> None:
    scale: Any = scale_of([-0.0, 0.0])
    assert scale.values.tolist() == [0.0]
    assert scale.gaps.tolist() == [0.0]
    assert scale.codes([[-0.0], [0.0]]).tolist() == [[0], [0]]


def test_a_value_off_the_scale_gets_no_code() -> None:
    scale: Any = scale_of([0.0, 0.5])
    with pytest.raises(ValueError, match="not on this scale"):
        scale.codes([0.25])
