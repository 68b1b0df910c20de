"""Released scores are what printf prints."""

import math
import subprocess
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.board.release import release_score


@settings(deadline=None, max_examples=50)
@given(st.floats(0, 1) | st.floats(0, 1000), st.integers(1, 6))
def test_the_exact_binary_value_is_rounded(score: float, decimals: int) -> None:
    step = Decimal(1).scaleb(-decimals)
    expected = Decimal(score).quantize(step, rounding=ROUND_HALF_EVEN)
    assert Decimal(release_score(score, decimals=decimals)) == expected


@pytest.mark.parametrize(
    ("score", "decimals", "text"),
    [
        (0.0625, 3, "0.062"),  # an exact half goes to the even digit
        (0.1875, 3, "0.188"),
        (0.4025, 3, "0.403"),  # the float lies above the half
        (0.4065, 3, "0.406"),  # and here below
        (1.0, 3, "1.000"),
        (0.0, 4, "0.0000"),
        (0.9999, 3, "1.000"),
        (1e-9, 3, "0.000"),
        (0.5, 1, "0.5"),
    ],
)
def test_known_roundings(score: float, decimals: int, text: str) -> None:
    assert release_score(score, decimals=decimals) == text


def test_as_the_program_prints_it(program: Callable[[str], str]) -> None:
    scores = [n / 997 for n in range(997)] + [(2 * n + 1) / 2000 for n in range(1000)]
    # printf reads decimals into a wider float than ours: 17 digits bring the same double, and the
    # exact halves above it are covered by Decimal
    exact = [format(Decimal(score), "f") for score in scores]
    command = [program("printf"), "%.3f\n" * len(exact), *exact]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert printed.split() == [release_score(score, decimals=3) for score in scores]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_what_is_no_score_is_not_released(score: float) -> None:
    with pytest.raises(ValueError, match=r"nan|inf"):
        release_score(score, decimals=3)


def test_numpy_floats_are_floats() -> None:
    assert release_score(np.float64(0.4025), decimals=3) == "0.403"
