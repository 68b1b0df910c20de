"""Ranks under the bootstrap: in order, the same for shuffled input, and as real tables say."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_boards import rng

from heldout.analyses.stability import bootstrap_stability, rank_ranges
from heldout.errors import InputError
from heldout.scoring.table import parse_scores, table_of

score = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]) | st.floats(0, 1, allow_subnormal=False)
tables = st.integers(2, 8).flatmap(
    lambda width: st.lists(st.lists(score, min_size=width, max_size=width), min_size=2, max_size=5)
)


def named(values: list[list[float]]) -> dict[str, dict[str, float]]:
    return {
        f"s{row}": {f"q{column}": cell for column, cell in enumerate(cells)}
        for row, cells in enumerate(values)
    }


@given(tables)
def test_rows_are_the_best_first_and_sum_to_one(values: list[list[float]]) -> None:
    found = bootstrap_stability(table_of(named(values)), rng(), trials=60)

    assert all(a >= b - 1e-12 for a, b in zip(found.means, found.means[1:], strict=False))
    np.testing.assert_allclose(found.rank_probability.sum(axis=1), 1)
    assert found.expected_rank.sum() == pytest.approx(sum(range(1, len(values) + 1)))


def test_of_equal_systems_the_earlier_in_the_table_is_first_in_every_trial() -> None:
    row = {"q1": 0.5, "q2": 0.25, "q3": 0.0}
    found = bootstrap_stability(table_of({"late": row, "early": row}), rng(), trials=100)

    assert found.systems == ("late", "early")
    assert found.rank_counts.tolist() == [[100, 0], [0, 100]]
    assert found.tied_trials == 100


def test_of_equal_means_in_a_trial_the_earlier_in_the_table_is_first() -> None:
    # the later one is better by mean, but one query alone leaves them equal half of the time
    scores = {"early": {"q1": 0.5, "q2": 0.0}, "later": {"q1": 0.5, "q2": 0.25}}
    found = bootstrap_stability(table_of(scores), rng(), trials=1000, size=1)

    assert found.systems == ("later", "early")
    assert found.rank_probability[0, 0] == pytest.approx(0.5, abs=0.05)
    assert found.tied_trials == found.rank_counts[1, 0]


def test_missing_scores_are_named_and_not_taken_for_zero() -> None:
    with pytest.raises(InputError, match=r'no score of "b" on "q2"'):
        bootstrap_stability(table_of({"a": {"q1": 1, "q2": 1}, "b": {"q1": 1, "q2": None}}), rng())


@pytest.mark.real
def test_ad_hoc_8_systems_keep_near_their_ranks(data: Callable[[str], Path]) -> None:
    text = data("score-matrices/adhoc8_ap.csv").read_text()
    table = parse_scores(text, path="adhoc8_ap.csv")
    found = bootstrap_stability(table, rng())

    # the same order of means as a plain reading of the file
    rows = list(csv.DictReader(text.splitlines()))
    means = {name: np.mean([float(row[name]) for row in rows]) for name in rows[0]}
    assert list(found.means) == pytest.approx(sorted(means.values(), reverse=True))
    # an expected rank is not far from the rank itself, and an index loop agrees on it
    own = np.arange(1, len(found.systems) + 1)
    assert np.abs(found.expected_rank - own).mean() < 5
    drawn = rng(1).integers(0, 50, (1000, 50))
    ranks = np.array([(-table.values[:, q].mean(axis=1)).argsort().argsort() + 1 for q in drawn])
    loop = dict(zip(table.systems, ranks.mean(axis=0), strict=True))
    assert found.expected_rank == pytest.approx(
        [loop[name] for name in found.systems], abs=4 * ranks.std(axis=0).max() / 1000**0.5 * 2**0.5
    )


def test_means_that_differ_by_rounding_keep_the_order_of_the_table() -> None:
    noise = np.random.default_rng(0).random(50) * 1e-13
    rows = {"a": np.full(50, 0.5), "b": 0.5 + noise, "c": 0.5 - noise}
    table = table_of({name: {f"q{n}": s for n, s in enumerate(row)} for name, row in rows.items()})
    found = bootstrap_stability(table, np.random.default_rng(0), trials=20)
    ranges = rank_ranges(table, np.random.default_rng(0), flips=99)

    assert found.systems == ranges.systems == ("a", "b", "c")
    assert found.expected_rank.tolist() == [1, 2, 3]
    assert (ranges.low, ranges.high, ranges.pairs) == ((1, 1, 1), (3, 3, 3), 0)
