"""Power of the paired t test: against scipy and simulation, and its inverses."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nct, ttest_1samp
from scipy.stats import t as student

from heldout.stats.power import (
    detectable_difference,
    middle_spread,
    pair_deviations,
    power_of_t,
    queries_needed,
)


@pytest.mark.parametrize("queries", [2, 3, 4, 50, 500])
@pytest.mark.parametrize("centre", [0.5, 2.0, 3.0])
def test_power_is_that_of_the_noncentral_t_in_scipy(queries: int, centre: float) -> None:
    edge = student.ppf(0.975, queries - 1)
    wanted = nct.sf(edge, queries - 1, centre) + nct.cdf(-edge, queries - 1, centre)

    assert power_of_t(queries, centre / math.sqrt(queries)) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("queries", [2, 10, 1000])
def test_without_a_difference_power_is_the_level(queries: int) -> None:
    for alpha in (0.001, 0.05, 0.3):
        assert power_of_t(queries, 0, alpha=alpha) == pytest.approx(alpha, rel=1e-3)


def test_power_is_what_simulation_finds() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.4, 1, (20_000, 40))
    share = (ttest_1samp(drawn, 0, axis=1).pvalue <= 0.05).mean()

    assert power_of_t(40, 0.4) == pytest.approx(share, abs=0.012)  # 4 standard errors


def test_a_textbook_case() -> None:
    """Cohen 1988: a medium shift of 0.5 takes 34 pairs for power .8 at .05."""
    assert queries_needed(0.5, 1.0) == 34


@given(
    st.floats(0.01, 3),
    st.floats(0.01, 10),
    st.sampled_from([0.01, 0.05]),
    st.sampled_from([0.5, 0.8, 0.95]),
)
def test_fewest_queries_are_enough_and_one_less_is_not(
    shift: float, deviation: float, alpha: float, power: float
) -> None:
    needed = queries_needed(shift * deviation, deviation, alpha=alpha, power=power)

    assert power_of_t(needed, shift, alpha=alpha) >= power - 1e-9
    if needed > 2:
        assert power_of_t(needed - 1, shift, alpha=alpha) < power + 1e-9


@given(st.integers(2, 10_000), st.floats(0.001, 10), st.sampled_from([0.5, 0.8, 0.99]))
def test_the_difference_found_has_the_power_asked_for(
    queries: int, deviation: float, power: float
) -> None:
    found = detectable_difference(queries, deviation, power=power)

    assert power_of_t(queries, found / deviation) == pytest.approx(power, abs=1e-6)


def test_very_small_differences_take_very_many_queries_and_no_time() -> None:
    assert queries_needed(1e-6, 0.3) == pytest.approx(0.3**2 * 7.8489e12, rel=1e-3)
    assert queries_needed(0.1, 0.0) == 2
    assert detectable_difference(5, 0.0) == 0


@pytest.mark.parametrize(("alpha", "power"), [(0, 0.8), (0.8, 0.5), (0.05, 1), (0.1, 0.1)])
def test_levels_out_of_range_are_refused(alpha: float, power: float) -> None:
    with pytest.raises(ValueError, match="0"):
        queries_needed(0.1, 1, alpha=alpha, power=power)
    with pytest.raises(ValueError, match="0"):
        detectable_difference(10, 1, alpha=alpha, power=power)


def test_deviations_are_those_of_numpy_and_equal_rows_have_none() -> None:
    values = np.random.default_rng(1).random((4, 30)) + 1e4
    values[3] = values[0]
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]

    found = pair_deviations(values)

    wanted = [np.std(values[a] - values[b], ddof=1) for a, b in pairs]
    assert found == pytest.approx(wanted, abs=1e-7)
    assert found[pairs.index((0, 3))] == 0


@pytest.mark.parametrize(
    ("worlds", "least"), [(60, 0.85), pytest.param(200, 0.88, marks=pytest.mark.night)]
)
def test_the_interval_of_the_deviation_holds_nearly_as_often_as_it_says(
    worlds: int, least: float
) -> None:
    """Differences that are 0 for half of the queries; percentiles under-cover a little."""
    held = 0
    truth: Any = math.sqrt(0.5 * (0.09 + 0.04))
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        own = np.where(rng.random((2, 60)) < 0.5, rng.normal(0.3, 0.2, (2, 60)), 0.0)
        sign = np.where(rng.random(60) < 0.5, 1.0, -1.0)
        values = np.vstack([np.zeros(60), own[0] * sign])
        spread: Any = middle_spread(values, rng, trials=100)
        held += spread.low <= truth <= spread.high
    assert least <= held / worlds <= 0.99


def test_founding_a_board_does_not_wait_for_scipy_s_optimisers() -> None:
    code = "import sys, heldout.cli.board.creating; sys.exit('scipy.optimize' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
