"""Exchangeable systems: the truth is known, and nothing else is."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heldout.errors import InputError
from heldout.redteam.boards import Exchange, Scores, coins, exchange, guess, newcomer, weaken
from heldout.redteam.playing import Systems, draw

pairs = (
    st.integers(2, 30)
    .flatmap(
        lambda n: st.tuples(
            *(arrays(np.float64, n, elements=st.sampled_from([0, 0.125, 0.5, 1])) for _ in "ab")
        )
    )
    .filter(lambda rows: bool((rows[0] != rows[1]).any()))
    .map(lambda rows: exchange(*rows))
)
seeds = st.integers(0, 2**32)


@given(pairs, seeds)
def test_a_run_and_its_opposite_score_twice_the_truth(pair: Exchange, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, run = pair.toss(rng), guess(rng, pair.queries)
    assert labels.score(run) + labels.score(-run) == pytest.approx(pair.a + pair.b)
    both = labels.score(run).mean() + labels.score(-run).mean()
    assert both / 2 == pytest.approx(pair.truth)
    swapped = labels.first != pair.a
    assert (labels.first[swapped] == pair.b[swapped]).all()
    assert (labels.second[swapped] == pair.a[swapped]).all()


@given(pairs, seeds)
def test_what_is_spoilt_scores_nothing_and_the_rest_as_before(pair: Exchange, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, run, kept = pair.toss(rng), guess(rng, pair.queries), coins(rng, pair.queries)
    found = labels.score(np.where(kept, run, np.int8(0)))
    assert (found[~kept] == 0).all()
    assert (found[kept] == labels.score(run)[kept]).all()


def test_the_unit_is_the_standard_error_of_the_exchanged_difference() -> None:
    rng = np.random.default_rng(0)
    pair = exchange(rng.random(50) + 0.3, rng.random(50))  # A is better; once exchanged, it is not
    means = []
    for _ in range(4000):
        labels = pair.toss(rng)
        means.append((labels.first - labels.second).mean())
    assert np.mean(means) == pytest.approx(0, abs=4 * pair.unit / 4000**0.5)
    assert np.std(means) == pytest.approx(pair.unit, rel=0.05)


def test_the_coins_are_fair_and_one_for_each_query() -> None:
    thrown = np.array([coins(np.random.default_rng(s), 200) for s in range(500)])
    assert abs(thrown.mean(axis=0) - 0.5).max() < 5 * 0.5 / 500**0.5
    assert abs(np.corrcoef(thrown.T) - np.eye(200)).max() < 6 / 500**0.5


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.5, 1.0], [0.5, 1.0]),
        ([], []),
        ([0.5], [0.5, 1.0]),
        ([[0.5]], [[1.0]]),
        ([0.5, np.nan], [0.5, 1.0]),
        ([0.5, np.inf], [0.5, 1.0]),
    ],
    ids=["equal", "empty", "lengths", "shape", "nan", "infinite"],
)
def test_no_game_can_be_played_with(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match=r"differ|finite|same queries"):
        exchange(a, b)


def wide(queries: int, *, seed: int = 0) -> Exchange:
    rng = np.random.default_rng(seed)
    return exchange(rng.random(queries), rng.random(queries))


def test_a_newcomer_is_as_good_on_average_and_one_unit_away_from_a_run_of_coins() -> None:
    pair = wide(400)
    rng = np.random.default_rng(1)
    means, errors, rises = [], [], []
    for _ in range(2000):
        new, run = newcomer(pair, rng), pair.toss(rng).score(guess(rng, pair.queries))
        means.append(new.mean())
        errors.append((new - run).std(ddof=1) / pair.queries**0.5)
        rises.append((new - run).mean())
    own = np.sqrt(3) / 2 * pair.unit  # what its own mean scatters by
    assert np.mean(means) == pytest.approx(pair.truth, abs=4 * own / 2000**0.5)
    assert np.mean(errors) == pytest.approx(pair.unit, rel=0.01)  # as a rule estimates it
    assert np.std(rises) == pytest.approx(pair.unit, rel=0.07)  # and as it is


WEAK: dict[str, Callable[[Exchange], Scores]] = {
    "zeros": lambda pair: np.zeros(pair.queries),
    "a weak system": lambda pair: 0.3 * pair.middle,
    "one that is hardly weaker": lambda pair: pair.middle - 0.5 * pair.unit,
    "one that is better": lambda pair: pair.middle + 0.1,
}


@pytest.mark.parametrize("weak", WEAK)
@pytest.mark.parametrize("units", [0.2, 8, 15])
def test_a_baseline_lies_as_far_below_as_was_asked_for(weak: str, units: float) -> None:
    pair = wide(300)
    loss, system = units * pair.unit, WEAK[weak](pair)
    rng = np.random.default_rng(2)
    means = []
    for _ in range(1000):
        run = pair.toss(rng).score(guess(rng, pair.queries))
        means.append(weaken(pair, run, system, loss, rng=rng).mean())
    assert pair.truth - np.mean(means) == pytest.approx(loss, abs=4 * np.std(means) / 1000**0.5)


def weakened(pair: Exchange, weak: Scores, units: float) -> tuple[Scores, Scores]:
    rng = np.random.default_rng(3)
    run = pair.toss(rng).score(guess(rng, pair.queries))
    return run, weaken(pair, run, weak, units * pair.unit, rng=rng)


def test_a_baseline_takes_some_queries_from_the_weak_system_and_zeros_beyond_it() -> None:
    pair = wide(300)
    weak = pair.middle - 2 * pair.unit
    run, baseline = weakened(pair, weak, 1)
    assert set(np.unique(baseline == run)) == {False, True}
    assert (baseline[baseline != run] == weak[baseline != run]).all()
    _, below = weakened(pair, weak, 6)
    assert set(np.unique(below == weak)) == {False, True}
    assert (below[below != weak] == 0).all()


def test_a_baseline_that_shall_not_lie_below_is_the_run_itself() -> None:
    run, baseline = weakened(wide(50), np.zeros(50), 0)
    assert (baseline == run).all()


def test_a_baseline_can_find_nothing_and_no_less() -> None:
    pair = wide(50)
    _, nothing = weakened(pair, np.zeros(50), pair.truth / pair.unit)
    assert (nothing == 0).all()
    with pytest.raises(ValueError, match="no room for a baseline"):
        weakened(pair, np.zeros(50), 1.001 * pair.truth / pair.unit)


def systems() -> Systems:
    pair = exchange(np.arange(10.0), np.arange(10.0) + 1)
    return Systems(names=("a", "b"), pair=pair, measure="", baselines={"weak": pair.a - 20})


def test_fewer_queries_are_drawn_once_each_and_more_again_and_again() -> None:
    few, many = draw(systems(), 6, seed=0), draw(systems(), 25, seed=0)
    assert len(set(few.pair.a.tolist())) == 6
    assert many.pair.queries == 25
    assert set(many.pair.a.tolist()) <= set(range(10))
    assert (few.pair.b - few.pair.a == 1).all()


@pytest.mark.parametrize("count", [6, 25])
def test_baselines_are_drawn_with_the_pair(count: int) -> None:
    drawn = draw(systems(), count, seed=4)
    assert (drawn.baselines["weak"] == drawn.pair.a - 20).all()


def test_queries_on_which_the_systems_never_differ_are_refused() -> None:
    pair = exchange([1.0, *[0.0] * 50], [0.0] * 51)
    with pytest.raises(InputError, match="redteam-runs"):
        draw(Systems(names=("a", "b"), pair=pair, measure=""), 1, seed=0)
