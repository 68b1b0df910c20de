"""A model against people: on real judgments of DL 2021, and on pairs whose truth is known."""

import gzip
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_rows import pool_of, row_of_pair

from heldout.judging.campaign.drawing import Pair
from heldout.judging.campaign.judgments import (
    PairVotes,
    Votes,
    count_votes,
    counted,
    parse_judgments,
)
from heldout.judging.models.calibration import (
    ModelVerdict,
    calibrate,
    draw_judged_pairs,
    estimate_win_rates,
    order_pairs,
    reach_verdicts,
)
from heldout.judging.models.judges import ModelJudgment

FOLDER = "preferences/dl21-dueling-bandits"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def people(data: Callable[[str], Path]) -> Votes:
    path = data(f"{FOLDER}/judgments.txt.gz")
    return count_votes(counted(parse_judgments(path.read_bytes(), path=str(path))))


def gpt4o(path: Path) -> tuple[ModelVerdict, ...]:
    """GPT-4o's verdicts: `!` one answer in both orders, `=` two, `?` never asked.

    Pairs that people judged several times were asked about as often; what it said most counts.
    """
    said: defaultdict[Pair, list[float]] = defaultdict(list)
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        _, query, winner, loser, mark = line.split()
        pair = (query, min(winner, loser), max(winner, loser))
        if mark == "!":
            said[pair].append(float(winner < loser))
        elif mark == "=":
            said[pair].append(0.5)
    return tuple(
        ModelVerdict(pair=pair, share=(1 + np.sign(np.mean(shares) - 0.5)) / 2)
        for pair, shares in said.items()
    )


@pytest.mark.real
def test_gpt4o_on_the_pairs_of_dl_2021(data: Callable[[str], Path]) -> None:
    """3,217 agree, 1,812 disagree; 1,499 of its own answers are tied, 44 where people's are too."""
    verdicts = gpt4o(data(f"{FOLDER}/gpt4o-on-the-same-pairs.txt.gz"))
    found = calibrate(verdicts, people(data), rng=rng())
    assert (found.agree, found.disagree, found.flips) == (3217, 1812, 1499)
    assert (found.tied, found.strata[0].lead, found.strata[0].flips) == (1455, 0, 44)
    assert found.compared == found.agree + found.disagree + found.tied == 6484
    assert found.decided.value == pytest.approx(3217 / 5029)
    assert found.accuracy.value == pytest.approx((3217 + 1455 / 2) / 6484)
    assert found.verdicts == 6742
    leads = {one.lead: one.pairs for one in found.strata}
    assert leads == {0: 258, 1: 5863, 2: 342, 3: 279}
    assert found.kappa.value is not None
    assert found.kappa_interval is not None
    assert found.kappa_interval[0] < found.kappa.value < found.kappa_interval[1]
    assert found.decided.value is not None
    # Sides are by id, so that chance agrees on half: kappa is about twice the accuracy less one.
    assert found.kappa.value == pytest.approx(2 * found.decided.value - 1, abs=0.02)
    assert (found.length.why, found.side_p) == ("no texts", None)


def simulate(
    *, queries: int, right: float, side: float = 0.0, length: float = 0.0, seed: int = 1
) -> tuple[list[ModelJudgment], Votes, list[float]]:
    """A model that is right so often, leans to what is shown first, and to long passages."""
    draw = rng(seed)
    rows, votes, lengths = [], {}, []
    for number in range(queries):
        better, long = draw.random() < 0.5, draw.normal()
        lean = np.log(right / (1 - right)) * (1 if better else -1) + length * long
        for a, b, shown in (("a", "b", 1), ("b", "a", -1)):
            chance = 1 / (1 + np.exp(-shown * lean - side))
            chosen = a if draw.random() < chance else b
            rows.append(row_of_pair(f"q{number}", a, b, chosen))
        lengths.append(long)
        votes[f"q{number}"] = {("a", "b"): PairVotes(first=int(better), second=int(not better))}
    return rows, votes, lengths


def test_a_fair_model_has_no_lean() -> None:
    rows, votes, _ = simulate(queries=3000, right=0.8)
    found = calibrate(reach_verdicts(rows), votes, rng=rng())
    assert found.accuracy.value == pytest.approx(0.8, abs=0.02)
    assert found.flip_rate.value == pytest.approx(2 * 0.8 * 0.2, abs=0.03)
    assert found.side_p is not None
    assert found.side_p > 0.01


