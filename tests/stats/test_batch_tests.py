"""Tests of many samples at once say what each test says by itself."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from heldout.stats import batches
from heldout.stats.batches import mean_above_p, sign_p, signed_rank_tests, t_p, t_tests
from heldout.stats.exact import gather_samples
from heldout.stats.results import Alternative, TestResult
from heldout.stats.tests import run_test

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
        sides: tuple[tuple[float, Alternative], ...] = ((above, "greater"), (below, "less"))
        for ours, side in sides:
            null = -0.25 if side == "greater" else 0.25
            if t.p is None:
                assert math.isnan(ours)
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


@given(st.lists(st.integers(0, 40), min_size=2, max_size=30), st.data())
def test_the_sign_test_of_counts_is_that_of_each_by_itself(
    wins: list[int], data: st.DataObject
) -> None:
    losses = data.draw(st.lists(st.integers(0, 40), min_size=len(wins), max_size=len(wins)))
    together = sign_p(np.array(wins), np.array(losses))
    for won, lost, p in zip(wins, losses, together.tolist(), strict=True):
        alone = stats.binomtest(won, won + lost).pvalue if won + lost else math.nan
        assert p == pytest.approx(alone, rel=1e-12, nan_ok=True)


def test_many_different_counts_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    wins, losses = np.random.default_rng(0).integers(0, 60, (2, 5, 40))
    with_table = sign_p(wins, losses)
    monkeypatch.setattr(batches, "_COUNTS", 0)
    np.testing.assert_array_equal(sign_p(wins, losses), with_table)


@pytest.mark.parametrize("level", [1e-12, 0.001, 0.05, 0.3, 1.0])
def test_where_p_is_only_compared_with_a_level_it_stands_on_the_same_side(level: float) -> None:
    sizes = np.array([[4], [500]])
    t = np.linspace(0, 40, 4001) * np.ones((2, 1))
    if level < 1:  # near the level too, on both sides
        at = -stats.t.ppf(level / 2, sizes - 1)
        t = np.concatenate((t, at * (1 + np.array([[-1e-10, -1e-14, 0, 1e-14, 1e-10]]))), axis=1)
    squares = np.where(np.arange(t.shape[1]) % 50, 1.0, 0.0) * np.ones(t.shape)
    mean = t * np.sqrt(1 / (sizes - 1) / sizes)
    exact = t_p(mean, squares, size=sizes)
    found = t_p(mean, squares, size=sizes, near=level)
    np.testing.assert_array_equal(np.round(found, 12) <= level, np.round(exact, 12) <= level)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
