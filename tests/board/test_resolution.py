"""The smallest difference that a number of queries tells apart."""

import math

import numpy as np
import pytest
from scipy import stats

from heldout.board.scores.describe import ASSUMED, measure_spread, resolve
from heldout.scoring.table import table_of


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


def test_a_pilot_gives_the_median_over_pairs() -> None:
    rows = {"a": [0, 0, 0, 0], "b": [1, 0, 0, 0], "c": [1, 1, 0, 0]}
    pilot = table_of({name: dict(enumerate_queries(row)) for name, row in rows.items()})
    deviations = [np.std(d, ddof=1) for d in ([1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0])]
    found = measure_spread(pilot)
    assert found.deviation == pytest.approx(np.median(deviations))
    assert found.source == "pilot"
    assert found.why == "measured: median of 3 pairs of 3 systems on 4 queries"


def enumerate_queries(row: list[int]) -> list[tuple[str, float]]:
    return [(str(number), float(value)) for number, value in enumerate(row)]


def test_a_pilot_with_gaps_compares_what_both_have() -> None:
    pilot = table_of({"a": {"1": 1.0, "2": 0.0, "3": 0.5}, "b": {"1": 0.0, "2": 0.0, "3": None}})
    assert measure_spread(pilot).deviation == pytest.approx(np.std([1, 0], ddof=1))


@pytest.mark.parametrize(
    "scores",
    [
        {"a": {"1": 1.0, "2": 0.0}},
        {"a": {"1": 1.0}, "b": {"1": 0.0}},
        {"a": {"1": 1.0, "2": 0.5}, "b": {"1": 1.0, "2": 0.5}},
    ],
)
def test_a_pilot_that_says_nothing_is_refused(scores: dict[str, dict[str, float | None]]) -> None:
    with pytest.raises(ValueError, match="a pilot needs two systems"):
        measure_spread(table_of(scores))
