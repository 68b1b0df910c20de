"""Ranges of ranks hold for all systems at once, near ties too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from simulated_boards import rng

from heldout.analyses.stability import RankRanges, rank_ranges
from heldout.errors import InputError
from heldout.scoring.table import ScoreTable, table_of
from heldout.stats.resampling import bootstrap_ranks
from trials import choose_trials


def as_table(values: NDArray[np.float64] | list[list[float]]) -> ScoreTable:
    return table_of(
        {
            f"s{row}": {f"q{column:03}": float(cell) for column, cell in enumerate(cells)}
            for row, cells in enumerate(values)
        }
    )


def ranges_of(values: NDArray[np.float64] | list[list[float]]) -> RankRanges:
    return rank_ranges(as_table(values), rng(), flips=499)


score = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0])
rows = st.integers(2, 12).flatmap(
    lambda width: st.lists(st.lists(score, min_size=width, max_size=width), min_size=2, max_size=6)
)


@given(rows)
def test_every_rank_lies_in_its_own_range_and_within_the_table(values: list[list[float]]) -> None:
    found = ranges_of(values)

    places = range(1, len(values) + 1)
    for rank, low, high in zip(places, found.low, found.high, strict=True):
        assert 1 <= low <= rank <= high <= len(values)
    assert found.lead[0] == found.systems[0]


def test_equal_means_of_different_fractions_are_one_number() -> None:
    # Both sum to 25/12; the floats of the second row are summed to another number.
    rows = [[0.0, 0.25, 1 / 3, 0.5, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3, 1 / 3, 0.25, 0.5]]
    for values in (rows, rows[::-1]):
        assert ranges_of(values).means == (25 / 72, 25 / 72)


def test_lower_is_better_turns_the_ranking_and_no_range() -> None:
    values = rng(1).random((5, 40)) + np.arange(5)[:, np.newaxis] * 0.1
    costs = rank_ranges(as_table(1 - values), rng(), better="lower", flips=499)
    scores = rank_ranges(as_table(values), rng(), flips=499)

    assert costs.systems == scores.systems
    assert (costs.low, costs.high) == (scores.low, scores.high)
    assert costs.means[0] == pytest.approx(1 - scores.means[0])


def test_far_better_systems_have_their_rank_alone() -> None:
    noise = rng(2).normal(size=(4, 60)) * 0.01
    found = ranges_of(noise + np.array([[0.1], [0.9], [0.5], [0.5]]))

    assert found.systems[0] == "s1"
    assert (found.low, found.high) == ((1, 2, 2, 4), (1, 3, 3, 4))
    assert found.lead == ("s1",)


def test_identical_systems_are_never_told_apart_and_have_no_p() -> None:
    row = rng(3).random(30).tolist()
    found = ranges_of([row, row, row])

    assert (found.low, found.high) == ((1, 1, 1), (3, 3, 3))
    assert found.pairs == 0
    assert np.isnan(found.p).all()


def coverage(shifts: NDArray[np.float64], queries: int, samples: int) -> tuple[float, float, float]:
    """Shares of samples in which all of our ranges hold, and in which percentile ranges do.

    Returns:
        Ours, all at once; percentiles of bootstrapped ranks, all at once; and for the system
        for which those hold least.
    """
    source = rng(4)
    n = len(shifts)
    ranks = n - np.arange(n)  # shifts rise, so the last is the best
    ours, theirs = 0, np.zeros((samples, n), bool)
    for sample in range(samples):
        values = source.normal(size=queries) + source.normal(size=(n, queries))
        values += shifts[:, np.newaxis]
        found = rank_ranges(as_table(values), source, flips=199)
        true = ranks[[int(name[1:]) for name in found.systems]]
        ours += bool(((true >= found.low) & (true <= found.high)).all())
        shares = np.cumsum(bootstrap_ranks(values, source, trials=300).counts, axis=1) / 300
        low, high = 1 + (shares < 0.025).sum(axis=1), 1 + (shares < 0.975).sum(axis=1)
        theirs[sample] = (ranks >= low) & (ranks <= high)
    return ours / samples, float(theirs.all(axis=1).mean()), float(theirs.mean(axis=0).min())


def test_ranges_hold_where_percentiles_of_bootstrapped_ranks_do_not() -> None:
    # 20 systems 0.05 standard errors of their means apart
    samples = choose_trials(push=100, night=200)
    ours, percentile, worst = coverage(np.arange(20) * 0.05 / 100**0.5, 100, samples)

    assert ours >= 0.95 - 2 * (0.05 * 0.95 / samples) ** 0.5
    assert worst < 0.75
    assert percentile < 0.2


@pytest.mark.night
def test_ranges_hold_where_some_systems_are_far_apart() -> None:
    shifts = np.array([0, 0.005, 0.01, 0.015, 1, 1.005, 2, 2.005])

    assert coverage(shifts, 40, 200)[0] >= 0.95 - 2 * (0.05 * 0.95 / 200) ** 0.5


def test_a_single_system_a_single_query_and_a_missing_score_are_refused() -> None:
    with pytest.raises(InputError, match="too-few-systems"):
        ranges_of([[0.5, 0.25]])
    with pytest.raises(InputError, match="too-few-queries"):
        ranges_of([[0.5], [0.25]])
    with pytest.raises(InputError, match=r'missing-scores.*"b" on "q2"'):
        rank_ranges(table_of({"a": {"q1": 1, "q2": 0}, "b": {"q1": 0, "q2": None}}), rng())


def test_too_few_flips_to_tell_anything_apart_are_refused() -> None:
    with pytest.raises(InputError, match="too-few-flips"):
        rank_ranges(as_table([[0.0, 1.0], [1.0, 1.0]]), rng(), flips=18)
    rank_ranges(as_table([[0.0, 1.0], [1.0, 1.0]]), rng(), flips=19)


def test_pairs_that_unseen_losses_could_undo_are_counted() -> None:
    """Equal systems that fail rarely and badly: 50 queries show few failures, and no test knows."""
    draw = rng(4)
    chances = np.linspace(0, 0.03, 8)[:, np.newaxis]
    missed = warned = 0
    for _ in range(20):
        failed = draw.random((8, 50)) < chances
        noise = 0.005 * draw.standard_normal((8, 50))
        found = ranges_of(0.8 + 0.8 * (chances - failed) + noise)
        wrong = {*found.low} != {1} or {*found.high} != {8}
        missed += wrong
        warned += wrong and found.doubtful > 0
        assert found.doubtful <= found.separated
    assert missed > 10
    assert warned == missed


def test_of_systems_that_differ_on_many_queries_no_pair_is_doubtful() -> None:
    draw = rng(5)
    found = ranges_of(draw.random((6, 200)) + 0.3 * np.arange(6)[:, np.newaxis])
    assert found.separated == 15
    assert found.doubtful == 0
    assert found.largest > 1
