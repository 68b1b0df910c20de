"""The benchmark of a final measures what it says, on two systems that are made up."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from heldout.board.rules.release import LEADS, expected_maximum, share_of_wins
from heldout.redteam.boards import Exchange, exchange

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from final_view import carry_vote, find_luck, plant

GAMES = 150


@pytest.fixture(scope="module")
def pair() -> Exchange:
    rng = np.random.default_rng(1)
    a = rng.choice([0, 0.1, 0.2, 1 / 3, 0.5, 1], 600)
    return exchange(a, np.where(rng.random(600) < 0.3, rng.permutation(a), a))


@pytest.mark.parametrize("count", [2, 10])
def test_the_printed_luck_is_the_excess(pair: Exchange, count: int) -> None:
    cell = find_luck(pair, count, games=GAMES, rng=np.random.default_rng(count))
    assert cell.printed.mean == pytest.approx(cell.excess.mean, abs=2 * cell.excess.half)
    assert cell.printed.mean == pytest.approx(expected_maximum(count) / math.sqrt(2), rel=0.05)
    assert cell.winners.mean < cell.excess.mean
    assert cell.excess.half > 0


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.night)])
def test_a_finalist_wins_as_often_as_the_formula_says(pair: Exchange, count: int) -> None:
    leads = (0.0, *LEADS)
    shares = plant(pair, count, leads=leads, games=GAMES, rng=np.random.default_rng(count))
    for lead, share in zip(leads, shares, strict=True):
        expected = share_of_wins(count, lead)
        error = math.sqrt(expected * (1 - expected) / GAMES)
        assert share == pytest.approx(expected, abs=3 * error + 0.01)


@pytest.mark.night
def test_a_vote_gains_on_the_queries_it_was_told_about_alone(pair: Exchange) -> None:
    season, final = carry_vote(pair, games=GAMES, rng=np.random.default_rng(3))
    assert season.mean - season.half > 2
    assert abs(final.mean) < 2 * final.half
