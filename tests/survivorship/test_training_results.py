"""Conditions compared: what each test answers, what is corrected, what a control is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from heldout.ids import Digest
from heldout.survivorship.training import results
from heldout.survivorship.training.triples import ALL, Condition, paper_conditions

SEEDS, QUERIES = 3, 60
R1, R5, LIKE1 = Condition(depth=1), Condition(depth=5), Condition(like=1)


def world(
    gains: dict[Condition, float], *, seed: int = 0, luck: float = 0.0
) -> dict[Condition, NDArray[np.float64]]:
    """Scores with a gain for each condition, and luck that a seed has on every query."""
    rng = np.random.default_rng(seed)
    easy = rng.uniform(0.2, 0.6, QUERIES)
    return {
        condition: easy
        + gain
        + rng.normal(0, luck, (SEEDS, 1))
        + rng.normal(0, 0.05, (SEEDS, QUERIES))
        for condition, gain in gains.items()
    }


def record(labels: int = 8, *, triples: int = 40, queries: int = 5) -> results.CellRecord:
    return results.CellRecord(
        digest=Digest(""), condition="", seed=0, triples=triples, labels=labels,
        queries=queries, missing=0, steps=1, passes=1.0, first_loss=1.0, last_loss=0.5, seconds=1.0,
        device="cpu", precision="float32",
    )  # fmt: skip


def equal(
    scores: dict[Condition, NDArray[np.float64]],
) -> dict[Condition, list[results.CellRecord]]:
    """The same amount for each condition and seed."""
    return {condition: [record()] * len(values) for condition, values in scores.items()}


def scored(
    scores: dict[Condition, NDArray[np.float64]], first: NDArray[np.float64] | None = None
) -> results.TestScores:
    first = np.full(QUERIES, 0.3) if first is None else first
    return results.TestScores(
        test="t", measure="RR@10", scores=scores, first_stage=first, first_name="BM25"
    )


def compared(scores: dict[Condition, NDArray[np.float64]]) -> results.TestOutcome:
    return results.compare_conditions(scored(scores), equal(scores))


def test_the_pairs_are_those_of_the_papers_figure_and_each_depth_with_its_control() -> None:
    pairs = results.pairs_of(paper_conditions([1, 5], controls=[1]))
    assert pairs == ((ALL, R1), (ALL, R5), (ALL, LIKE1), (R5, R1), (LIKE1, R1))


def test_with_more_depths_each_is_held_against_the_next_deeper_one_alone() -> None:
    pairs = results.pairs_of(paper_conditions([5, 1, 3], controls=[]))
    r3 = Condition(depth=3)
    assert pairs == ((ALL, R1), (ALL, r3), (ALL, R5), (r3, R1), (R5, r3))


def test_within_a_seed_it_is_scipys_paired_t_times_the_family() -> None:
    scores = world({R1: -0.05, R5: 0.0, ALL: 0.0, LIKE1: -0.04})
    for one in compared(scores).comparisons:
        assert one.family == 5
        for seed in range(SEEDS):
            expected = stats.ttest_rel(scores[one.b][seed], scores[one.a][seed]).pvalue
            corrected = one.within_corrected[seed]
            assert corrected == pytest.approx(min(1.0, 5 * expected), rel=1e-9)


def test_averaged_it_is_the_paired_t_of_means_over_seeds() -> None:
    scores = world({R1: -0.02, ALL: 0.0})
    (one,) = compared(scores).comparisons
    expected = stats.ttest_rel(scores[R1].mean(axis=0), scores[ALL].mean(axis=0))
    assert one.averaged.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert one.averaged.difference == pytest.approx(one.across.difference)


def test_the_luck_of_seeds_is_significant_within_a_seed_and_not_across() -> None:
    within, across = 0, 0
    for seed in range(40):
        (one,) = compared(world({R1: 0.0, ALL: 0.0}, seed=seed, luck=0.05)).comparisons
        within += sum(p is not None and p < 0.05 for p in one.within_corrected)
        across += one.across_corrected is not None and one.across_corrected < 0.05
    assert within > 40  # a third of the single-seed tests and more are "significant"
    assert across <= 6  # nominal: 2 of 40


def test_a_true_effect_of_depth_shows_against_the_control_and_amount_alone_does_not() -> None:
    deep = compared(world({R1: -0.1, ALL: 0.0, LIKE1: 0.0}))
    amount = compared(world({R1: -0.1, ALL: 0.0, LIKE1: -0.1}))
    found = {(one.a, one.b): one for one in deep.comparisons}
    at_size = found[LIKE1, R1]
    assert at_size.same_size
    assert at_size.across_corrected is not None
    assert at_size.across_corrected < 0.01
    same = {(one.a, one.b): one for one in amount.comparisons}[LIKE1, R1]
    assert same.across_corrected is not None
    assert same.across_corrected > 0.2


@pytest.mark.parametrize("amount", [record(9), record(triples=39), record(queries=4)])
def test_a_control_with_other_amounts_is_not_called_as_large(amount: results.CellRecord) -> None:
    scores = world({R1: -0.1, ALL: 0.0, LIKE1: 0.0})
    amounts = equal(scores)
    amounts[LIKE1] = [*amounts[LIKE1][:-1], amount]
    found = results.compare_conditions(scored(scores), amounts)
    (control,) = (one for one in found.comparisons if one.controlled)
    assert not control.same_size
    answer = results.answer_training([found], [], level=0.95)
    assert "nearly" in [row[2] for row in answer.tables[-1].rows]


def test_the_detectable_difference_is_found_four_times_out_of_five() -> None:
    (one,) = compared(world({R1: 0.0, ALL: 0.0})).comparisons
    assert one.detectable is not None
    rng = np.random.default_rng(1)
    drawn = rng.normal(one.detectable, one.deviation, (4000, QUERIES))
    share = (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()
    # Binomial(4000, .8): four standard deviations are .025.
    assert abs(share - 0.8) < 0.025


def test_one_seed_has_no_spread_and_says_so() -> None:
    scores = {one: values[:1] for one, values in world({R1: -0.05, ALL: 0.0}).items()}
    found = compared(scores)
    assert [one.spread for one in found.conditions] == [None, None]
    (one,) = found.comparisons
    assert one.across.difference == pytest.approx(one.averaged.difference)
    assert (one.across.p, one.across.low, one.across.high) == (None, None, None)
    assert one.across.why == "one seed says nothing of others"
    assert one.across_corrected is None
    assert one.averaged_corrected is not None
    answer = results.answer_training([found], [], level=0.95)
    assert "no p or interval across: one seed says nothing of others" in answer.tables[-1].notes


def test_the_same_scores_twice_have_no_p_and_no_detectable_difference() -> None:
    scores = {one: np.full((2, QUERIES), 0.5) for one in (R1, ALL)}
    (one,) = compared(scores).comparisons
    assert one.across.p is None
    assert one.across.why
    assert one.across_corrected is None
    assert one.averaged_corrected is None
    assert one.detectable is None


@given(st.integers(1, 4), st.integers(1, 4))
def test_conditions_on_other_seeds_are_refused(one: int, other: int) -> None:
    scores = {R1: np.zeros((one, 5)), ALL: np.zeros((other, 5))}
    if one != other:
        with pytest.raises(ValueError, match=r"\(\d"):
            results.compare_conditions(scored(scores, np.zeros(5)), equal(scores))


def test_the_interval_of_a_curve_is_students_over_the_trials() -> None:
    shares = [Condition(share=0.5), ALL]
    rng = np.random.default_rng(2)
    scores = {share: rng.uniform(0, 1, (5, QUERIES)) for share in shares}
    records = {share: [record(round(100 * share.share))] * 5 for share in shares}
    curve = results.describe_conditions(scored(scores), records)
    assert [point.labels for point in curve.conditions] == [50, 100]
    for point in curve.conditions:
        means = scores[point.condition].mean(axis=1)
        low, high = stats.t.interval(0.95, 4, means.mean(), stats.sem(means))
        assert (point.low, point.high) == pytest.approx((low, high))


def test_a_curve_of_one_trial_has_no_interval_and_says_why() -> None:
    curve = results.describe_conditions(
        scored({ALL: np.ones((1, 4)) / 2}, np.zeros(4)), {ALL: [record(9)]}
    )
    assert curve.conditions[0].low is None
    assert curve.conditions[0].why