def test_a_model_that_likes_the_first_is_found_out() -> None:
    rows, votes, _ = simulate(queries=500, right=0.7, side=0.8)
    found = calibrate(reach_verdicts(rows), votes, rng=rng())
    assert found.first_twice > 2 * found.second_twice
    assert found.side_p is not None
    assert found.side_p < 0.001


@pytest.mark.parametrize("length", [0.0, 0.6])
def test_the_length_slope_is_recovered_at_equal_votes(length: float) -> None:
    rows, votes, lengths = simulate(queries=4000, right=0.7, length=length)
    pools = [
        pool_of(f"q{number}", {"a": "x" * round(1000 * np.exp(one)), "b": "x" * 1000})
        for number, one in enumerate(lengths)
    ]
    found = calibrate(reach_verdicts(rows), votes, pools=pools, rng=rng()).length
    assert found.why is None
    assert found.low[1] < length < found.high[1]
    assert found.high[1] - found.low[1] < 0.25


def test_a_pair_needs_both_orders_and_a_failure_is_no_half() -> None:
    rows = [
        row_of_pair("q", "a", "b", "a"),
        row_of_pair("q", "b", "a", None),
        row_of_pair("r", "a", "b", "a"),
        row_of_pair("s", "a", "b", "a"),
        row_of_pair("s", "b", "a", "b"),
        row_of_pair("t", "a", "b", "b"),
        row_of_pair("t", "b", "a", "b"),
    ]
    verdicts = reach_verdicts(rows)
    assert [(one.pair[0], one.share, one.chosen_twice) for one in verdicts] == [
        ("s", 0.5, "A"),
        ("t", 0.0, None),
    ]
    later = [*rows, row_of_pair("q", "b", "a", "a")]
    assert reach_verdicts(later)[0] == ModelVerdict(pair=("q", "a", "b"), share=1.0)


def test_nothing_to_compare_is_undefined_and_no_number() -> None:
    found = calibrate((), {}, rng=rng())
    assert (found.accuracy.value, found.decided.value, found.kappa.value) == (None, None, None)
    assert (found.flip_rate.value, found.strata) == (None, ())


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0])), max_size=30))
def test_every_compared_pair_is_agreed_on_or_not_or_tied(shares: list[tuple[int, float]]) -> None:
    verdicts = [
        ModelVerdict(pair=(f"q{query}", f"a{number}", f"b{number}"), share=share)
        for number, (query, share) in enumerate(shares)
    ]
    votes: defaultdict[str, dict[tuple[str, str], PairVotes]] = defaultdict(dict)
    for number, one in enumerate(verdicts):
        votes[one.pair[0]][one.pair[1:]] = PairVotes(first=number % 4, second=1)
    found = calibrate(verdicts, votes, rng=rng())
    assert found.agree + found.disagree + found.tied == found.compared
    assert sum(one.pairs for one in found.strata) == found.verdicts
    assert sum(one.flips for one in found.strata) == found.flips


# What a model may do


def test_the_least_sure_pairs_come_first_and_votes_come_before_the_model() -> None:
    pairs = [("q", "a", name) for name in "bcdefg"]
    verdicts = [
        ModelVerdict(pair=pairs[0], share=1.0),
        ModelVerdict(pair=pairs[2], share=0.5),
        ModelVerdict(pair=pairs[3], share=0.0),
        ModelVerdict(pair=pairs[5], share=0.5),
    ]
    named = [pair[2] for pair in order_pairs(pairs, verdicts)]
    assert named == ["d", "g", "c", "f", "b", "e"]
    turned = order_pairs(pairs, verdicts, turn=dict.fromkeys((pairs[2], pairs[3]), 1))
    assert [pair[2] for pair in turned] == ["g", "c", "f", "b", "d", "e"]


@given(st.permutations([("q", "a", name) for name in "bcdefg"]), st.integers(0, 6))
def test_ordering_loses_no_pair(pairs: Iterable[Pair], judged: int) -> None:
    kept = list(pairs)
    verdicts = [ModelVerdict(pair=pair, share=0.5) for pair in kept[:judged]]
    assert sorted(order_pairs(kept, verdicts)) == sorted(kept)


