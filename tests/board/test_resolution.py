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
    found = resolve(1050, ASSUMED)
    assert found.difference == pytest.approx(0.0281, abs=5e-5)
    assert (found.alpha, found.power, found.spread.source) == (0.05, 0.8, "assumed")
    assert "0.40" in found.spread.why
    assert "0.67" in found.spread.why


@pytest.mark.parametrize("queries", [50, 1050, 6980])
def test_the_power_is_the_one_asked_for(queries: int) -> None:
    found = resolve(queries, ASSUMED)
    assert found.difference is not None
    assert find_power(queries, found.difference, ASSUMED.deviation) == pytest.approx(0.8, abs=1e-6)


def test_other_levels() -> None:
    found = resolve(200, ASSUMED, alpha=0.01, power=0.95)
    normal = stats.norm.ppf(0.995) + stats.norm.ppf(0.95)
    assert found.difference == pytest.approx(normal * ASSUMED.deviation / math.sqrt(200), rel=0.015)


@pytest.mark.parametrize("queries", [0, 1])
def test_too_few_queries_have_no_number(queries: int) -> None:
    found = resolve(queries, ASSUMED)
    assert found.difference is None
    assert found.why == f"{queries} judged queries; a paired test needs two"


@pytest.mark.parametrize(("alpha", "power"), [(0, 0.8), (1, 0.8), (0.05, 0), (0.05, 1)])
def test_levels_out_of_range(alpha: float, power: float) -> None:
    with pytest.raises(ValueError, match=r"0|1"):
        resolve(100, ASSUMED, alpha=alpha, power=power)
