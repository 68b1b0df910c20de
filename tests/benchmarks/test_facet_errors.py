"""Where facets mean nothing, an interaction is found as rarely as its level says."""

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from facet_errors import ALPHA, WORLDS, FacetWorld, count_errors

TABLES = 60


@pytest.mark.night
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_chance_is_rarely_called_an_interaction(world: FacetWorld) -> None:
    assert count_errors(world, tables=TABLES) <= binom.ppf(0.999, TABLES, ALPHA)
