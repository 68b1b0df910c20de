"""Harm of the margin is missed as seldom as promised in every world of the page, by t it is not."""

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from harm_errors import ALPHA, WORLDS, World, miss_harm

TRIALS = 200


@pytest.mark.night
@pytest.mark.parametrize("world", [world for world in WORLDS if world.harm], ids=str)
def test_harm_of_the_margin_is_missed_as_seldom_as_promised(world: World) -> None:
    found = miss_harm(world, trials=TRIALS)

    assert found.by_rule * TRIALS <= binom.ppf(0.999, TRIALS, ALPHA)
    assert found.strict * TRIALS <= binom.ppf(0.999, TRIALS, 2 * ALPHA)


def test_strict_by_its_tests_alone_misses_rare_harm_in_most_samples() -> None:
    """Signed ranks say what holds of most queries, and nothing of the mean."""
    (few, *_) = (world for world in WORLDS if world.earlier)
    found = miss_harm(few, trials=TRIALS)

    assert found.strict_by_tests > 0.1
    assert found.strict <= 2 * ALPHA


def test_by_t_alone_skewed_harm_is_missed_more_often() -> None:
    skewed = World(k=100, queries=700, later=50)

    assert miss_harm(WORLDS[WORLDS.index(skewed)], trials=600).by_t > 2 * ALPHA


def test_with_many_queries_no_harm_is_called_none() -> None:
    few, _, many = (miss_harm(world, trials=50).by_rule for world in WORLDS if not world.harm)

    assert few < 0.3
    assert many > 0.9
