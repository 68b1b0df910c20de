"""Means and logistic regressions over groups, against statsmodels."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from heldout.stats.regression import clustered_share, fit_logistic


def draw(seed: int, groups: int = 40, each: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regressors, outcomes 0 or 1, and groups that lean each in its own way."""
    rng = np.random.Generator(np.random.PCG64(seed))
    own = np.repeat(np.arange(groups), each)
    rows = rng.normal(size=(groups * each, 2)) + rng.normal(size=groups)[own, None] / 2
    slopes = rows @ [0.8, -0.5] + rng.normal(size=groups)[own] * 0.7
    return rows, (rng.random(len(own)) < 1 / (1 + np.exp(-slopes))).astype(float), own


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_and_intervals_are_those_of_statsmodels(seed: int) -> None:
    rows, outcomes, own = draw(seed)
    peer = sm.Logit(outcomes, rows).fit(disp=0, cov_type="cluster", cov_kwds={"groups": own})
    found = fit_logistic(rows, outcomes, own)
    assert found.values == pytest.approx(peer.params, rel=1e-6)
    assert np.column_stack([found.low, found.high]) == pytest.approx(peer.conf_int(), rel=1e-6)
    assert (found.units, found.groups, found.why) == (320, 40, None)


@pytest.mark.parametrize("seed", range(3))
def test_a_mean_is_that_of_a_regression_on_ones(seed: int) -> None:
    _, outcomes, own = draw(seed)
    more = np.concatenate([outcomes, np.ones(8), np.zeros(8)])
    groups = np.concatenate([own, [40] * 8, [41] * 8])
    peer = sm.OLS(more, np.ones(len(more))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    found: Any = clustered_share(outcomes, own)
    assert found.value == pytest.approx(outcomes.mean())
    assert (found.low + found.high) / 2 == pytest.approx(peer.params[0])
    assert (found.high - found.low) / 2 / t.ppf(0.975, 39) == pytest.approx(peer.bse[0])


def test_two_groups_are_enough_for_an_interval() -> None:
    rows, outcomes, own = draw(3, groups=2, each=30)
    found = fit_logistic(rows, outcomes, own)
    assert (found.units, found.groups, found.why) == (60, 2, None)
    assert all(low < high for low, high in zip(found.low, found.high, strict=True))


def test_a_half_is_half_of_each_outcome() -> None:
    rows, outcomes, own = draw(9)
    outcomes[::3] = 0.5
    split = np.concatenate([outcomes, outcomes])
    split[: len(outcomes)][outcomes == 0.5] = 0
    split[len(outcomes) :][outcomes == 0.5] = 1
    peer = sm.Logit(split, np.concatenate([rows, rows])).fit(disp=0)
    assert fit_logistic(rows, outcomes, own).values == pytest.approx(peer.params, rel=1e-6)


@pytest.mark.parametrize(
    ("rows", "outcomes", "groups", "why"),
    [
        (np.zeros((0, 1)), [], [], "too few"),
        ([], [], [], "too few"),
        ([[1.0], [2.0], [3.0]], [0, 1, 1], ["a"] * 3, "too few"),
        ([[1.0], [-1.0], [2.0], [-2.0]], [1, 0, 1, 0], ["a", "b", "c", "d"], "every outcome"),
        ([[1.0, 2.0]] * 4, [1, 0, 1, 0], ["a", "b", "c", "d"], "explain each other"),
        ([[0.0]] * 4, [1, 0, 1, 0], ["a", "b", "c", "d"], "explain each other"),
        ([[1.0]] * 4, [1, 1, 1, 1], ["a", "b", "c", "d"], "every outcome"),
    ],
)
def test_what_cannot_be_fitted_is_undefined_with_its_reason(
    rows: list[list[float]], outcomes: list[float], groups: list[str], why: str
) -> None:
    found = fit_logistic(rows, outcomes, groups)
    assert why in (found.why or "")
    assert (found.units, found.groups) == (len(outcomes), len(set(groups)))
    assert (found.values, found.low, found.high) == ((), (), ())


def test_a_mean_of_one_group_has_no_interval_and_of_none_no_value() -> None:
    one = clustered_share([0.0, 1.0], ["q", "q"])
    assert (one.value, one.low, one.high, one.groups) == (0.5, None, None, 1)
    assert clustered_share([], []).value is None


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=30))
def test_a_mean_lies_in_its_interval(units: list[tuple[float, int]]) -> None:
    values, groups = zip(*units, strict=True)
    found = clustered_share(values, groups)
    if found.low is not None and found.value is not None and found.high is not None:
        assert found.low <= found.value <= found.high


def test_units_that_are_all_alike_are_no_certainty() -> None:
    found: Any = clustered_share([1.0] * 6, range(6))
    assert (found.value, found.high) == (1, 1)
    assert found.low < 0.7


@pytest.mark.parametrize(("groups", "share"), [(5, 0.95), (10, 0.95), (10, 0.63), (50, 0.95)])
def test_intervals_of_shares_hold_with_few_groups_and_near_one(groups: int, share: float) -> None:
    """Without the added groups: .56, .82, .92, .91."""
    rng = np.random.Generator(np.random.PCG64([groups, round(100 * share)]))
    held, trials = 0, 400
    for _ in range(trials):
        sizes = rng.integers(1, 11, groups)
        own = np.repeat(rng.beta(4 * share, 4 * (1 - share), groups), sizes)
        right = (rng.random(len(own)) < own).astype(float)
        found: Any = clustered_share(right, np.repeat(np.arange(groups), sizes))
        held += found.low <= share <= found.high
    assert held / trials >= 0.93
