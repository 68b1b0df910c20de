"""Bootstrap intervals against scipy, and how often they hold."""

import numpy as np
import pytest
from scipy import stats

from heldout.stats.resampling import (
    IntervalMethod,
    bca_interval,
    mean_interval,
    percentile_interval,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_bca_is_that_of_scipy_on_the_same_draws(seed: int, level: float) -> None:
    values = rng(seed).exponential(size=40)
    oracle = stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=999, method="BCa", rng=rng(seed)
    )
    jackknife = (values.sum() - values) / (len(values) - 1)

    ours = bca_interval(oracle.bootstrap_distribution, values.mean(), jackknife, level=level)

    expected = oracle.confidence_interval
    assert ours.low == pytest.approx(expected.low, rel=1e-12)
    assert ours.high == pytest.approx(expected.high, rel=1e-12)


def test_percentile_is_that_of_scipy_on_the_same_draws() -> None:
    values = rng().exponential(size=40)
    oracle = stats.bootstrap((values,), np.mean, n_resamples=999, method="percentile", rng=rng())

    ours = percentile_interval(oracle.bootstrap_distribution, values.mean())

    expected = oracle.confidence_interval
    assert ours.low == pytest.approx(expected.low, rel=1e-12)
    assert ours.high == pytest.approx(expected.high, rel=1e-12)


@pytest.mark.parametrize(
    ("method", "shape", "least"),
    [
        # 600 samples: two standard errors of the share are 0.018. Skewed means under-cover a
        # little at n = 50, the percentile more than BCa.
        ("percentile", "normal", 0.92),
        ("bca", "normal", 0.92),
        ("percentile", "skewed", 0.89),
        ("bca", "skewed", 0.90),
    ],
)
def test_nearly_so_many_intervals_hold_as_they_say(
    method: IntervalMethod, shape: str, least: float
) -> None:
    source = rng(7)
    held = 0
    for _ in range(600):
        values = source.normal(size=50) if shape == "normal" else source.exponential(size=50) - 1
        found = mean_interval(values, source, method=method, trials=800)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high

    assert least <= held / 600 <= 0.98


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("values", [[0.5], [0.25, 0.25, 0.25], [0.0, 0.0]])
def test_without_variation_an_interval_is_undefined(
    method: IntervalMethod, values: list[float]
) -> None:
    found = mean_interval(np.array(values), rng(), method=method, trials=100)

    assert (found.low, found.high) == (None, None)
    assert found.why == "every draw gives the same value"
    assert found.estimate == values[0]


def test_draws_on_one_side_of_the_estimate_give_no_bca_interval() -> None:
    found = bca_interval(np.array([1.0, 2.0, 3.0]), 5.0, np.array([1.0, 2.0]))

    assert (found.low, found.high) == (None, None)
    assert "one side" in found.why


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_an_interval_is_made_of_as_many_draws_as_asked(method: IntervalMethod) -> None:
    found = mean_interval(rng().normal(size=20), rng(), method=method, trials=123)
    assert found.draws == 123


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_shift_and_a_scale_move_the_interval_along(method: IntervalMethod) -> None:
    values = rng().integers(0, 9, 30) / 8
    plain = mean_interval(values, rng(), method=method, trials=500)
    moved = mean_interval(values * 2 + 1, rng(), method=method, trials=500)

    assert plain.low is not None
    assert moved.low == pytest.approx(plain.low * 2 + 1, abs=1e-12)
