"""p-values are scipy's, to 1e-11, where scipy is given exact ties; where it is not, it is wrong."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from heldout.stats.exact import differences, scale_of
from heldout.stats.rank_tests import rank_differences
from heldout.stats.results import Alternative, AskedTest
from heldout.stats.student import unpaired_t_test
from heldout.stats.tests import compare_counts, run_test

Scores = NDArray[np.float64]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
CLOSE = 1e-11


def reciprocal_ranks(rng: np.random.Generator, size: int, depth: int) -> tuple[Scores, Scores]:
    """RR@depth of two systems that agree on half of the queries."""
    ranks = rng.integers(1, depth + 3, size=(2, size))
    ranks[1] = np.where(rng.random(size) < 0.5, ranks[0], ranks[1])
    values = np.where(ranks > depth, 0.0, 1 / ranks)
    return values[0], values[1]


def exact_ranks(a: Scores, b: Scores) -> Scores:
    """Whole numbers in the order of the differences of the rationals, ties and signs the same."""
    scale = scale_of([*a, *b])
    assert scale is not None
    return np.sign(b - a) * scale.classes[scale.codes(a), scale.codes(b)]


def approximate(a: Scores, b: Scores, alternative: Alternative = "two-sided") -> float | None:
    """The p of the signed-rank test by its normal approximation, however few differences."""
    ask = AskedTest(alternative=alternative, level=0.95)
    return rank_differences(differences(a, b), ask, exact_at_most=0).p


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_signed_rank(alternative: Alternative) -> None:
    for seed in range(10):
        a, b = reciprocal_ranks(np.random.default_rng(seed), 30 + 40 * seed, 10 + 10 * seed)
        theirs = stats.wilcoxon(
            exact_ranks(a, b), alternative=alternative, correction=True, method="asymptotic"
        )
        assert approximate(a, b, alternative) == pytest.approx(theirs.pvalue, abs=CLOSE)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_signed_rank_exact_without_ties(alternative: Alternative) -> None:
    rng = np.random.default_rng(5)
    for size in (2, 3, 7, 20, 50):
        a, b = rng.random(size), rng.random(size)
        ours = run_test("signed-rank", a, b, alternative=alternative)
        theirs = stats.wilcoxon(b - a, alternative=alternative, method="exact")
        assert ours.p == pytest.approx(theirs.pvalue, abs=CLOSE)


def chances_by_hand(signed: Scores) -> tuple[float, float]:
    """P(sum >= observed) and P(sum <= observed) over all signs of the differences that are not 0.

    Args:
        signed: ranks of the differences with their signs, as whole numbers.
    """
    kept = signed[signed != 0]
    ranks = stats.rankdata(np.abs(kept))
    seen = ranks[kept > 0].sum()
    sums = np.array([ranks @ signs for signs in product((0, 1), repeat=len(ranks))])
    return float(np.mean(sums >= seen)), float(np.mean(sums <= seen))


def test_signed_rank_exact_with_ties_is_the_share_of_all_signs() -> None:
    for seed in range(12):
        a, b = reciprocal_ranks(np.random.default_rng(seed), 14, 5)
        above, below = chances_by_hand(exact_ranks(a, b))
        for alternative, p in zip(
            ALTERNATIVES, (min(1, 2 * min(above, below)), above, below), strict=True
        ):
            ours = run_test("signed-rank", a, b, alternative=alternative)
            assert ours.p == pytest.approx(p, abs=CLOSE)


def test_scipy_breaks_exact_ties_of_reciprocal_ranks_and_we_do_not() -> None:
    a = np.array([1 / 3, 0.0, 0.0, 1 / 2] * 5)
    b = np.array([1 / 2, 1 / 6, 1 / 6, 1 / 3] * 5)
    assert np.unique(np.abs(differences(a, b))).tolist() == [1 / 6]
    assert np.unique(np.abs(b - a)).size == 2
    ours = approximate(a, b)
    right = stats.wilcoxon([1, 1, 1, -1] * 5, method="asymptotic", correction=True).pvalue
    wrong = stats.wilcoxon(b - a, method="asymptotic", correction=True).pvalue
    assert ours == pytest.approx(right, abs=CLOSE)
    assert abs(wrong - right) > 1e-4


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_rank_sum(alternative: Alternative) -> None:
    for seed in range(10):
        a, b = reciprocal_ranks(np.random.default_rng(seed), 20 + 30 * seed, 10)
        mann_whitney = run_test("rank-sum", a, b, alternative=alternative)
        theirs = stats.mannwhitneyu(b, a, alternative=alternative, method="asymptotic")
        assert mann_whitney.p == pytest.approx(theirs.pvalue, abs=CLOSE)
        assert mann_whitney.statistic == theirs.statistic


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_rank_sum_of_samples_of_different_sizes(alternative: Alternative) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 5, 7) / 4, rng.integers(0, 5, 19) / 4
    ours = run_test("rank-sum", a, b, alternative=alternative)
    theirs = stats.mannwhitneyu(b, a, alternative=alternative, method="asymptotic")
    assert ours.p == pytest.approx(theirs.pvalue, abs=CLOSE)
    assert ours.n == ours.used == 26


def test_the_centre_of_the_rank_sum_interval_and_its_width_are_brunner_and_munzels() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random(25), rng.random(31) + 0.2
    ours = run_test("rank-sum", a, b, level=0.9)
    wins = np.sign(b[:, None] - a).mean()
    assert ours.difference == pytest.approx(wins, abs=CLOSE)
    theirs = stats.brunnermunzel(b, a)
    assert ours.low is not None
    assert ours.high is not None
    # The statistic is the share's distance from one half in standard errors
    centre, half = (ours.low + ours.high) / 2, (ours.high - ours.low) / 2
    freedom = brunner_munzel_freedom(a, b)
    assert centre == pytest.approx(wins, abs=CLOSE)
    assert half == pytest.approx(abs(wins / theirs.statistic) * stats.t.ppf(0.95, freedom))


def brunner_munzel_freedom(a: Scores, b: Scores) -> float:
    of_a = np.array([np.mean(b < x) for x in a])
    of_b = np.array([np.mean(a < x) for x in b])
    parts = np.array([of_a.var(ddof=1) / len(a), of_b.var(ddof=1) / len(b)])
    return float(parts.sum() ** 2 / (parts**2 / [len(a) - 1, len(b) - 1]).sum())


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_t_tests_and_their_intervals(alternative: Alternative) -> None:
    for seed in range(10):
        a, b = reciprocal_ranks(np.random.default_rng(seed), 5 + 50 * seed, 100)
        ask = AskedTest(alternative=alternative, level=0.95)
        rows: list[tuple[Any, Any]] = [
            (
                run_test("t", a, b, alternative=alternative),
                stats.ttest_rel(b, a, alternative=alternative),
            ),
            (
                run_test("unpaired-t", a, b, alternative=alternative),
                stats.ttest_ind(b, a, alternative=alternative, equal_var=False),
            ),
            (
                unpaired_t_test(a, b, ask, kind="student"),
                stats.ttest_ind(b, a, alternative=alternative),
            ),
        ]
        for ours, theirs in rows:
            assert ours.p == pytest.approx(theirs.pvalue, abs=CLOSE)
            if alternative == "two-sided":
                interval = theirs.confidence_interval(0.95)
                assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_binomial_and_sign_with_their_interval(alternative: Alternative) -> None:
    for a_wins, b_wins in product((0, 1, 4, 30, 700), (0, 1, 5, 29, 800)):
        if not a_wins + b_wins:
            continue
        theirs: Any = stats.binomtest(b_wins, a_wins + b_wins, alternative=alternative)
        ours = compare_counts(a_wins, b_wins, alternative=alternative, level=0.9)
        assert ours.p == pytest.approx(theirs.pvalue, abs=CLOSE)
        both = stats.binomtest(b_wins, a_wins + b_wins).proportion_ci(0.9, "exact")
        assert ours.low == pytest.approx(2 * both.low - 1, abs=CLOSE)
        assert ours.high == pytest.approx(2 * both.high - 1, abs=CLOSE)


def test_sign_and_binomial_count_what_they_say() -> None:
    a, b = np.array([0.0, 0.0, 0.5, 1.0, 0.2]), np.array([0.5, 0.0, 0.25, 0.99, 0.4])
    assert run_test("sign", a, b).p == compare_counts(2, 2).p
    assert run_test("binomial", a, b).p == compare_counts(0, 1).p


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9), st.sampled_from((0, 50)))
def test_the_exact_sum_is_symmetric_about_its_mean(values: list[int], most: int) -> None:
    difference = np.array(values, np.float64)
    asks = [AskedTest(alternative=alternative, level=0.95) for alternative in ("greater", "less")]
    found = [
        rank_differences(sign * difference, ask, exact_at_most=most).p
        for sign, ask in zip((1, -1), asks, strict=True)
    ]
    assert found[0] == pytest.approx(found[1])
