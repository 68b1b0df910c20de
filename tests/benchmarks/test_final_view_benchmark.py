"""The benchmark of a final measures what it says, on two systems that are made up."""

import sys
from pathlib import Path

import numpy as np
import pytest

from heldout.board.rules.final_view import expected_maximum
from heldout.redteam.releases import Exchange, exchange

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from final_view import carry_vote, find_luck, plant  # noqa: E402 - a folder, no package

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
    assert cell.printed.mean == pytest.approx(0.5 * expected_maximum(count), rel=0.05)
    assert cell.winners.mean < cell.excess.mean
    assert cell.excess.half > 0


def test_a_clearly_better_finalist_mostly_wins_and_an_equal_one_does_not(
    pair: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plant(pair, 5, games=GAMES, rng=np.random.default_rng(2)) > 0.9
    monkeypatch.setattr("final_view._PLANTED", 0.0)
    assert plant(pair, 5, games=GAMES, rng=np.random.default_rng(2)) < 0.4


def test_a_vote_gains_on_the_queries_it_was_told_about_alone(pair: Exchange) -> None:
    season, final = carry_vote(pair, games=GAMES, rng=np.random.default_rng(3))
    assert season.mean - season.half > 2
    assert abs(final.mean) < 2 * final.half
