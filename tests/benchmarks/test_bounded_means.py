"""Betting is right as it is proved to be, and weaker than the p that verdicts take."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from bounded_means import COMPARED, alike_needed, bet_mixed, bet_plug_in, reject
from harm_errors import ALPHA, World

TRIALS = 100


@pytest.mark.parametrize("world", [one for one in COMPARED if one.harm][:8:2], ids=str)
def test_no_way_to_bet_calls_harm_none_too_often(world: World) -> None:
    shares = reject(world, trials=TRIALS)

    most = binom.ppf(0.999, TRIALS, ALPHA)
    assert max(shares.values()) * TRIALS <= most


def test_where_there_is_no_harm_gaffke_says_so_more_often_than_betting() -> None:
    """What decision 0014 rests on."""
    (world,) = (one for one in COMPARED if not one.harm and one.queries == 2000)
    shares = reject(world, trials=TRIALS)

    assert shares["Gaffke"] > 1.5 * max(shares["mixed"], shares["plug-in"])


def test_of_queries_ranked_alike_betting_needs_more() -> None:
    assert alike_needed(bet_plug_in, k=10) > 65
    assert alike_needed(bet_mixed, k=10) > alike_needed(bet_plug_in, k=10)


@pytest.mark.parametrize("bet", [bet_mixed, bet_plug_in])
def test_the_order_of_values_hardly_matters_to_a_p(bet: object) -> None:
    harm = np.random.default_rng(3).integers(-20, 20, (1, 300)).astype(np.float64)
    there, back = (bet(row, 0.5, 99.0)[0] for row in (harm, harm[:, ::-1]))  # type: ignore[operator]

    assert 0 < there <= 1
    assert there == pytest.approx(back, rel=0.2)
