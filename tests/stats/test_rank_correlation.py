"""Kendall's tau against scipy; AP correlation against its definition, ties broken in every way."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from heldout.errors import InputError
from heldout.stats.rank_correlation import kendall, kendall_all, tau_ap, tau_ap_a, tau_ap_b

FEW_LEVELS = st.lists(
    st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float)), min_size=2, max_size=40
)
X = (0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992)
Y = (0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988)
SECOND_X = (0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38)
SECOND_Y = (0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644)


def by_definition(truth: list[float], order: list[int]) -> float:
    """tau_AP with the formula of Yilmaz et al.: a sum over the places of an order."""
    shares = [
        sum(truth[above] > truth[item] for above in order[:place]) / place
        for place, item in enumerate(order)
        if place
    ]
    return 2 * sum(shares) / (len(order) - 1) - 1


@given(FEW_LEVELS)
def test_kendall_is_that_of_scipy_with_any_ties(pairs: list[tuple[float, float]]) -> None:
    x, y = (list(column) for column in zip(*pairs, strict=True))
    ours = kendall(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(float(kendalltau(x, y).statistic), abs=1e-12)


def test_kendall_a_counts_ties_among_all_pairs() -> None:
    assert kendall([1, 1, 2], [1, 2, 3], ties="a") == pytest.approx(2 / 3)
    assert kendall([1, 1, 2], [1, 2, 3], ties="b") == pytest.approx(2 / np.sqrt(6))
    assert kendall([1, 1], [1, 2], ties="a") == 0


def test_all_pairs_of_rankings_are_those_taken_one_by_one() -> None:
    rankings = np.random.default_rng(3).integers(0, 9, (6, 30)).astype(float)
    found = kendall_all(rankings)
    for first, second in product(range(6), repeat=2):
        assert found[first][second] == kendall(rankings[first], rankings[second])
        assert found[first][second] == found[second][first]
    assert all(found[n][n] == 1 for n in range(6))


@given(st.permutations(range(7)))
def test_tau_ap_is_its_definition(truth: list[int]) -> None:
    scores = [float(score) for score in truth]
    estimate = [float(-place) for place in range(7)]
    found = tau_ap(scores, estimate)
    assert found == pytest.approx(by_definition(scores, list(range(7))), abs=1e-12)
    assert tau_ap_a(scores, estimate) == found


@given(st.permutations(range(5)), st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_with_ties_tau_ap_a_is_the_mean_over_all_orders(truth: list[int], tied: list[int]) -> None:
    scores = [float(score) for score in truth]
    orders = [
        order
        for order in permutations(range(5))
        if [tied[item] for item in order] == sorted(tied, reverse=True)
    ]
    mean = np.mean([by_definition(scores, list(order)) for order in orders])
    assert tau_ap_a(scores, [float(score) for score in tied]) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "values"),
    [
        pytest.param(X, Y, (0.8519, 0.7454, 0.8333, 0.7321), id="first"),
        pytest.param(SECOND_X, SECOND_Y, (0.2504, 0.2692, 0.2880, 0.297), id="second"),
    ],
)
def test_values_of_the_authors_package(
    x: tuple[float, ...], y: tuple[float, ...], values: tuple[float, ...]
) -> None:
    """Reference values of the R package ircor, by an author of tau_AP,a and tau_AP,b."""
    x_tied, y_tied = np.round(x, 1), np.round(y, 1)
    found = (tau_ap(x, y), tau_ap_a(x, y_tied), tau_ap_b(x, y), tau_ap_b(x_tied, y_tied))
    assert found == pytest.approx(values, abs=5e-5)


@given(FEW_LEVELS)
def test_tau_ap_b_is_symmetric_and_bounded(pairs: list[tuple[float, float]]) -> None:
    x, y = (list(column) for column in zip(*pairs, strict=True))
    found: Any = tau_ap_b(x, y)
    assert found == tau_ap_b(y, x)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert -1 <= found <= 1
        assert tau_ap_b(x, x) == 1


def test_too_few_items_or_one_tie_of_all_have_no_coefficient() -> None:
    for coefficient in (kendall, tau_ap, tau_ap_a, tau_ap_b):
        assert coefficient([], []) is None
        assert coefficient([1.0], [2.0]) is None
    assert kendall([1, 1, 1], [1, 2, 3]) is None
    assert tau_ap_b([1, 1, 1], [1, 2, 3]) is None
    assert tau_ap_a([1, 2, 3], [1, 1, 1]) == pytest.approx(0, abs=1e-12)


def test_what_no_ranking_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match="not-finite"):
        kendall([1, float("nan")], [1, 2])
    with pytest.raises(InputError, match="tied-scores"):
        tau_ap([1, 1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="tied-scores estimate: found"):
        tau_ap([1, 3, 2], [1, 2, 2])
    with pytest.raises(InputError, match="tied-scores truth"):
        tau_ap_a([1, 1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="2 and of 3"):
        tau_ap_b([1, 2], [1, 2, 3])
