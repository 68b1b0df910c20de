"""Exchangeable systems: the truth is known, and nothing else is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heldout.redteam.exchange import Exchange, coins, exchange, guess, resample

scores = st.integers(2, 30).flatmap(
    lambda n: st.tuples(
        *(arrays(np.float64, n, elements=st.sampled_from([0, 0.125, 0.5, 1])) for _ in "ab")
    )
)
seeds = st.integers(0, 2**32)


def pair_of(rows: tuple[np.ndarray, np.ndarray]) -> Exchange | None:
    return None if (rows[0] == rows[1]).all() else exchange(*rows)


@given(scores, seeds)
def test_a_run_and_its_opposite_score_twice_the_truth(
    rows: tuple[np.ndarray, np.ndarray], seed: int
) -> None:
    pair = pair_of(rows)
    if pair is None:
        return
    rng = np.random.default_rng(seed)
    labels, run = pair.toss(rng), guess(rng, pair.queries)
    assert labels.score(run) + labels.score(-run) == pytest.approx(pair.a + pair.b)
    both = labels.score(run).mean() + labels.score(-run).mean()
    assert both / 2 == pytest.approx(pair.truth)


@given(scores, seeds)
def test_what_is_spoilt_scores_nothing_and_the_rest_as_before(
    rows: tuple[np.ndarray, np.ndarray], seed: int
) -> None:
    pair = pair_of(rows)
    if pair is None:
        return
    rng = np.random.default_rng(seed)
    labels, run, kept = pair.toss(rng), guess(rng, pair.queries), coins(rng, pair.queries)
    found = labels.score(np.where(kept, run, np.int8(0)))
    assert (found[~kept] == 0).all()
    assert (found[kept] == labels.score(run)[kept]).all()


@given(scores, seeds)
def test_every_score_is_one_of_the_two_real_ones(
    rows: tuple[np.ndarray, np.ndarray], seed: int
) -> None:
    pair = pair_of(rows)
    if pair is None:
        return
    labels = pair.toss(np.random.default_rng(seed))
    swapped = labels.first != pair.a
    assert (labels.first[swapped] == pair.b[swapped]).all()
    assert (labels.second[swapped] == pair.a[swapped]).all()


def test_the_unit_is_the_standard_error_of_the_exchanged_difference() -> None:
    rng = np.random.default_rng(0)
    pair = exchange(rng.random(50) + 0.3, rng.random(50))  # A is better; once exchanged, it is not
    means = []
    for _ in range(4000):
        labels = pair.toss(rng)
        means.append((labels.first - labels.second).mean())
    assert np.mean(means) == pytest.approx(0, abs=4 * pair.unit / 4000**0.5)
    assert np.std(means) == pytest.approx(pair.unit, rel=0.05)


def test_the_coins_are_fair_and_one_for_each_query() -> None:
    thrown = np.array([coins(np.random.default_rng(s), 200) for s in range(500)])
    assert abs(thrown.mean(axis=0) - 0.5).max() < 5 * 0.5 / 500**0.5
    assert abs(np.corrcoef(thrown.T) - np.eye(200)).max() < 6 / 500**0.5


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.5, 1.0], [0.5, 1.0]),
        ([], []),
        ([0.5], [0.5, 1.0]),
        ([[0.5]], [[1.0]]),
        ([0.5, np.nan], [0.5, 1.0]),
        ([0.5, np.inf], [0.5, 1.0]),
    ],
    ids=["equal", "empty", "lengths", "shape", "nan", "infinite"],
)
def test_no_game_can_be_played_with(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match=r"differ|finite|same queries"):
        exchange(a, b)


def test_fewer_queries_are_drawn_once_each_and_more_again_and_again() -> None:
    pair = exchange(np.arange(10.0), np.arange(10.0) + 1)
    few = resample(pair, 6, rng=np.random.default_rng(0))
    many = resample(pair, 25, rng=np.random.default_rng(0))
    assert len(set(few.a.tolist())) == 6
    assert many.queries == 25
    assert (few.b - few.a == 1).all()


def test_queries_on_which_the_systems_never_differ_are_refused() -> None:
    pair = exchange([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="never differ"):
        resample(pair, 1, rng=np.random.default_rng(3))
