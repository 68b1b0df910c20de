"""The t test across seeds and queries: one seed each is the paired t, and its level holds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heldout.stats.student import crossed_t
from trials import choose_trials


def _ones(shape: tuple[int, int, int]) -> np.ndarray:
    return np.ones(shape)


@given(st.integers(0, 10_000), st.integers(3, 60))
def test_with_one_seed_each_it_is_the_paired_t(seed: int, size: int) -> None:
    difference = np.random.default_rng(seed).normal(0.1, 1, size)
    found = crossed_t(difference[None, None], _ones((1, 1, size)))
    oracle = stats.ttest_1samp(difference, 0)
    assert found.p == pytest.approx(oracle.pvalue, abs=1e-11)
    interval = oracle.confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@given(st.integers(0, 10_000))
def test_swapping_systems_mirrors_it_and_shuffling_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    totals = rng.normal(0.2, 1, (2, 3, 20))
    weights = rng.integers(0, 2, (2, 3, 20)).astype(float)
    weights[0, 0, :2] = 1
    totals *= weights
    found = crossed_t(totals, weights)
    mirrored = crossed_t(-totals.transpose(1, 0, 2), weights.transpose(1, 0, 2))
    assert mirrored.p == pytest.approx(found.p)
    assert found.difference is not None
    assert mirrored.difference == pytest.approx(-found.difference)
    order = rng.permutation(20)
    shuffled = crossed_t(totals[::-1][:, :, order], weights[::-1][:, :, order])
    assert shuffled.p == pytest.approx(found.p)


def _simulate(rng: np.random.Generator, *, seeds: int, queries: int) -> np.ndarray:
    """Differences of two methods that are equally good, whose seeds are not."""
    hard = rng.normal(0, 1, queries)
    sides = [
        hard + rng.normal(0, 0.3, (seeds, 1)) + rng.normal(0, 1, (seeds, queries)) for _ in range(2)
    ]
    return sides[1][None, :, :] - sides[0][:, None, :]


def test_its_level_holds_where_seeds_differ_and_that_of_a_test_over_queries_does_not() -> None:
    rng = np.random.default_rng(5)
    trials, hits, naive = choose_trials(push=300, night=600), 0, 0
    for _ in range(trials):
        totals = _simulate(rng, seeds=4, queries=200)
        found: Any = crossed_t(totals, _ones(totals.shape))
        hits += found.p <= 0.05
        naive += stats.ttest_1samp(totals.mean(axis=(0, 1)), 0).pvalue <= 0.05
    assert 0.01 <= hits / trials <= 0.08
    assert naive / trials > 0.3


def test_what_cannot_be_told_is_undefined_and_says_why() -> None:
    none = crossed_t(np.zeros((2, 2, 5)), np.zeros((2, 2, 5)))
    assert (none.p, none.difference, none.why) == (None, None, "no query has a difference")
    single = crossed_t(np.ones((2, 2, 1)), _ones((2, 2, 1)))
    assert single.p is None
    assert "single query" in str(single.why)
    same = crossed_t(np.full((2, 2, 9), 0.1), _ones((2, 2, 9)))
    assert same.p is None
    assert same.difference == pytest.approx(0.1)
    assert "no standard error" in str(same.why)
