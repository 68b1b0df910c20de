"""Tests between depths of annotation: the paper's, and those that fit the samples."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from heldout.scoring.measures import parse_measure
from heldout.survivorship.depths.scores import (
    DepthScores,
    DepthTest,
    compare_nested,
    compare_survivors,
    nested_error,
    order_of_systems,
    split_change,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from depth_coverage import err


def scores_of(
    values: NDArray[np.float64], first: NDArray[np.int64], *, systems: tuple[str, ...] = ()
) -> DepthScores:
    """Scores of shape (systems, queries, depths), with the depth of each query's first label."""
    depths = tuple(range(1, values.shape[2] + 1))
    known = first[:, np.newaxis] <= np.array(depths)
    return DepthScores(
        systems=systems or tuple(f"s{one}" for one in range(len(values))),
        depths=depths,
        open_ended=False,
        measure=parse_measure("RR@10"),
        queries=tuple(f"q{one}" for one in range(values.shape[1])),
        values=values * known,
        known=known,
        unanswered=np.zeros((len(values), len(depths)), np.int64),
    )


def some(seed: int, *, queries: int = 60, depths: int = 4, systems: int = 3) -> DepthScores:
    rng = np.random.default_rng(seed)
    first = rng.integers(1, depths + 1, queries)
    first[:4] = [1, 1, 2, 2]
    values = rng.choice([0.0, 0.1, 0.5, 1.0], (systems, queries, depths))
    return scores_of(values, first)


@given(st.integers(0, 50))
def test_the_paper_test_is_that_of_scipy(seed: int) -> None:
    scores = some(seed)
    for test in compare_nested(scores):
        system = scores.systems.index(test.system)
        sides = (scores.scores(system, test.depth), scores.scores(system, -1))
        expected = stats.ttest_ind(*sides, equal_var=True)
        if test.why:
            continue
        assert test.p == pytest.approx(expected.pvalue)
        assert test.difference == pytest.approx(sides[1].mean() - sides[0].mean())


@given(st.integers(0, 50))
def test_survivors_and_those_left_out_share_no_query_and_make_up_all(seed: int) -> None:
    scores = some(seed)
    for test in compare_survivors(scores):
        system = scores.systems.index(test.system)
        known = scores.known[:, test.depth]
        last = scores.values[system, :, -1]
        assert test.queries + test.others == len(scores.queries)
        if test.why:
            continue
        expected = stats.ttest_ind(last[~known], last[known], equal_var=False)
        interval = expected.confidence_interval(0.95)
        assert test.p == pytest.approx(expected.pvalue)
        assert (test.low, test.high) == pytest.approx((interval.low, interval.high))


@given(st.integers(0, 50))
def test_both_parts_of_a_change_add_up_to_it(seed: int) -> None:
    scores = some(seed)
    means = scores.means()
    for one in split_change(scores):
        system = scores.systems.index(one.system)
        before, after = means[one.depth][system], means[-1][system]
        assert before is not None
        assert after is not None
        assert one.labels is not None
        assert one.queries is not None
        assert one.labels + one.queries == pytest.approx(after - before)


@pytest.mark.parametrize("compare", [compare_nested, compare_survivors])
def test_p_is_multiplied_by_the_depths_of_a_system(
    compare: Callable[[DepthScores], Sequence[DepthTest]],
) -> None:
    tests = [test for test in compare(some(1, systems=2, queries=200)) if test.p is not None]
    assert tests
    assert all(test.p_corrected == min(1.0, (test.p or 0.0) * 3) for test in tests)