def test_pairs_for_a_calibration_come_from_every_lead_by_its_share() -> None:
    votes: defaultdict[str, dict[tuple[str, str], PairVotes]] = defaultdict(dict)
    for number in range(1000):
        lead = 1 + (number % 10 == 0) + (number % 20 == 0)
        votes[f"q{number}"]["a", "b"] = PairVotes(first=lead, second=0)
    drawn = draw_judged_pairs(votes, count=200, rng=rng(4))
    assert len(set(drawn)) == 200
    leads = Counter(votes[query][a, b].first for query, a, b in drawn)
    assert leads == {1: 180, 2: 10, 3: 10}
    assert draw_judged_pairs(votes, count=100, rng=rng(4)) == drawn[:100]
    assert set(draw_judged_pairs(votes, count=100, rng=rng(5))) != set(drawn[:100])
    assert len(draw_judged_pairs(votes, count=9999, rng=rng())) == 1000
    assert draw_judged_pairs({}, count=5, rng=rng()) == ()


def test_a_win_rate_takes_people_where_they_judged_and_the_model_where_not() -> None:
    draw = rng(11)
    pools, votes, verdicts = [], {}, []
    for number in range(2000):
        query = f"q{number}"
        runs = {"run1": ("a",), "run2": ("b",), "known": ("b",)}
        pools.append(pool_of(query, {"a": "x", "b": "y"}, **runs))
        wins = draw.random() < 0.7
        if number < 200:
            votes[query] = {("a", "b"): PairVotes(first=int(wins), second=int(not wins))}
        guess = wins if draw.random() < 0.9 else not wins
        verdicts.append(ModelVerdict(pair=(query, "a", "b"), share=float(guess)))
    rates = {(one.a, one.b): one for one in estimate_win_rates(pools, votes, verdicts)}
    assert set(rates) == {("perfect", "run1"), ("run1", "run2")}
    found = rates["run1", "run2"]
    assert (found.together.labelled, found.together.unlabelled) == (200, 1800)
    assert found.together.value == pytest.approx(0.7, abs=0.04)
    for one in (found.together, found.people):
        assert None not in (one.low, one.high)
    narrow = found.together.high - found.together.low  # type: ignore[operator]
    wide = found.people.high - found.people.low
    assert narrow < 0.75 * wide
    turned = rates["perfect", "run1"].together
    assert turned.value == pytest.approx(1 - (found.together.value or 0))


def test_a_run_pooled_deeper_than_its_first_has_no_win_rate() -> None:
    pools = [pool_of("q", {"a": "x", "b": "y"}, run1=("a", "b"), run2=("b",), known=("a",))]
    votes = {"q": {("a", "b"): PairVotes(first=1, second=0)}}
    rates = estimate_win_rates(pools, votes, [ModelVerdict(pair=("q", "a", "b"), share=1.0)])
    assert [(one.a, one.b) for one in rates] == [("perfect", "run2")]
    assert (rates[0].together.value, rates[0].together.low) == (1.0, None)


def test_a_vote_on_a_pair_that_the_model_failed_on_still_counts_for_people() -> None:
    pools = [pool_of(f"q{n}", {"a": "x", "b": "y"}, run1=("a",), run2=("b",)) for n in range(4)]
    votes = {f"q{n}": {("a", "b"): PairVotes(first=n % 2, second=1 - n % 2)} for n in range(4)}
    verdicts = [ModelVerdict(pair=(f"q{n}", "a", "b"), share=1.0) for n in range(3)]
    (rate,) = estimate_win_rates(pools, votes, verdicts)
    assert (rate.together.labelled, rate.people.queries) == (3, 4)
    assert rate.people.value == pytest.approx(0.5)
    assert rate.together.value == pytest.approx(1 / 3)


def test_six_wins_of_six_are_no_certain_win() -> None:
    pools = [pool_of(f"q{n}", {"a": "x", "b": "y"}, run1=("a",), run2=("b",)) for n in range(6)]
    votes = {f"q{n}": {("a", "b"): PairVotes(first=1, second=0)} for n in range(6)}
    verdicts = [ModelVerdict(pair=(f"q{n}", "a", "b"), share=1.0) for n in range(6)]
    (rate,) = estimate_win_rates(pools, votes, verdicts)
    assert (rate.people.value, rate.people.high) == (1, 1)
    assert rate.people.low == pytest.approx(0.025 ** (1 / 6))
    assert rate.together.low is not None
    assert rate.together.low < 0.8
    (strict,) = estimate_win_rates(pools, votes, verdicts, level=0.5)
    assert strict.people.low > rate.people.low
