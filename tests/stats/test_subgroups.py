"""Groups of queries against the rest: against scipy, under the null, and where nothing varies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from heldout.stats.regression import compare_subgroups


def seeded(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@given(seed=st.integers(0, 1000), queries=st.integers(6, 40))
@settings(max_examples=25)
def test_difference_and_error_are_those_of_welch_in_scipy(seed: int, queries: int) -> None:
    rng = seeded(seed)
    values = rng.normal(size=(3, queries)) + 1000
    member = np.zeros((2, queries), np.bool_)
    member[0, :3], member[1, 2 : queries - 2] = True, True

    found = compare_subgroups(values, member, rng, draws=1)

    for row, one in enumerate(values):
        for group, inside in enumerate(member):
            t = ttest_ind(one[inside], one[~inside], equal_var=False).statistic
            assert found.difference[row, group] / found.error[row, group] == pytest.approx(t, 1e-6)


def test_p_is_rarely_small_where_groups_mean_nothing() -> None:
    """The chance that any of 12 looks is significant is at most the level."""
    member = np.zeros((4, 60), np.bool_)
    for group in range(4):
        member[group, group * 15 : group * 15 + 15] = True
    rejected = 0
    for seed in range(200):
        rng = seeded(seed)
        # As skewed as reciprocal ranks are.
        values = 1 / np.floor(1 + rng.exponential(4, (3, 60)))
        p = compare_subgroups(values, member, rng, draws=99).p
        rejected += bool(p.min() <= 0.05)
    assert 1 <= rejected <= 20  # 10 expected; P(> 20) = .001


def test_a_group_that_differs_is_found_and_no_p_is_zero() -> None:
    rng = seeded(1)
    values = rng.normal(size=(2, 80))
    values[1, :20] += 2
    member = np.arange(80)[None] < 20

    found = compare_subgroups(values, member, rng, draws=199)

    assert found.p[1, 0] == 1 / 200
    assert found.p[0, 0] > 0.05
    assert found.difference[1, 0] == pytest.approx(2, abs=0.7)


def test_what_does_not_vary_has_no_p() -> None:
    values = np.vstack([np.full(10, 0.1), np.arange(10.0)])
    found = compare_subgroups(values, np.arange(10)[None] < 4, seeded(0), draws=9)

    assert np.isnan(found.p[0, 0])
    assert found.error[0, 0] == 0
    assert 0 < found.p[1, 0] <= 1
