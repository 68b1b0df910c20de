"""Tests of many samples at once say what each test says by itself."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from heldout.stats.batches import mean_above_p, signed_rank_tests, t_tests
from heldout.stats.exact import gather_samples
from heldout.stats.results import Alternative, TestResult
from heldout.stats.tests import run_test

Floats = NDArray[np.float64]

WHOLE = st.integers(-6, 6).map(float)
SPREAD = st.floats(-1, 1, allow_subnormal=False).map(lambda value: round(value, 9))
SAMPLES = st.lists(
    st.one_of(st.lists(WHOLE, max_size=12), st.lists(SPREAD, max_size=12)), min_size=1, max_size=5
)


def same(found: TestResult, expected: TestResult) -> None:
    """Numbers up to rounding, all others exactly."""
    for name, value in asdict(expected).items():
        ours = getattr(found, name)
        if isinstance(value, float):
            assert ours is not None, name
            assert math.isclose(ours, value, rel_tol=1e-9, abs_tol=2e-12), (name, ours, value)
        else:
            assert ours == value, name


def compare(samples: list[list[float]], level: float) -> None:
    width = max(map(len, samples))
    values = np.zeros((len(samples), width))
    present = np.zeros(values.shape, np.bool_)
    for row, sample in enumerate(samples):
        values[row, : len(sample)] = sample
        present[row, : len(sample)] = True
    gathered = gather_samples(values, present)
    found = zip(
        samples,
        t_tests(gathered, level=level),
        signed_rank_tests(gathered, level=level),
        mean_above_p(gathered, null=-0.25),
        mean_above_p(gathered, null=0.25, below=True),
        strict=True,
    )
    for sample, t, signed_rank, above, below in found:
        nothing = np.zeros(len(sample))
        same(t, run_test("t", nothing, sample, level=level))
        same(signed_rank, run_test("signed-rank", nothing, sample, level=level))
        sides: tuple[tuple[float | None, Alternative], ...] = ((above, "greater"), (below, "less"))
        for ours, side in sides:
            null = -0.25 if side == "greater" else 0.25
            if t.p is None:
                assert ours is None
            else:
                theirs = stats.ttest_1samp(sample, null, alternative=side).pvalue
                assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-300)


@given(SAMPLES, st.sampled_from([0.5, 0.95, 0.999]))
@example([[], [0.0], [3.0], [0.0, 0.0], [2.0, 2.0]], 0.95)
@example([[1.0] * 50, [1.0] * 51, [0.5, -0.5] * 25 + [0.0]], 0.95)
def test_small_samples(samples: list[list[float]], level: float) -> None:
    compare(samples, level)


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_large_samples(seed: int) -> None:
    random = np.random.default_rng(seed)
    ranks = random.integers(1, 101, (2, 700)).astype(np.float64)
    compare(
        [
            (1 / ranks[1] - 1 / ranks[0]).round(9).tolist(),
            (ranks[1] - ranks[0]).tolist(),
            random.normal(0.1, 1, 200).round(9).tolist(),
            (random.standard_cauchy(120) * 1000).round(6).tolist(),
            [0.25] * 60,
            random.normal(size=49).round(9).tolist(),
        ],
        0.95,
    )


def test_no_p_is_0() -> None:
    far = np.linspace(1, 1.001, 900)[np.newaxis]
    samples = gather_samples(far, np.ones(far.shape, np.bool_))
    (t,), (signed_rank,) = t_tests(samples, level=0.95), signed_rank_tests(samples, level=0.95)
    assert t.p is not None
    assert signed_rank.p is not None
    assert 0 < t.p < 1e-300
    assert 0 < signed_rank.p < 1e-100


def test_values_that_cancel_out_have_no_direction() -> None:
    thirds = np.array([[1 / 2, -1 / 3, -1 / 6, 1 / 10, -1 / 10]])
    (t,) = t_tests(gather_samples(thirds, np.ones(thirds.shape, np.bool_)), level=0.95)
    assert (t.difference, t.p) == (0.0, 1.0)
