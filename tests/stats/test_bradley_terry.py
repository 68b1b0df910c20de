"""Bradley-Terry strengths: laws, peers, and how often intervals hold the truth."""

import choix
import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.stats.bradley_terry import (
    Comparisons,
    Model,
    _pulls,
    _tables,
    bootstrap_differences,
    fit_strengths,
    sandwich_differences,
    slopes,
)


def compared(
    rows: list[tuple[int, int, float]], *, items: int, cluster: list[int] | None = None
) -> Comparisons:
    table = np.array(rows, np.float64).reshape(-1, 3)
    groups = np.arange(len(rows)) if cluster is None else np.array(cluster)
    return Comparisons(
        items=items,
        first=table[:, 0].astype(np.int64),
        second=table[:, 1].astype(np.int64),
        won=table[:, 2],
        cluster=groups.astype(np.int64),
        clusters=int(groups.max(initial=-1)) + 1,
    )


def rows_of(items: int, *, ties: bool) -> st.SearchStrategy[list[tuple[int, int, float]]]:
    pair = st.permutations(range(items)).map(lambda order: (order[0], order[1]))
    won = st.sampled_from([0.0, 0.5, 1.0] if ties else [0.0, 1.0])
    return st.lists(st.tuples(pair, won).map(lambda one: (*one[0], one[1])), max_size=40)


@given(rows_of(5, ties=False), st.sampled_from([0.1, 1.0, 3.0]))
def test_strengths_are_those_of_choix(rows: list[tuple[int, int, float]], prior: float) -> None:
    wins = [(a, b) if won else (b, a) for a, b, won in rows]
    # choix adds alpha times the squares, without the half of a normal density.
    expected = choix.opt_pairwise(5, wins, alpha=prior / 2, tol=1e-9) if wins else np.zeros(5)
    found = fit_strengths(compared(rows, items=5), prior=prior)
    np.testing.assert_allclose(found.values, expected - expected.mean(), atol=1e-5)


def test_strengths_with_ties_as_half_wins_are_those_of_evalica() -> None:
    rng = np.random.default_rng(4)
    rows = [(i, j, won) for i in range(6) for j in range(6) if i != j for won in (0.0, 0.5, 1.0)]
    rows = [row for row in rows if rng.random() < 0.6]
    names = {0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw, 1.0: evalica.Winner.X}
    first, second, won = zip(*rows, strict=True)
    result = evalica.bradley_terry(
        first, second, [names[one] for one in won], limit=100_000, tolerance=1e-13
    )
    expected = np.log(result.scores.sort_index().to_numpy())
    found = fit_strengths(compared(rows, items=6), prior=0)
    np.testing.assert_allclose(found.values, expected - expected.mean(), atol=1e-8)


@given(rows_of(5, ties=True))
def test_who_stands_first_makes_no_difference(rows: list[tuple[int, int, float]]) -> None:
    turned = [(b, a, 1 - won) for a, b, won in rows]
    found = fit_strengths(compared(rows, items=5))
    other = fit_strengths(compared(turned, items=5))
    np.testing.assert_allclose(found.values, other.values, atol=1e-8)
    assert abs(found.values.sum()) < 1e-6
    assert np.isfinite(found.values).all()


