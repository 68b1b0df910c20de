"""The published p-values of TREC-8 ad hoc, runs 125 and 126 (score-matrices/README.md)."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from heldout.scoring.table import parse_scores
from heldout.stats.exact import differences
from heldout.stats.rank_tests import rank_differences
from heldout.stats.results import Alternative, AskedTest
from heldout.stats.sign_flips import flip_test
from heldout.stats.tests import compare_counts, run_test

Scores = NDArray[np.float64]
Pair = tuple[Scores, Scores]
TAILS: tuple[Alternative, ...] = ("greater", "two-sided")
DRAWS = 100_000


@pytest.fixture(scope="module")
def pair(data: Callable[[str], Path]) -> Pair:
    table = parse_scores(data("score-matrices/adhoc8_ap.csv").read_text(), path="adhoc8_ap.csv")
    assert table.values.shape == (129, 50)
    return table.values[124], table.values[125]


@pytest.mark.real
def test_t_and_sign(pair: Pair) -> None:
    moved = np.round(pair[1] - pair[0], 12)  # the published sign test takes 0.01 for a tie
    wins = int(np.sum(moved < -0.01)), int(np.sum(moved > 0.01))
    for alternative, t, sign in zip(
        TAILS, (0.0006596986, 0.0013193972), (0.004779939, 0.009559879), strict=True
    ):
        assert run_test("t", *pair, alternative=alternative).p == pytest.approx(t, rel=1e-6)
        ours = compare_counts(*wins, alternative=alternative).p
        assert ours == pytest.approx(sign, rel=1e-6)


@pytest.mark.real
def test_wilcoxon_as_published_has_a_tie_that_floats_broke(pair: Pair) -> None:
    a, b = pair
    for alternative, published, exact in zip(
        TAILS, (0.001722594, 0.003445188), (0.001695971, 0.003391943), strict=True
    ):
        ask = AskedTest(alternative=alternative, level=0.95)
        of_floats = rank_differences(b - a, ask, exact_at_most=0)
        assert of_floats.p == pytest.approx(published, rel=1e-6)
        ours = rank_differences(differences(a, b), ask, exact_at_most=0).p
        assert ours == pytest.approx(exact, rel=1e-6)


@pytest.mark.real
def test_sign_flips_within_monte_carlo_error(pair: Pair) -> None:
    published = 0.001188
    ours = flip_test(*pair, np.random.default_rng(20), flips=DRAWS)
    assert ours == pytest.approx(published, abs=4 * math.sqrt(published / DRAWS + published / 1e6))
