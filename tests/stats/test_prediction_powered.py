"""PPI++ against the values of ppi-python 0.2.3, and by simulation."""

from typing import Any

import numpy as np
import pytest

from heldout.errors import InputError
from heldout.stats.student import estimate_mean


def draw(n: int, rest: int, seed: int, right: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels 0, a half or 1, and predictions that are turned round where they are wrong."""
    rng = np.random.Generator(np.random.PCG64(seed))
    y, others = rng.integers(0, 3, n) / 2, rng.integers(0, 3, rest) / 2
    f = np.where(rng.random(n) < right, y, 1 - y)
    return y, f, np.where(rng.random(rest) < right, others, 1 - others)


@pytest.mark.parametrize(
    ("drawn", "value", "low", "high"),
    [
        ((40, 400, 1, 0.8), 0.4806010485292753, 0.3952395202831364, 0.5659625767754143),
        ((100, 150, 2, 0.65), 0.5244770873233291, 0.44823875271236086, 0.6007154219342974),
        ((12, 30, 3, 0.5), 0.3333333333333333, 0.09291759419343265, 0.5737490724732339),
        ((60, 500, 4, 0.2), 0.5833333333333334, 0.48763049240213047, 0.6790361742645362),
    ],
)
def test_the_estimate_is_that_of_ppi_python(
    drawn: tuple[int, int, int, float], value: float, low: float, high: float
) -> None:
    """Its interval has the spread that was seen; ours has four units more, and is wider."""
    found: Any = estimate_mean(*draw(*drawn))
    assert found.value == pytest.approx(value, abs=1e-12)
    assert 1 < (found.high - found.low) / (high - low) < 1.5


def test_intervals_hold_as_often_as_they_say_and_are_shorter_than_from_labels_alone() -> None:
    rng = np.random.Generator(np.random.PCG64(7))
    truth, trials, held, together, alone = 0.6, 600, 0, 0.0, 0.0
    for _ in range(trials):
        y = (rng.random(900) < truth).astype(float)
        f = np.where(rng.random(900) < 0.85, y, 1 - y)
        found = estimate_mean(y[:120], f[:120], f[120:])
        only = estimate_mean(y[:120], f[:120], [])
        assert None not in (found.low, found.high, only.low, only.high)
        held += found.low <= truth <= found.high  # type: ignore[operator]  # none is None
        together += found.high - found.low  # type: ignore[operator]  # none is None
        alone += only.high - only.low  # type: ignore[operator]  # none is None
    assert held / trials == pytest.approx(0.95, abs=0.03)
    assert together < 0.85 * alone


def test_predictions_that_are_noise_do_no_harm() -> None:
    rng = np.random.Generator(np.random.PCG64(8))
    y = rng.random(400)
    found = estimate_mean(y, rng.random(400), rng.random(4000))
    only = estimate_mean(y, y, [])
    assert found.weight < 0.15
    assert found.value == pytest.approx(only.value, abs=0.01)


def test_predictions_that_never_differ_leave_the_labels_alone() -> None:
    y = [0.0, 1.0, 1.0, 0.5]
    found = estimate_mean(y, [0.5] * 4, [0.5] * 90)
    assert found.weight == 0
    assert found.value == pytest.approx(0.625)


def test_without_labels_there_is_no_estimate_and_with_one_no_interval() -> None:
    none = estimate_mean([], [], [0.0, 1.0])
    assert (none.value, none.low, none.high, none.weight) == (None, None, None, 0.0)
    four = estimate_mean([1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0])
    assert (four.low, four.high) == (None, None)
    one = estimate_mean([1.0], [0.0], [0.0, 1.0, 1.0])
    assert (one.value, one.low, one.weight) == (1.0, None, 0.0)


def test_what_is_not_finite_is_an_error() -> None:
    for bad in ((["1", "nan"], [0, 1], [0]), ([0, 1], [0, float("inf")], [0])):
        with pytest.raises(InputError, match="not-finite"):
            estimate_mean(*bad)
    with pytest.raises(ValueError, match="not from 0 to 1"):
        estimate_mean([0, 2], [0, 1], [0])
    with pytest.raises(ValueError, match="2 labels and 1"):
        estimate_mean([0, 1], [0], [0])


@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize(("p", "wrong"), [(0.97, 0.02), (0.97, 0.1), (0.7, 0.1), (0.5, 0.5)])
def test_intervals_of_few_labels_hold_where_predictions_seldom_miss(
    n: int, p: float, wrong: float
) -> None:
    """The spread that was seen gave .05 to .94 here."""
    rng = np.random.Generator(np.random.PCG64([n, int(100 * p)]))
    held, trials = 0, 400
    for _ in range(trials):
        y = (rng.random(n + 300) < p).astype(float)
        f = np.where((rng.random(n + 300) < wrong) & (y == 1), 1 - y, y)
        found: Any = estimate_mean(y[:n], f[:n], f[n:])
        assert 0 <= found.low <= found.high <= 1
        held += found.low <= p <= found.high
    assert held / trials >= 0.92
