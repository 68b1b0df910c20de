"""Strengths of runs and passages: what they say, what they do not, and real judgments."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from heldout.judging.campaign.judgments import Judgment, PairVotes, count_votes, parse_judgments
from heldout.judging.labels.contests import compare_runs, hold_contests, rank_passages
from heldout.judging.labels.labels import find_strongest

_PASSAGES = ["a", "b", "c", "d", "e"]
_VOTES = st.dictionaries(
    st.sampled_from(list(combinations(_PASSAGES, 2))),
    st.tuples(st.integers(0, 4), st.integers(0, 4))
    .filter(any)
    .map(lambda two: PairVotes(first=two[0], second=two[1])),
)


def votes_of(first: int, second: int) -> PairVotes:
    return PairVotes(first=first, second=second)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_two_runs_differ_by_the_logit_of_the_queries_won_and_not_of_votes() -> None:
    votes = {f"q{n}": {("x", "y"): votes_of(1, 0)} for n in range(30)}
    votes |= {f"r{n}": {("x", "y"): votes_of(0, 9)} for n in range(10)}
    first = {"A": dict.fromkeys(votes, "x"), "B": dict.fromkeys(votes, "y")}
    found = compare_runs(first, votes, rng=rng(), prior=1e-9)
    (one,) = found.differences
    assert (one.a, one.b) == ("A", "B")
    assert one.share == pytest.approx(0.75, abs=1e-6)
    assert one.difference == pytest.approx(np.log(3), abs=1e-5)
    assert (found.queries, found.comparisons, found.tied) == (40, 40, 0)
    for ends in (one.sandwich, one.bootstrap):
        assert ends is not None
        assert 0 < ends[0] < one.difference < ends[1]


def test_many_runs_with_one_passage_are_one_observation() -> None:
    """Copies of a run say nothing new: intervals stay as wide as they were."""
    random = np.random.default_rng(5)
    votes = {
        f"q{n}": {("x", "y"): votes_of(1, 0) if random.random() < 0.6 else votes_of(0, 1)}
        for n in range(80)
    }
    two = {"A": dict.fromkeys(votes, "x"), "B": dict.fromkeys(votes, "y")}
    many = two | {f"B{n}": dict.fromkeys(votes, "y") for n in range(9)}
    widths = []
    for first in (two, many):
        found = compare_runs(first, votes, rng=rng(), draws=200)
        one = next(d for d in found.differences if {d.a, d.b} == {"A", "B"})
        assert one.sandwich is not None
        widths.append(one.sandwich[1] - one.sandwich[0])
    assert widths[1] == pytest.approx(widths[0], rel=0.02)


def test_what_cannot_be_told_is_none() -> None:
    first = {"A": {"q": "x"}, "B": {"q": "x"}, "C": {"q": "z"}}
    found = compare_runs(first, {"q": {("x", "y"): votes_of(1, 0)}}, rng=rng(), draws=10)
    assert found.comparisons == 0
    assert found.groups == (("A",), ("B",), ("C",))
    assert all(one.sandwich is None and one.bootstrap is None for one in found.differences)
    assert set(found.strengths.values()) == {0.0}


def test_a_run_that_won_everything_is_said_to_be_so() -> None:
    votes = {f"q{n}": {("x", "y"): votes_of(1, 0)} for n in range(5)}
    first = {"A": dict.fromkeys(votes, "x"), "B": dict.fromkeys(votes, "y")}
    found = compare_runs(first, votes, rng=rng(), draws=10)
    assert found.separated
    assert found.differences[0].a == "A"


def test_queries_drawn_even_are_half_a_win() -> None:
    votes = {f"q{n}": {("x", "y"): votes_of(2, 1)} for n in range(6)}
    votes |= {f"r{n}": {("x", "y"): votes_of(1, 1)} for n in range(4)}
    votes["s"] = {("x", "y"): votes_of(0, 3)}
    first = {"A": dict.fromkeys(votes, "x"), "B": dict.fromkeys(votes, "y")}
    half = compare_runs(first, votes, rng=rng(), prior=1e-9, draws=10)
    assert half.differences[0].share == pytest.approx(8 / 11, abs=1e-4)
    assert half.tied == 4


@given(_VOTES)
def test_in_a_whole_pool_the_strongest_has_won_the_most_votes(
    votes: dict[tuple[str, str], PairVotes],
) -> None:
    whole = {
        pair: votes.get(pair, votes_of(1, 2)) if votes.get(pair) else votes_of(1, 2)
        for pair in combinations(_PASSAGES, 2)
    }
    same = {
        pair: votes_of(found.first * 12 // found.total, 12 - found.first * 12 // found.total)
        for pair, found in whole.items()
    }
    won = dict.fromkeys(_PASSAGES, 0)
    for (a, b), found in same.items():
        won[a] += found.first
        won[b] += found.second
    most = max(won.values())
    assert find_strongest(_PASSAGES, same).best == tuple(p for p in _PASSAGES if won[p] == most)


@given(_VOTES)
def test_names_decide_nothing(votes: dict[tuple[str, str], PairVotes]) -> None:
    turned = {
        (chr(201 - ord(b)), chr(201 - ord(a))): votes_of(found.second, found.first)
        for (a, b), found in votes.items()
    }
    found = rank_passages(votes)
    other = rank_passages(turned)
    assert {chr(201 - ord(name)) for name in found} == set(other)
    for name, strength in found.items():
        assert other[chr(201 - ord(name))] == pytest.approx(strength, abs=1e-7)


def test_a_circle_ties_and_so_do_passages_without_votes() -> None:
    circle = {("a", "b"): votes_of(1, 0), ("b", "c"): votes_of(1, 0), ("a", "c"): votes_of(0, 1)}
    assert find_strongest(["a", "b", "c"], circle).best == ("a", "b", "c")
    assert find_strongest(["x", "y"], {}).best == ("x", "y")
    assert rank_passages({}) == {}


@pytest.mark.real
def test_strengths_of_runs_agree_with_their_contests_on_real_judgments(
    data: Callable[[str], Path],
) -> None:
    path = data("preferences/dl21-dueling-bandits/judgments.txt.gz")
    judgments = parse_judgments(path.read_bytes(), path=str(path))
    votes = count_votes(judgments)
    first = _made_up_runs(judgments)
    found = compare_runs(first, votes, rng=rng(), draws=100)
    contests = hold_contests(first, votes)
    for one in contests.contests:
        if one.p is not None and one.p < 0.001:
            better, worse = (one.a, one.b) if one.a_preferred > one.b_preferred else (one.b, one.a)
            assert found.strengths[better] > found.strengths[worse]
    assert all(
        expit(one.difference) == pytest.approx(one.share, abs=1e-12) for one in found.differences
    )


def _made_up_runs(judgments: tuple[Judgment, ...]) -> dict[str, dict[str, str]]:
    """Runs that show the passage with the most, the second most, ... wins of each query."""
    won: dict[str, dict[str, int]] = {}
    for one in judgments:
        assert one.preferred is not None
        query = won.setdefault(one.query, {})
        query[one.preferred] = query.get(one.preferred, 0) + 1
    return {
        f"place {place}": {
            query: sorted(counts, key=lambda doc: (-counts[doc], doc))[place]
            for query, counts in won.items()
            if len(counts) > place
        }
        for place in range(6)
    }
