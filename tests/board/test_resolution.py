"""The smallest difference that a number of queries tells apart."""

import math

import pytest
from scipy import stats

from heldout.board.scores.describe import ASSUMED, resolve


def find_power(queries: int, difference: float, deviation: float) -> float:
    """Power of the two-sided paired t test at .05, by the noncentral t distribution."""
    freedom = queries - 1
    edge = stats.t.ppf(0.975, freedom)
    shift = difference / deviation * math.sqrt(queries)
    return float(stats.nct.sf(edge, freedom, shift) + stats.nct.cdf(-edge, freedom, shift))


def test_a_thousand_queries_tell_three_hundredths_apart() -> None:
    found = resolve(1050)
    assert found.difference == pytest.approx(0.0281, abs=5e-5)
    assert (found.alpha, found.power, found.deviation) == (0.05, 0.8, ASSUMED)
    assert "0.40" in found.assumed
    assert "0.67" in found.assumed


@pytest.mark.parametrize("queries", [50, 1050, 6980])
def test_the_power_is_the_one_asked_for(queries: int) -> None:
    found = resolve(queries)
    assert found.difference is not None
    assert find_power(queries, found.difference, ASSUMED) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("queries", [0, 1])
def test_too_few_queries_have_no_number(queries: int) -> None:
    found = resolve(queries)
    assert found.difference is None
    assert found.why == f"{queries} judged queries; a paired test needs two"
