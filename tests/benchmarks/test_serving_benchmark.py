"""The slope of a soak: its interval holds what is true, also where memory wanders."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from serving import slope_of

MEGA, TRUE = 1e6, 5.0


@pytest.mark.parametrize("alike", [0.0, 0.9, 0.97])
def test_the_interval_of_a_soak_holds_the_true_slope(alike: float) -> None:
    """Ninety-five in a hundred times; an interval as for independent blocks does not."""
    draw, at, held, count = np.random.default_rng(7), np.arange(0, 1800, 5.0), 0, 300
    for _ in range(count):
        noise = np.zeros(len(at))
        for i, one in enumerate(draw.normal(0, 0.1, len(at))):
            noise[i] = alike * noise[i - 1] + one if i else one
        memory = 300 + TRUE * at / 3600 + noise
        samples = [(float(t), int(m * MEGA)) for t, m in zip(at, memory, strict=True)]
        _, low, high = slope_of(samples)
        held += low <= TRUE <= high
    assert held / count > 0.9


def test_what_came_in_the_first_half_is_no_growth() -> None:
    samples = [(float(t), int((300 + min(t, 900) / 100) * MEGA)) for t in range(0, 1800, 5)]
    slope, low, high = slope_of(samples)
    assert abs(slope) < 1e-6
    assert high - low < 1e-6
