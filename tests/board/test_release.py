"""Released scores are what printf prints, and `clear` publishes what is clearly above."""

import math
import statistics
import subprocess
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import pairwise
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from heldout.board.rules.release import (
    JITTER,
    ReleaseRule,
    draw_jitter,
    is_clear,
    raise_number,
    release_mean,
    release_score,
    score_vector,
)


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


def clear(values: ArrayLike, best: ArrayLike, *, jitter: float = 0.0) -> bool:
    """Whether `clear` publishes it."""
    return is_clear(values, np.asarray(best, np.float64), jitter=jitter)


def reciprocal_ranks(queries: int) -> st.SearchStrategy[list[float]]:
    one = st.sampled_from([0.0, *(1 / rank for rank in range(1, 11))])
    return st.lists(one, min_size=queries, max_size=queries)


@st.composite
def sequences(draw: st.DrawFn) -> list[list[float]]:
    """Several submissions' scores on the same queries."""
    queries = draw(st.integers(1, 12))
    return draw(st.lists(reciprocal_ranks(queries), min_size=1, max_size=8))


@given(sequences(), st.integers(1, 6))
def test_rounded_always_tells(runs: list[list[float]], decimals: int) -> None:
    for values in runs:
        mean = math.fsum(values) / len(values)
        assert release_mean(values, decimals=decimals) == release_score(mean, decimals=decimals)


@given(sequences(), st.floats(0, 0.2))
def test_the_same_run_again_is_never_published(runs: list[list[float]], jitter: float) -> None:
    for values in runs:
        assert not clear(values, values, jitter=jitter)


@given(sequences(), st.integers(1, 6), st.floats(0, 0.2), st.randoms(use_true_random=False))
def test_the_order_of_queries_means_nothing(
    runs: list[list[float]], decimals: int, jitter: float, random: Random
) -> None:
    order = list(range(len(runs[0])))
    random.shuffle(order)
    moved = [[values[place] for place in order] for values in runs]
    for run, other in zip(runs, moved, strict=True):
        assert release_mean(run, decimals=decimals) == release_mean(other, decimals=decimals)
    for (low, high), (one, two) in zip(pairwise(runs), pairwise(moved), strict=True):
        assert clear(high, low, jitter=jitter) == clear(two, one, jitter=jitter)


@given(reciprocal_ranks(30), reciprocal_ranks(30), st.floats(0, 0.2))
def test_the_clear_rule_is_the_paired_test_at_two_standard_errors_and_the_jitter(
    first: list[float], second: list[float], jitter: float
) -> None:
    rise = [b - a for a, b in zip(first, second, strict=True)]
    bar = 2 * statistics.stdev(rise) / math.sqrt(30) + jitter
    if abs(statistics.fmean(rise) - bar) < 1e-9:
        return
    assert clear(second, first, jitter=jitter) == (statistics.fmean(rise) > bar)


@pytest.mark.parametrize(("queries", "published"), [(3, False), (4, True)])
def test_four_queries_have_to_gain_alike(queries: int, *, published: bool) -> None:
    """A gain on k of n queries lies sqrt(k (n - 1) / (n - k)) standard errors away."""
    better = np.zeros(1000)
    better[:queries] = 1.0
    assert clear(better, np.zeros(1000)) == published


def test_one_query_never_shows_a_rise() -> None:
    assert not clear([1.0], [0.0])


def test_a_rise_by_the_same_everywhere_has_no_standard_error_and_is_published() -> None:
    assert clear([0.75, 0.5, 1.0], [0.5, 0.25, 0.75])
    assert not clear([0.75, 0.5, 1.0], [0.5, 0.25, 0.75], jitter=0.25)


@pytest.mark.parametrize("values", [[], [math.nan], [0.5, math.inf], [[0.5], [0.5]], 0.5])
def test_what_is_no_row_of_scores_is_refused(values: ArrayLike) -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        release_mean(values, decimals=3)
    with pytest.raises(ValueError, match="finite numbers"):
        clear(values, [0.5])


def test_scores_on_other_queries_are_not_compared() -> None:
    with pytest.raises(ValueError, match="3 queries now, 2 before"):
        clear([0.5, 0.25, 1.0], [0.5, 0.25])


@pytest.mark.parametrize(
    ("text", "before", "shown"),
    [
        ("0.412", [], "0.412"),
        ("0.412", ["0.411"], "0.412"),
        ("0.412", ["0.300", "0.412"], "0.413"),
        ("-0.020", ["0.999", "0.4"], "1.000"),
    ],
)
def test_a_number_is_raised_by_a_last_digit_above_all_before_it(
    text: str, before: list[str], shown: str
) -> None:
    assert raise_number(text, before, decimals=3) == shown


def test_the_jitter_is_exponential_in_standard_errors_of_the_difference() -> None:
    """As the exponential distribution has it: mean and standard deviation are the same."""
    scores, baseline = [0.1, 0.4, 0.4, 0.9], [0.1, 0.2, 0.3, 0.4]
    scale = JITTER * statistics.stdev([0.0, 0.2, 0.1, 0.5]) / math.sqrt(4)
    keys = [number.to_bytes(32) for number in range(4000)]
    draws = [draw_jitter(key, "eval", scores, baseline) / scale for key in keys]
    assert statistics.fmean(draws) == pytest.approx(1, abs=0.06)
    assert statistics.stdev(draws) == pytest.approx(1, abs=0.1)


def test_undefined_queries_are_left_out_and_those_that_do_not_count_score_zero() -> None:
    scores = {"q2": 1.0, "q10": 0.5, "q1": None}
    assert score_vector(scores, n=2).tolist() == [0.5, 1.0]
    assert score_vector(scores, n=4).tolist() == [0.5, 1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="1"):
        score_vector(scores, n=1)


def test_the_rule_is_read_from_toml_values() -> None:
    table = {"rule": "clear", "submissions": 50}
    assert msgspec.convert(table, ReleaseRule) == ReleaseRule(rule="clear", submissions=50)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"rules": "clear"}, ReleaseRule)
    with pytest.raises(msgspec.ValidationError, match="enum"):
        msgspec.convert({"rule": "thresholdout"}, ReleaseRule)
