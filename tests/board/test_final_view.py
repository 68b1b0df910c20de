"""Who wins a final, and how much of the highest score is luck."""

import math
from random import Random
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from heldout.board.rules.release import decide_final, expected_maximum, share_of_wins
from heldout.redteam.boards import Exchange, exchange, guess

Scores = list[list[float]]

grades = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 1.0])


@st.composite
def finals(draw: st.DrawFn) -> Scores:
    queries, count = draw(st.integers(2, 12)), draw(st.integers(1, 6))
    row = st.lists(grades, min_size=queries, max_size=queries)
    return draw(st.lists(row, min_size=count, max_size=count))


def plain(scores: Scores) -> tuple[int, list[int], int, float | None]:
    """The same with plain lists, from the definition."""
    n = len(scores[0])

    def error(a: list[float], b: list[float]) -> float:
        d = [x - y for x, y in zip(a, b, strict=True)]
        mean = sum(d) / n
        return math.sqrt(sum((x - mean) ** 2 for x in d) / (n - 1) / n)

    means = [math.fsum(row) / n for row in scores]
    best = next(i for i, mean in enumerate(means) if mean >= max(means) - 1e-9)
    below = [
        i
        for i, row in enumerate(scores)
        if means[best] - means[i] > 1e-9
        and means[best] - means[i] > 2 * error(scores[best], row) * (1 + 1e-9)
    ]
    winner = min(i for i in range(len(scores)) if i not in below)
    errors = [error(a, b) for i, a in enumerate(scores) for b in scores[:i]]
    luck = expected_maximum(len(scores)) * median(errors) / math.sqrt(2) if errors else None
    return best, below, winner, luck


@given(finals())
def test_the_outcome_is_that_of_the_definition(scores: Scores) -> None:
    found = decide_final(scores)
    best, below, winner, luck = plain(scores)
    assert (found.best, [*found.below], found.winner) == (best, below, winner)
    if luck is None:
        assert found.luck is None
    else:
        assert found.luck == pytest.approx(luck, abs=1e-12)


@given(finals(), st.randoms(use_true_random=False), grades)
def test_what_holds_of_every_final(scores: Scores, random: Random, shift: float) -> None:
    found = decide_final(scores)
    assert found.best not in found.below
    assert found.winner not in found.below
    assert set(range(found.winner)) <= set(found.below)
    assert found.means[found.best] == pytest.approx(max(found.means), abs=1e-9)
    order = list(range(len(scores[0])))
    random.shuffle(order)
    shuffled = decide_final([[row[q] for q in order] for row in scores])
    assert (shuffled.best, shuffled.below, shuffled.winner) == (
        found.best,
        found.below,
        found.winner,
    )
    easier = decide_final([[value + shift for value in row] for row in scores])
    assert (easier.below, easier.winner) == (found.below, found.winner)
    copied = decide_final([*scores, scores[found.winner]])  # a copy of the winner comes later
    assert copied.winner == found.winner


def test_of_two_means_that_differ_by_rounding_the_earlier_is_the_best() -> None:
    one, other = [0.0, 0.0, 0.0, 0.3], [0.0, 0.0, 0.1, 0.2]
    assert math.fsum(one) / 4 < math.fsum(other) / 4
    for order in ([one, other], [other, one]):
        assert decide_final(order).best == 0


def test_a_late_finalist_wins_only_where_it_is_clearly_better() -> None:
    early = [0.0, 1.0] * 50
    slightly = [1.0, *early[1:]]
    assert decide_final([early, slightly]).winner == 0
    clearly = [1.0 if i < 40 else value for i, value in enumerate(early)]
    found = decide_final([early, clearly])
    assert (found.best, found.below, found.winner) == (1, (0,), 1)


def test_a_constant_lead_is_clear_and_equal_runs_have_no_luck() -> None:
    found = decide_final([[0.1, 0.2], [0.3, 0.4]])
    assert (found.below, found.winner) == ((0,), 1)
    assert found.luck == pytest.approx(0, abs=1e-12)
    same = decide_final([[0.1, 0.2], [0.1, 0.2]])
    assert (same.below, same.winner, same.luck) == ((), 0, 0.0)
    assert decide_final([[0.1, 0.2]]).luck is None


