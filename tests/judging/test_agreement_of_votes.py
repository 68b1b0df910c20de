"""Agreement of judges on pairs, against a peer and against judges of known accuracy."""

from random import Random
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.judging.campaign.judgments import Judgment
from heldout.judging.studies.judges import STUDY_ACCURACY, expected_alpha, judge_agreement


def vote(pair: int, worker: int, *, first: bool) -> Judgment:
    preferred = "a" if first else "b"
    sides = ("a", "b") if worker % 2 else ("b", "a")
    return Judgment(
        query=f"q{pair}", left=sides[0], right=sides[1], preferred=preferred, worker=f"w{worker}"
    )


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(6))


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=5), min_size=1, max_size=20))
def test_alpha_is_that_of_the_package_krippendorff(pairs: list[list[bool]]) -> None:
    votes = [
        vote(pair, worker, first=first)
        for pair, of_pair in enumerate(pairs)
        for worker, first in enumerate(of_pair)
    ]
    found = judge_agreement(votes, rng(), trials=20)
    table = np.full((5, 2 * len(pairs)), np.nan)
    for column, of_pair in enumerate(pairs):
        table[: len(of_pair), column] = of_pair
        table[: len(of_pair), column + len(pairs)] = ~np.array(of_pair)
    expected = krippendorff.alpha(table, level_of_measurement="nominal")
    assert found.alpha == pytest.approx(expected, abs=1e-12)
    assert found.pairs == len(pairs)


@given(
    st.lists(st.lists(st.booleans(), min_size=2, max_size=5), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_what_passages_are_called_makes_no_difference(
    pairs: list[list[bool]], chance: Random
) -> None:
    turned = [chance.random() < 0.5 for _ in pairs]
    found = [
        judge_agreement(
            [
                vote(pair, worker, first=first != turn)
                for pair, (of_pair, turn) in enumerate(zip(pairs, turns, strict=True))
                for worker, first in enumerate(of_pair)
            ],
            rng(),
            trials=20,
        )
        for turns in (turned, [False] * len(pairs))
    ]
    assert found[0] == found[1]


def test_judges_who_always_agree_have_an_alpha_of_one() -> None:
    votes = [vote(pair, worker, first=True) for pair in range(5) for worker in range(3)]
    found = judge_agreement(votes, rng())
    assert (found.alpha, found.alike, found.interval) == (1, 1, None)


@pytest.mark.parametrize("accuracy", [STUDY_ACCURACY, 0.8, 0.95])
def test_alpha_of_judges_of_known_accuracy_is_what_is_expected(accuracy: float) -> None:
    draws = rng()
    better = draws.random(4_000) < 0.5
    right = draws.random((4_000, 2)) < accuracy
    votes = [
        vote(pair, worker, first=bool(better[pair] == right[pair, worker]))
        for pair in range(4_000)
        for worker in range(2)
    ]
    found: Any = judge_agreement(votes, draws, trials=50)
    assert found.alpha == pytest.approx(expected_alpha(accuracy), abs=0.05)
    assert found.alike == pytest.approx(accuracy**2 + (1 - accuracy) ** 2, abs=0.03)
    assert found.interval[0] < found.alpha < found.interval[1]
    assert (found.pairs, found.votes) == (4_000, 8_000)


def test_the_study_expects_about_a_tenth() -> None:
    assert expected_alpha(STUDY_ACCURACY) == pytest.approx(0.10, abs=0.005)


def test_votes_on_pairs_judged_once_say_nothing_about_agreement() -> None:
    found = judge_agreement([vote(n, 0, first=True) for n in range(9)], rng())
    assert (found.alpha, found.interval, found.pairs, found.alike) == (None, None, 0, None)
    assert found.why == "no unit has two ratings"
