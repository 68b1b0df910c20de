"""The bounded mean: exact of equal values and of two, and else what random weights draw."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from heldout.stats.exact import gather_samples
from heldout.stats.student import bounded_mean_p

Floats = NDArray[np.float64]
NULL = 0.5


def p_of(values: list[float] | Floats, *, bound: float, null: float = NULL) -> float:
    row = np.asarray(values, np.float64)[np.newaxis]
    samples = gather_samples(row, np.ones(row.shape, np.bool_))
    return float(bounded_mean_p(samples, null=null, bound=bound)[0])


@pytest.mark.parametrize("size", [1, 2, 30, 800, 5000])
@pytest.mark.parametrize(("value", "bound"), [(0, 99), (-3, 9), (0.4, 1), (-1, 1e6)])
def test_equal_values_have_the_power_of_a_ratio(size: int, value: float, bound: float) -> None:
    expected = ((bound - NULL) / (bound - value)) ** size
    found = p_of([value] * size, bound=bound)
    if expected > 0.3:  # where the mean with the bound is not below the null it is 1
        assert found in (1, pytest.approx(expected, rel=1e-9))
    else:
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("size", "late"), [(1500, 0), (1500, 3), (5000, 10), (500, 1), (20_000, 60)]
)
def test_of_two_values_it_is_the_binomial(size: int, late: int) -> None:
    found = p_of([99.0] * late + [0.0] * (size - late), bound=99)
    assert found == pytest.approx(float(stats.binom.cdf(late, size, NULL / 99)), rel=1e-9)


def chance_above(values: list[float], null: float) -> float:
    """Of a mean of different values with random weights: a sum of exponential variables."""
    distances = [Fraction(value) - Fraction(null) for value in values]
    chances = [
        math.prod(one / (one - other) for other in distances if other != one)
        for one in distances
        if one > 0
    ]
    return float(sum(chances))


@pytest.mark.parametrize("size", [5, 12, 20, 25])
def test_of_different_values_it_is_the_exact_chance(size: int) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        values = (rng.permutation(400)[:size] - 200).astype(float)
        error = float(values.std()) / math.sqrt(size)
        null = round(2 * np.append(values, 200).mean() + (seed % 3 + 1) * error) / 2
        exact = chance_above([*values.tolist(), 200.0], null)
        assert p_of(values, bound=200, null=null) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("size", [2, 5, 30, 200])
def test_it_is_the_share_of_random_weights_that_reach_the_null(size: int) -> None:
    rng = np.random.default_rng(size)
    values = rng.integers(-9, 8, size).astype(np.float64)
    weights = rng.dirichlet(np.ones(size + 1), 40_000)
    means = weights @ np.append(values, 9.0)
    null = float(np.append(values, 9.0).mean()) + 1.5 * float(means.std())
    share = float((means >= null).mean())
    assert p_of(values, bound=9, null=null) == pytest.approx(share, abs=0.006)


@given(
    st.integers(2, 12),
    st.integers(1, 30),
    st.floats(0.1, 0.9),
    st.integers(0, 1000),
    st.sampled_from([0.05, 1, 20]),
)
def test_no_distribution_with_such_a_mean_gives_equal_values_more_often(
    k: int, size: int, null: float, seed: int, even: float
) -> None:
    """Chances of all values, some far from even, brought to the null by the largest one."""
    rng = np.random.default_rng(seed)
    values = np.arange(1 - k, k)
    chances = rng.dirichlet(np.full(len(values), even))
    mean = float(chances @ values)
    if mean < null:
        largest = (null - mean) / (k - 1 - mean)
        chances *= 1 - largest
        chances[-1] += largest
    for at, value in enumerate(values.tolist()):
        if value < null:
            seen = float((chances[: at + 1] ** size).sum())
            assert seen <= p_of([value] * size, bound=k - 1, null=null) + 1e-9


@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=40),
    st.sampled_from([0.5, 2.0, 9.0]),
    st.integers(0, 39),
)
def test_it_is_a_chance_that_rises_with_every_value(
    values: list[int], null: float, at: int
) -> None:
    row = [float(value) for value in values]
    p = p_of(row, bound=9, null=null)
    row[at % len(row)] = min(9.0, row[at % len(row)] + 3)
    assert 0 <= p <= p_of(row, bound=9, null=null) + 1e-9 <= 1 + 1e-9


def test_no_sample_depends_on_the_samples_beside_it() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(-30, 28, (12, 300)).astype(np.float64)
    present = rng.random(values.shape) < rng.random((12, 1))
    present[0] = False
    together = bounded_mean_p(gather_samples(values, present), null=1, bound=99)
    alone = [p_of(row[kept], bound=99, null=1) for row, kept in zip(values, present, strict=True)]
    assert together.tolist() == pytest.approx(alone, rel=1e-9)
    assert together[0] == 1


def test_a_null_above_the_bound_cannot_be() -> None:
    assert p_of([0.0], bound=0.4) == 0
    assert p_of([], bound=0.4) == 0
    assert p_of([0.0, 0.5], bound=0.5) == 0  # the mean is the null for the bound alone
    assert p_of([0.5, 0.5], bound=0.5) == 1
    assert p_of([], bound=9) == 1
