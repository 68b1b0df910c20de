"""Bootstrap intervals against scipy."""

import numpy as np
import pytest
from scipy import stats

from heldout.stats.resampling import (
    bca_interval,
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

    ours = percentile_interval(oracle.bootstrap_distribution)

    expected = oracle.confidence_interval
    assert ours.low == pytest.approx(expected.low, rel=1e-12)
    assert ours.high == pytest.approx(expected.high, rel=1e-12)


def test_without_variation_or_with_all_draws_on_one_side_there_is_none() -> None:
    none, some = np.array([0.5, 0.5]), np.array([1.0, 2.0, 3.0])
    assert percentile_interval(none) == (None, None)
    for draws, estimate, jackknife in ((none, 0.5, some), (some, 2.0, none), (some, 5.0, some)):
        assert bca_interval(draws, estimate, jackknife) == (None, None)
