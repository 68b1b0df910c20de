"""Walsh averages, found without laying them out, are those laid out."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.stats.exact import gather_samples
from heldout.stats.rank_tests import WalshAverages, estimate_pseudomedians

values = st.one_of(st.floats(-3, 3, allow_subnormal=False), st.integers(-4, 4).map(float))


def lay_out(of: list[float]) -> list[float]:
    return sorted((of[i] + of[j]) / 2 for i in range(len(of)) for j in range(i + 1))


@given(st.lists(values, min_size=1, max_size=15), st.data())
def test_each_is_found_at_its_place(of: list[float], data: st.DataObject) -> None:
    averages, expected = WalshAverages(np.array(of)), lay_out(of)
    assert averages.count == len(expected)
    place = data.draw(st.integers(1, len(expected)))
    assert averages.find(place) == pytest.approx(expected[place - 1], abs=2e-12)


@given(st.lists(values, min_size=1, max_size=15))
def test_the_pseudomedian_is_their_median(of: list[float]) -> None:
    found = WalshAverages(np.array(of)).median()
    assert found == pytest.approx(float(np.median(lay_out(of))), abs=2e-12)


def test_no_zero_has_a_sign() -> None:
    assert str(WalshAverages(np.array([-0.0, 0.0])).median()) == "0.0"


def test_six_thousand_values_are_no_eighteen_million_averages() -> None:
    averages = WalshAverages(np.random.default_rng(0).random(6000))
    started = time.process_time()
    assert averages.median() == pytest.approx(0.5, abs=0.02)
    assert time.process_time() - started < 1


@given(st.integers(0, 1000), st.sampled_from(["even", "tied", "far apart", "reciprocal"]))
def test_each_of_many_is_found_at_its_place(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    ranks = random.integers(1, 101, (2, 150))
    of = {
        "even": random.normal(size=150),
        "tied": random.integers(-40, 40, 150) / 8,
        "far apart": random.standard_cauchy(150) ** 3,
        "reciprocal": 1 / ranks[0] - 1 / ranks[1],
    }[kind]
    averages, expected = WalshAverages(of), lay_out(of.tolist())
    for place in random.integers(1, averages.count + 1, 4).tolist():
        assert averages.find(place) == pytest.approx(expected[place - 1], rel=1e-12, abs=2e-12)


@pytest.mark.parametrize("kind", ["whole", "shares", "any", "few"])
def test_numba_and_numpy_estimate_the_same_bytes(kind: str) -> None:
    pytest.importorskip("numba")
    random = np.random.default_rng(2)
    ranks = random.integers(1, 21, (2, 40, 120)).astype(np.float64)
    drawn = {
        "whole": ranks[0] - ranks[1],
        "shares": (ranks[0] - ranks[1]) / (ranks[0] * ranks[1]),
        "any": random.standard_cauchy((40, 120)),
        "few": random.integers(0, 2, (40, 120)) / 3,
    }[kind]
    samples = gather_samples(drawn, random.random((40, 120)) < np.linspace(0, 1, 40)[:, None])
    plain = estimate_pseudomedians(samples, level=0.95)
    fast = estimate_pseudomedians(samples, level=0.95, compiled=True)
    assert np.array(fast).tobytes() == np.array(plain).tobytes()
