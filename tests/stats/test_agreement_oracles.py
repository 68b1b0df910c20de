"""Kappa and alpha against the libraries that are named in the tests."""

from typing import get_args

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from statsmodels.stats import inter_rater as statsmodels

from heldout.stats.agreement import (
    KappaWeights,
    Scale,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
)

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)
WEIGHTS: tuple[KappaWeights, ...] = get_args(KappaWeights)
SCALES: tuple[Scale, ...] = get_args(Scale)
RATINGS = arrays(
    np.float64, (3, 8), elements=st.sampled_from([float("nan"), 0.0, 1.0, 2.0, 3.0, 5.0])
)


@given(PAIRS, st.sampled_from(WEIGHTS))
def test_cohen_is_that_of_statsmodels(pairs: list[tuple[int, int]], weights: KappaWeights) -> None:
    first, second = (list(column) for column in zip(*pairs, strict=True))
    found = cohen_kappa(first, second, weights=weights, categories=range(4))
    if len({*first, *second}) == 1:
        assert (found.value, found.why) == (None, "all ratings are in one category")
        return
    table = np.zeros((4, 4))
    np.add.at(table, (first, second), 1)
    weigh = None if weights == "none" else weights
    theirs = statsmodels.cohens_kappa(table, wt=weigh, return_results=False)
    assert found.value == pytest.approx(theirs, abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=20))
def test_fleiss_is_that_of_statsmodels(ratings: list[list[int]]) -> None:
    counts = [[row.count(category) for category in range(3)] for row in ratings]
    found = fleiss_kappa(counts)
    if len({rating for row in ratings for rating in row}) == 1:
        assert found.value is None
        return
    assert found.value == pytest.approx(statsmodels.fleiss_kappa(np.array(counts)), abs=1e-12)


@given(RATINGS, st.sampled_from(SCALES))
def test_alpha_is_that_of_krippendorff(ratings: NDArray[np.float64], scale: Scale) -> None:
    found = krippendorff_alpha(ratings, scale=scale)
    paired = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert found.value is None
        assert found.why is not None
        return
    theirs = krippendorff.alpha(reliability_data=ratings, level_of_measurement=scale)
    assert found.value == pytest.approx(theirs, abs=1e-10)