def test_where_depth_means_nothing_the_paper_test_errs_as_seldom_as_told() -> None:
    """Scores drawn without regard to depth; the paper's sizes, a hundredth of them."""
    rng = np.random.default_rng(7)
    counts = np.array([82, 155, 221, 279, 331, 380, 427, 471, 513, 556])
    draws = 20_000
    values = rng.choice([0.0, 0.0, 0.25, 0.5, 1.0], (draws, counts[-1]))
    cumulative, squares = np.cumsum(values, 1), np.cumsum(values**2, 1)
    errors = []
    for count in counts[:5]:
        mean, other = cumulative[:, count - 1] / count, cumulative[:, -1] / counts[-1]
        rest = squares[:, count - 1] - count * mean**2, squares[:, -1] - counts[-1] * other**2
        pooled = (rest[0] + rest[1]) / (count + counts[-1] - 2)
        t = (other - mean) / np.sqrt(pooled * (1 / count + 1 / counts[-1]))
        errors.append(float((2 * stats.t.sf(abs(t), count + counts[-1] - 2) < 0.05).mean()))
    told = [nested_error(count / counts[-1]) for count in counts[:5]]

    for error, expected in zip(errors, told, strict=True):
        assert error == pytest.approx(expected, abs=4 * (expected / draws) ** 0.5 + 0.001)
    assert told[0] > 0.02 > told[2] > 0.002
    assert float(np.mean([nested_error(count / counts[-1]) for count in counts[:9]])) < 0.005


def test_absurd_systems_have_a_reason_and_no_p() -> None:
    values = np.zeros((2, 30, 2))
    values[1] = 1.0
    first = np.repeat([1, 2], 15)
    for compare in (compare_nested, compare_survivors):
        for test in compare(scores_of(values, first)):
            assert test.p is None
            assert test.low is None
            assert test.difference == 0.0
            assert "the same" in test.why


def test_a_depth_without_a_query_and_one_that_adds_none_have_a_reason() -> None:
    values = np.random.default_rng(0).random((1, 30, 3))
    scores = scores_of(values, np.repeat([2], 30))
    nested, survivors = compare_nested(scores), compare_survivors(scores)

    assert scores.means()[0] == (None,)
    assert (nested[0].p, nested[0].difference, nested[0].queries) == (None, None, 0)
    assert survivors[1].why == "no query is added"
    assert split_change(scores)[0].labels is None
    assert order_of_systems(scores)[0].tau is None


def test_tau_needs_three_systems_and_says_so() -> None:
    assert {one.tau for one in order_of_systems(some(0, systems=2))} == {None}
    assert all("fewer than 3" in one.why for one in order_of_systems(some(0, systems=2)))
    assert all(one.tau is not None for one in order_of_systems(some(0, systems=3)))


def test_systems_that_turn_round_with_depth_have_a_tau_of_minus_1() -> None:
    first = np.repeat([1, 2], [10, 90])
    values = np.zeros((3, 100, 2))
    for system, (shallow, deep) in enumerate([(0.9, 0.1), (0.5, 0.5), (0.1, 0.9)]):
        values[system, :10], values[system, 10:] = shallow, deep

    (order,) = order_of_systems(scores_of(values, first))
    assert order.tau == -1.0


@pytest.mark.parametrize(
    ("queries", "found"),
    [
        (100, 0.3),
        *(
            pytest.param(*one, marks=pytest.mark.night)
            for one in ((100, 0.5), (300, 0.1), (300, 0.3))
        ),
    ],
)
def test_where_depth_means_nothing_the_test_that_fits_seldom_errs(
    queries: int, found: float
) -> None:
    """By Welch's t on whatever there is 10 to 29% of such studies had a significant depth."""
    fits = err(queries=queries, found=found, worlds=200, seed=1)
    assert fits.wrong * 200 <= stats.binom.ppf(0.999, 200, 0.05)
    assert fits.tested > 0


def test_a_side_with_too_few_scores_has_a_difference_and_no_p() -> None:
    draw = np.random.default_rng(3)
    first = np.array([1] * 400 + [2] * 10)
    values = np.where(draw.random((1, 410, 2)) < 0.5, 1.0, 0.0)
    (test,) = compare_survivors(scores_of(values, first))
    assert (test.p, test.p_corrected, test.low, test.high) == (None, None, None, None)
    assert test.difference is not None
    assert "too few queries for a t test" in test.why
    (paper,) = compare_nested(scores_of(values, first))
    assert paper.p is not None
