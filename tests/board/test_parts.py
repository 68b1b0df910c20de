"""The split of a set and the noise of a score: secret by a key, and the same each time."""

import math
import statistics
import subprocess
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.release import (
    ReleaseRule,
    add_noise,
    draw_noise,
    release_score,
    split_queries,
)

KEYS = st.binary(min_size=32, max_size=32)
IDS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=200, unique=True)
SHARES = st.floats(0, 1, exclude_min=True, exclude_max=True)
SEASONS = st.integers(1, 100)
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
def test_a_smaller_share_takes_some_of_the_same_queries(
    key: bytes, ids: Sequence[str], one: float, other: float
) -> None:
    few, many = (feedback_queries(key, ids, share) for share in sorted((one, other)))
    assert few <= many


@given(KEYS, IDS, st.floats(0, 1, exclude_max=True), SEASONS, st.randoms())
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
    random = np.random.default_rng(7)
    rows = random.random((4000, 5))
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
