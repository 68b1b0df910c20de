"""The benchmarks of judging, small: what preferences.md says of intervals and of maintenance."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from heldout.judging.labels.maintenance import LeadRule

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from judging_intervals import WORLDS, cover
from maintenance import play
from tau_coverage import World, coverage
from win_rate_coverage import WORLDS as WIN_WORLDS
from win_rate_coverage import coverage as cover_win_rates

WEAK = {
    "left share, 5 workers with habits of 1 logit",
    "alpha, 10 queries",
    "alpha, 50 queries",
    "kappa of a model, 10 queries, share .8",
}


@pytest.mark.night
@pytest.mark.parametrize("name", [name for name in WORLDS if name not in WEAK])
def test_intervals_hold_in_the_worlds_where_they_are_weakest(name: str) -> None:
    share, intervals = cover(WORLDS[name], trials=60, rng=Generator(PCG64(1)))
    assert intervals >= 30
    assert share >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / intervals)


def test_the_left_share_says_little_of_other_workers() -> None:
    """As the table says: workers with habits of their own."""
    name = "left share, 5 workers with habits of 1 logit"
    share, _ = cover(WORLDS[name], trials=60, rng=Generator(PCG64(2)))
    assert share < 0.75


@pytest.mark.parametrize("queries", [5, 10, 30])
def test_win_rates_hold_in_the_worlds_where_they_are_weakest(queries: int) -> None:
    rng = Generator(PCG64(queries))
    for world in WIN_WORLDS[::9]:
        for held in cover_win_rates(world, queries, 200, trials=60, rng=rng):
            assert held >= 0.85


def test_no_interval_of_tau_holds_everywhere() -> None:
    rng = Generator(PCG64(4))
    found = coverage(World(45, 0.05, rng), 50, trials=15, draws=40, rng=rng)
    assert found["bootstrap"][0] < 0.5


def test_first_labels_survive_equally_good_challengers() -> None:
    rng = Generator(PCG64(5))
    left = [play(LeadRule(cap=21, budget=0.1), 10, 0.5, rng)[-1] == "first" for _ in range(60)]
    assert np.mean(left) >= 0.8