@pytest.mark.parametrize(
    "scores",
    [[], [[0.1]], [[0.1, 0.2], [0.1]], [[0.1, math.nan]], [[[0.1, 0.2]]]],
)
def test_what_is_no_final(scores: Scores) -> None:
    with pytest.raises(ValueError, match="final"):
        decide_final(scores)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 60, 300])
def test_the_expected_maximum_is_the_integral(count: int) -> None:
    def weighted(x: float) -> float:
        return float(x * count * norm.pdf(x) * norm.cdf(x) ** (count - 1))

    assert expected_maximum(count) == pytest.approx(quad(weighted, -12, 12, limit=200)[0], abs=1e-8)


def test_the_expected_maximum_of_two_is_one_over_the_root_of_pi() -> None:
    assert expected_maximum(2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-12)
    with pytest.raises(ValueError, match="0"):
        expected_maximum(0)


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_the_better_finalist_wins_more_often_than_its_share(count: int) -> None:
    assert share_of_wins(count, 0) == pytest.approx(1 / count, abs=1e-9)
    assert share_of_wins(count, 9) == pytest.approx(1, abs=1e-4)
    # The earlier of two wins if the best is at most 2 u above it.
    two = (norm.cdf(3 - 2) + norm.cdf(3 + 2)) / 2
    assert share_of_wins(2, 3) == pytest.approx(two, abs=1e-9)


GAMES = 600
QUERIES = 500


def systems() -> Exchange:
    """Two systems whose scores are reciprocal ranks and differ on three queries in ten."""
    rng = np.random.default_rng(7)
    scores = np.array([0, 0.1, 0.2, 1 / 3, 0.5, 1])
    a = rng.choice(scores, QUERIES)
    b = np.where(rng.random(QUERIES) < 0.3, rng.choice(scores, QUERIES), a)
    return exchange(a, b)


def play(pair: Exchange, count: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Scores by query of equally good finalists."""
    labels = pair.toss(rng)
    return [labels.score(guess(rng, pair.queries)) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 10])
def test_the_printed_luck_is_that_of_equally_good_finalists(count: int) -> None:
    pair, rng = systems(), np.random.default_rng(count)
    outcomes = [decide_final(play(pair, count, rng)) for _ in range(GAMES)]
    excess = [max(one.means) - pair.truth for one in outcomes]
    printed = [one.luck for one in outcomes if one.luck is not None]
    error = np.std(excess, ddof=1) / math.sqrt(GAMES)
    assert np.mean(printed) == pytest.approx(np.mean(excess), abs=float(3 * error))
    assert np.mean(printed) == pytest.approx(0.5 * expected_maximum(count) * pair.unit, rel=0.05)
    assert 3 * error < np.mean(printed) / 2, "too few games to tell the luck from none"


def test_nobody_carries_a_gain_onto_queries_that_were_never_used() -> None:
    """The finalists know all labels of the season; on the final's own labels they are guesses."""
    pair, rng = systems(), np.random.default_rng(3)
    season, gains, fresh = [], [], []
    for _ in range(GAMES):
        seen = pair.toss(rng)
        fitted = np.where(seen.first >= seen.second, np.int8(1), np.int8(-1))
        season.append(seen.score(fitted).mean() - pair.truth)
        final, runs = pair.toss(rng), [fitted, *(guess(rng, pair.queries) for _ in range(4))]
        gains.append(final.score(fitted).mean() - pair.truth)
        winner = runs[decide_final([final.score(run) for run in runs]).winner]
        fresh.append(pair.toss(rng).score(winner).mean() - pair.truth)
    assert np.mean(season) > 4 * pair.unit
    for found in (gains, fresh):
        error = np.std(found, ddof=1) / math.sqrt(GAMES)
        assert abs(np.mean(found)) < 3 * error
        assert error < 0.05 * pair.unit