def test_a_shut_out_is_finite_with_a_prior_and_an_error_without() -> None:
    won_all = compared([(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (2, 1, 1.0)], items=3)
    found = fit_strengths(won_all)
    assert found.separated
    assert found.values[0] > found.values[1]
    with pytest.raises(InputError, match="no-finite-strengths"):
        fit_strengths(won_all, prior=0)


def test_two_that_never_met_have_no_interval() -> None:
    rows = [(0, 1, 1.0), (1, 0, 1.0), (2, 3, 1.0), (3, 2, 1.0)] * 3
    apart = compared(rows, items=4)
    found = fit_strengths(apart)
    assert not found.separated
    assert found.components.tolist() == [0, 0, 1, 1]
    intervals = sandwich_differences(apart, found)
    assert np.isnan(intervals.low[0, 2])
    assert intervals.low[0, 1] < 0 < intervals.high[0, 1]
    with pytest.raises(InputError, match="no-finite-strengths"):
        fit_strengths(apart, prior=0)


def test_nothing_compared_is_no_difference_and_no_interval() -> None:
    nothing = compared([], items=3)
    found = fit_strengths(nothing)
    assert found.values.tolist() == [0, 0, 0]
    assert np.isnan(sandwich_differences(nothing, found).low[0, 1])


def test_one_cluster_has_no_interval() -> None:
    one = compared([(0, 1, 1.0), (1, 0, 1.0)], items=2, cluster=[0, 0])
    assert np.isnan(sandwich_differences(one, fit_strengths(one)).low).all()


def test_votes_of_one_query_are_not_taken_for_many_queries() -> None:
    rows = [(0, 1, float(query % 3 > 0)) for query in range(60) for _ in range(5)]
    together = compared(rows, items=2, cluster=[query for query in range(60) for _ in range(5)])
    apart = compared(rows, items=2)
    found = fit_strengths(together)
    wide = sandwich_differences(together, found)
    narrow = sandwich_differences(apart, found)
    ratio = (wide.high - wide.low)[0, 1] / (narrow.high - narrow.low)[0, 1]
    assert ratio == pytest.approx(5**0.5, rel=0.03)


def test_two_items_give_the_interval_of_a_logit() -> None:
    won, lost = 70, 30
    two = compared([(0, 1, 1.0)] * won + [(0, 1, 0.0)] * lost, items=2)
    found = sandwich_differences(two, fit_strengths(two, prior=0))
    half = 1.9842 * (1 / won + 1 / lost) ** 0.5 * (100 / 99) ** 0.5
    assert found.values[0, 1] == pytest.approx(np.log(won / lost))
    assert found.high[0, 1] - found.values[0, 1] == pytest.approx(half, rel=1e-3)


def simulate(rng: np.random.Generator, truth: NDArray[np.float64], queries: int) -> Comparisons:
    """Each query moves every strength by its own amount, and each two are compared in it."""
    rows, cluster = [], []
    for query in range(queries):
        moved = truth + rng.normal(0, 1, len(truth))
        for a in range(len(truth)):
            for b in range(a):
                chance = 1 / (1 + np.exp(moved[b] - moved[a]))
                rows.append((a, b, float(rng.random() < chance)))
                cluster.append(query)
    return compared(rows, items=len(truth), cluster=cluster)


@pytest.mark.night
def test_intervals_of_both_kinds_hold_what_many_queries_would_say() -> None:
    truth = np.array([0.6, 0.0, -0.2, -0.4])
    rng = np.random.default_rng(11)
    limit = fit_strengths(simulate(rng, truth, 20_000)).values
    target = limit[0] - limit[2]
    held = np.zeros(3)
    trials = 200
    for _ in range(trials):
        seen = simulate(rng, truth, 60)
        found = fit_strengths(seen)
        naive = compared(
            list(zip(seen.first.tolist(), seen.second.tolist(), seen.won.tolist(), strict=True)),
            items=4,
        )
        for place, each in enumerate(
            (
                sandwich_differences(seen, found),
                bootstrap_differences(seen, found, rng, draws=150),
                sandwich_differences(naive, found),
            )
        ):
            held[place] += each.low[0, 2] <= target <= each.high[0, 2]
    share = held / trials
    assert 0.91 <= share[0] <= 0.98
    assert 0.90 <= share[1] <= 0.98
    assert share[2] < share[0]


@settings(max_examples=25)
@given(rows=rows_of(4, ties=True), seed=st.integers(0, 1000))
def test_curves_and_what_clusters_say_are_what_small_steps_say(
    rows: list[tuple[int, int, float]], seed: int
) -> None:
    seen = compared(rows, items=4, cluster=[place // 3 for place in range(len(rows))])
    model = Model(items=4, prior=0.3)
    at = np.random.default_rng(seed).normal(size=4)
    totals = np.asarray(_tables(seen).sum(axis=0), np.float64)[np.newaxis]
    slope, curve = slopes(at[np.newaxis], totals, model)
    for place in range(len(at)):
        step = np.zeros(len(at))
        step[place] = 1e-5
        ahead, behind = (
            slopes((at + side * step)[np.newaxis], totals, model)[0][0] for side in (1, -1)
        )
        np.testing.assert_allclose(curve[0, place], (ahead - behind) / 2e-5, atol=1e-6)
    said = _pulls(seen, at).sum(axis=0)
    np.testing.assert_allclose(said, 0.3 * at - slope[0], atol=1e-9)


def test_who_won_everything_has_no_interval_and_the_others_keep_theirs() -> None:
    rows = [(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (2, 1, 1.0), (1, 2, 1.0)] * 8
    shut_out = compared(rows, items=3)
    found = fit_strengths(shut_out)
    for intervals in (
        sandwich_differences(shut_out, found),
        bootstrap_differences(shut_out, found, np.random.default_rng(1), draws=200),
    ):
        assert np.isnan(intervals.low[0]).all()
        assert np.isnan(intervals.high[:, 0]).all()
        assert intervals.low[1, 2] < found.values[1] - found.values[2] < intervals.high[1, 2]


def test_ties_alone_are_no_interval_of_width_zero() -> None:
    tied = compared([(0, 1, 0.5)] * 12, items=2)
    found = fit_strengths(tied)
    assert np.isnan(sandwich_differences(tied, found).low).all()
    drawn = bootstrap_differences(tied, found, np.random.default_rng(1), draws=100)
    assert np.isnan(drawn.low).all()


def test_an_end_among_draws_that_one_wins_whole_is_no_end() -> None:
    """One loss in twelve: every third sample of queries has none, and no bound but the prior's."""
    few = compared([(0, 1, 1.0)] * 11 + [(0, 1, 0.0)], items=2)
    found = fit_strengths(few)
    assert np.isfinite(sandwich_differences(few, found).low[0, 1])
    assert np.isnan(bootstrap_differences(few, found, np.random.default_rng(1)).high[0, 1])
    many = compared([(0, 1, 1.0)] * 60 + [(0, 1, 0.0)] * 20, items=2)
    drawn = bootstrap_differences(many, fit_strengths(many), np.random.default_rng(1))
    assert np.isfinite(drawn.high[0, 1])
