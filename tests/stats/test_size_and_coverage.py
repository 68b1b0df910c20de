"""Under a true null p is uniform or conservative; intervals cover what they say they cover."""

import math

import numpy as np
import pytest
from scipy import stats
from simulated_worlds import simulate

TRIALS, SIZE = 250, 50
OTHERS = ("normal", "unpaired", "bounded")

NULLS = [
    *(
        (name, world)
        for name in ("sign", "binomial", "signed-rank", "t")
        for world in ("normal", "ties")
    ),
    ("rank-sum", "unpaired"),
    ("unpaired-t", "unpaired"),
]


def error(share: float) -> float:
    """Four standard errors of a share of the trials."""
    return 4 * math.sqrt(share * (1 - share) / TRIALS)


@pytest.mark.parametrize(("name", "world"), NULLS)
def test_p_is_uniform_or_conservative_under_the_null(name: str, world: str) -> None:
    p = simulate(name, world, size=SIZE, trials=TRIALS).p
    for alpha in (0.01, 0.05, 0.1, 0.3, 0.5):
        assert np.mean(p <= alpha) <= alpha + error(alpha)


@pytest.mark.parametrize(
    ("name", "world"),
    [
        ("t", "normal"),
        ("signed-rank", "normal"),
        ("unpaired-t", "unpaired"),
        ("rank-sum", "unpaired"),
    ],
)
def test_p_without_ties_is_uniform(name: str, world: str) -> None:
    p = simulate(name, world, size=SIZE, trials=TRIALS).p
    assert stats.kstest(p, "uniform").pvalue > 0.001


@pytest.mark.parametrize("name", ["rank-sum", "unpaired-t"])
def test_unpaired_tests_of_paired_runs_find_too_little(name: str) -> None:
    found = simulate(name, "normal", size=SIZE, trials=TRIALS)
    assert found.rejected <= 0.01
    assert found.covered >= 0.99


@pytest.mark.parametrize(
    "world", ["near ties", *(pytest.param(one, marks=pytest.mark.night) for one in OTHERS)]
)
@pytest.mark.parametrize(
    "name",
    ["sign", "binomial", "signed-rank", "rank-sum", "t", "unpaired-t"],
)
def test_intervals_cover_near_ties_too(name: str, world: str) -> None:
    found = simulate(name, world, size=SIZE, trials=TRIALS)
    assert found.covered >= found.level - error(found.level)


def test_a_long_tail_takes_a_few_points_from_intervals_of_the_mean() -> None:
    assert simulate("t", "skewed", size=SIZE, trials=TRIALS).covered >= 0.92 - error(0.92)


def test_signs_and_signed_ranks_do_not_test_the_mean_where_tails_differ() -> None:
    for name in ("sign", "signed-rank"):
        found = simulate(name, "skewed", size=SIZE, trials=TRIALS)
        assert found.rejected > 0.1
        assert found.covered >= 0.95 - error(0.05)
