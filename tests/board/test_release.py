"""Released scores are what printf prints, and `clear` publishes what is clearly above."""

import math
import statistics
import subprocess
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from heldout.board.rules.release import (
    JITTER,
    ReleaseRule,
    add_noise,
    draw_jitter,
    draw_noise,
    is_clear,
    raise_number,
    release_mean,
    release_score,
    score_vector,
    split_queries,
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
def test_clear_is_the_paired_test(first: list[float], second: list[float], jitter: float) -> None:
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
def test_a_number_is_raised_by_a_last_digit(text: str, before: list[str], shown: str) -> None:
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


KEYS = st.binary(min_size=32, max_size=32)
IDS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=80, unique=True)
SHARES = st.floats(0, 1, exclude_min=True, exclude_max=True)
KEY = bytes(range(32))


def feedback_queries(key: bytes, ids: Sequence[str], share: float) -> frozenset[str]:
    return split_queries(key, ids, ReleaseRule(feedback=share))["feedback"]


@given(KEYS, IDS, SHARES, st.randoms())
def test_the_parts_have_their_size_whatever_the_order_of_ids(
    key: bytes, ids: Sequence[str], share: float, random: Random
) -> None:
    feedback = feedback_queries(key, ids, share)
    assert len(feedback) == round(share * len(ids))
    assert feedback <= set(ids)
    again = random.sample(ids, len(ids))
    assert feedback_queries(key, [*again, *again], share) == feedback


@given(KEYS, IDS, SHARES, SHARES)
def test_smaller_shares_nested(key: bytes, ids: Sequence[str], one: float, other: float) -> None:
    few, many = (feedback_queries(key, ids, share) for share in sorted((one, other)))
    assert few <= many


@given(KEYS, IDS, st.floats(0, 1, exclude_max=True), st.integers(1, 100), st.randoms())
def test_season_parts_are_equal_pieces_of_the_deciding_part_whatever_the_order_of_ids(
    key: bytes, ids: Sequence[str], share: float, seasons: int, random: Random
) -> None:
    rule = ReleaseRule(feedback=share, seasons=seasons)
    parts = split_queries(key, ids, rule)
    pieces = [parts[number] for number in range(1, seasons + 1)]
    assert sum(map(len, pieces)) == len(parts["deciding"])
    assert frozenset().union(*pieces) == parts["deciding"] == set(ids) - parts["feedback"]
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
    again = random.sample(ids, len(ids))
    assert split_queries(key, [*again, *again], rule) == parts
    assert split_queries(key, ids, ReleaseRule(feedback=share))[1] == parts["deciding"]


def test_another_key_gives_another_split() -> None:
    ids = [f"q{number}" for number in range(1000)]
    splits = [feedback_queries(bytes([number] * 32), ids, 0.25) for number in range(20)]
    shared = [len(one & other) for one in splits for other in splits if one is not other]
    # 250 of 1,000 twice: 62.5 in common, with a standard deviation of 5.9
    assert 55 < statistics.mean(shared) < 70
    assert min(shared) > 30
    assert max(shared) < 95


def openssl_hmac(message: bytes) -> str:
    command = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{KEY.hex()}"]
    answer = subprocess.run(command, input=message, capture_output=True, check=True).stdout
    return answer.decode().split()[-1]


def test_the_split_is_that_of_the_documented_hash() -> None:
    ids = ["1", "2", "q é", "4", "5", "6", "7", "8"]
    by_hash = sorted(ids, key=lambda one: openssl_hmac(b"heldout part\0" + one.encode()))
    parts = split_queries(KEY, ids, ReleaseRule(feedback=0.25, seasons=4))
    cuts = {"feedback": (0, 2), "deciding": (2, 8), 1: (2, 3), 2: (3, 5), 3: (5, 6), 4: (6, 8)}
    assert parts == {part: set(by_hash[low:high]) for part, (low, high) in cuts.items()}


def test_noise_is_standard_normal_over_runs_and_the_same_for_the_same_scores() -> None:
    rows = np.random.default_rng(7).random((4000, 5))
    drawn = [draw_noise(KEY, "eval", row) for row in rows]
    assert drawn == [draw_noise(KEY, "eval", list(row)) for row in rows]
    assert abs(statistics.mean(drawn)) < 4 / math.sqrt(len(drawn))
    assert abs(statistics.stdev(drawn) - 1) < 4 / math.sqrt(2 * len(drawn))
    below = sorted(map(statistics.NormalDist().cdf, drawn))
    distance = max(abs(value - at / len(below)) for at, value in enumerate(below))
    assert distance < 1.95 / math.sqrt(len(below))  # Kolmogorov and Smirnov, 0.1%
    assert abs(float(np.corrcoef(drawn, rows.mean(axis=1))[0, 1])) < 4 / math.sqrt(len(drawn))


def test_noise_depends_on_key_and_view_and_every_score() -> None:
    values = [0.0, 0.5, 1.0]
    drawn = {
        draw_noise(KEY, "eval", values),
        draw_noise(bytes(32), "eval", values),
        draw_noise(KEY, "deep", values),
        draw_noise(KEY, "eval", [0.0, 0.5, math.nextafter(1.0, 0)]),
        draw_noise(KEY, "eval", [0.5, 0.0, 1.0]),
    }
    assert len(drawn) == 5


def spread_of_texts(values: Sequence[float], first: Sequence[float]) -> float:
    """The standard deviation of what is published of a score, over many keys."""
    texts = [
        float(add_noise(values, first, errors=10, drawn=draw_noise(key, "v", values), decimals=6))
        for key in (number.to_bytes(32) for number in range(2000))
    ]
    assert abs(statistics.mean(texts) - statistics.mean(values)) < statistics.stdev(texts) / 10
    return statistics.stdev(texts)


def test_the_noise_is_that_of_the_run_or_of_the_first_baseline_whichever_is_more() -> None:
    random = Random(3)  # noqa: S311 - no secret
    first = [random.choice((0, 0.5, 1)) for _ in range(400)]
    wide = [float(random.random() < 0.5) for _ in range(400)]
    one_query = [1.0] + [0.0] * 399
    own = statistics.stdev(first) / 20
    for values in (first, [0.0] * 400, one_query):  # a copy, nothing, a probe of one query
        assert spread_of_texts(values, first) == pytest.approx(10 * own, rel=0.07)
    other = statistics.stdev(wide) / 20
    assert spread_of_texts(wide, first) == pytest.approx(10 * other, rel=0.07)


def test_a_score_leaves_with_noise_or_not_at_all() -> None:
    for values, first in (
        ([0.5, 0.5], [0.2, 0.2]),
        ([0.5], [0.2]),
        ([0.5, math.nan], [0.2, 0.4]),
        ([0.5, 0.6], [0.2]),
    ):
        with pytest.raises(ValueError, match=r"alike|two queries"):
            add_noise(values, first, errors=10, drawn=1.0, decimals=3)


def test_no_text_is_a_negative_zero() -> None:
    values = [0.0, 0.002]
    text = add_noise(values, values, errors=1, drawn=-1.3, decimals=3)
    assert (text, release_score(-0.0003, decimals=3)) == ("0.000", "-0.000")
