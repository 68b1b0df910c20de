"""The game: exchangeable means nothing gained, and the attacks do what their authors say."""

from statistics import NormalDist
from typing import get_args

import numpy as np
import pytest
from reference_game import PLAYS, Game, ladder

from heldout.board.rules.release import ReleaseRule
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.exchange import Exchange, exchange
from heldout.redteam.game import Outcome, Plan, State, play
from heldout.redteam.releases import Release, parse_release
from heldout.redteam.report import play_table, summarise

RR = np.array([0.0, 0.1, 0.2, 0.25, 0.5, 1.0])


def pair_of(queries: int, *, seed: int = 1) -> Exchange:
    """Two systems with scores as RR@10 gives them, equal on half of the queries."""
    rng = np.random.default_rng(seed)
    a, b = rng.choice(RR, (2, queries))
    return exchange(a, np.where(rng.random(queries) < 0.5, a, b))


def release_of(name: str, *, submissions: int = 20) -> Release:
    rule = ReleaseRule(submissions=submissions)
    return parse_release(name, rule, decimals=3, path="").answer


def gains(
    attack: str,
    release: str,
    pair: Exchange,
    *,
    submissions: int,
    games: int,
    state: State = "team",
) -> np.ndarray:
    """Gains in units of u."""
    plan = Plan(submissions=submissions, seed=3, state=state)
    answer = release_of(release, submissions=submissions)
    played = [play(ATTACKS[attack], answer, pair, plan, number=n) for n in range(games)]
    return np.array([outcome.gain for outcome in played]) / pair.unit


@pytest.mark.parametrize("release", ["exact", "rounded", "ladder", "ladder=1", "step=0.1"])
def test_whoever_does_not_look_gains_nothing(release: str) -> None:
    found = gains("none", release, pair_of(400), submissions=2, games=300)
    assert abs(found.mean()) < 4 * found.std() / 300**0.5
    assert found.std() == pytest.approx(0.5, abs=0.08)  # half of u: that is what u means


def test_a_vote_of_boosted_runs_gains_like_the_root_of_their_number() -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, 4000).astype(np.float64)
    pair = exchange(a, 1 - a)
    found = {k: gains("boosting", "exact", pair, submissions=k, games=8) for k in (25, 100, 400)}
    assert found[100].mean() / found[25].mean() == pytest.approx(2, rel=0.15)
    assert found[400].mean() / found[100].mean() == pytest.approx(2, rel=0.1)
    assert found[100].mean() == pytest.approx(100**0.5 / np.pi, rel=0.1)  # in the limit


def test_the_best_of_n_gains_what_the_best_of_n_normal_draws_does() -> None:
    found = gains("best of n", "exact", pair_of(500), submissions=100, games=50)
    draws = np.random.default_rng(0).normal(size=(20_000, 100)).max(axis=1) / 2
    assert found.mean() == pytest.approx(draws.mean(), abs=0.12)


def test_exact_scores_decode_every_label_that_is_asked_for() -> None:
    pair = pair_of(30)
    outcome = play(
        ATTACKS["decoding"], release_of("exact"), pair, Plan(submissions=31, seed=0), number=0
    )
    best = np.maximum(pair.a, pair.b).mean()
    assert outcome.gain + pair.truth == pytest.approx(best)


def one(attack: str, release: str, pair: Exchange, *, submissions: int, complete: bool) -> Outcome:
    plan = Plan(submissions=submissions, seed=3, complete=complete)
    answer = release_of(release, submissions=submissions)
    return play(ATTACKS[attack], answer, pair, plan, number=0)


def test_a_board_that_asks_for_every_query_refuses_partial_runs_and_tells_nothing() -> None:
    pair = pair_of(60)
    refused = one("partial runs", "exact", pair, submissions=61, complete=True)
    guessed = one("none", "exact", pair, submissions=2, complete=True)
    assert refused.refused == 60
    assert refused.gain == guessed.gain  # the whole run at the end is its first guess
    assert one("partial runs", "exact", pair, submissions=61, complete=False).refused == 0


def test_partial_runs_read_a_label_for_every_two_submissions() -> None:
    pair = pair_of(60)
    taken = one("partial runs", "exact", pair, submissions=121, complete=False)
    assert taken.labels == (pair.a != pair.b).sum()
    assert taken.gain + pair.truth == pytest.approx(np.maximum(pair.a, pair.b).mean())


@pytest.mark.parametrize("release", ["exact", "rounded", "ladder", "ladder=1"])
def test_complete_runs_that_spoil_the_other_queries_read_what_partial_ones_do(
    release: str,
) -> None:
    """All queries required is no defence against who fills a run up with documents beside them."""
    pair = pair_of(60)
    partial = one("partial runs", release, pair, submissions=40, complete=False)
    spoilt = one("spoilt runs", release, pair, submissions=40, complete=True)
    assert (spoilt.gain, spoilt.labels) == (partial.gain, partial.labels)
    assert spoilt.refused == 0


@pytest.mark.parametrize("attack", ["best of n", "boosting", "hill-climbing", "decoding"])
def test_a_ladder_stops_what_raw_scores_do_not(attack: str) -> None:
    pair = pair_of(1000)
    raw = gains(attack, "exact", pair, submissions=100, games=10)
    ladder_ = gains(attack, "ladder", pair, submissions=100, games=10)
    assert raw.mean() > ladder_.mean() + 0.5
    assert ladder_.mean() < 0.4


@pytest.mark.parametrize("attack", ["blending", "sandbagging"])
def test_first_scores_and_low_ones_leak_unless_a_team_begins_at_what_stands(attack: str) -> None:
    pair = pair_of(1000)
    found = {
        state: gains(attack, "ladder", pair, submissions=32, games=25, state=state).mean()
        for state in get_args(State)
    }
    assert found["team"] > 0.4
    assert abs(found["baseline"]) < 0.2
    assert abs(found["board"]) < 0.2


@pytest.mark.parametrize("rule", ["exact", "rounded", "ladder", "ladder=1"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_game_is_that_of_a_slow_straightforward_one(attack: str, rule: str) -> None:
    submissions = 12
    pair = pair_of(37)
    slow_rule: str | float = {"ladder": ladder(submissions), "ladder=1": 1.0}.get(rule, rule)
    answer = release_of(rule, submissions=submissions)
    for number in range(5):
        plan = Plan(submissions=submissions, seed=7, complete=False)
        fast = play(ATTACKS[attack], answer, pair, plan, number=number)
        slow = Game(pair.a.tolist(), pair.b.tolist(), slow_rule, seed=7, game=number)
        PLAYS[attack](slow, submissions)
        assert fast.gain == pytest.approx(float(slow.gain()), abs=1e-12)


@pytest.mark.parametrize("release", ["ladder", "rounded", "step=0.1"])
@pytest.mark.parametrize("state", get_args(State))
def test_a_system_that_is_plainly_better_is_always_released(release: str, state: State) -> None:
    plan = Plan(submissions=5, seed=0, planted=40, state=state)
    for number in range(20):
        outcome = play(ATTACKS["best of n"], release_of(release), pair_of(300), plan, number=number)
        assert outcome.planted_released
        assert outcome.planted_above


def test_the_ladder_releases_a_planted_system_as_often_as_its_power_says() -> None:
    plan = Plan(submissions=2, seed=0)
    answer = release_of("ladder", submissions=300)
    pair = pair_of(1000)
    found = [play(ATTACKS["none"], answer, pair, plan, number=n) for n in range(300)]
    power = NormalDist().cdf(4.5 - 3.59)
    assert np.mean([o.planted_released for o in found]) == pytest.approx(power, abs=0.07)


def test_a_worse_planted_system_is_not_released() -> None:
    plan = Plan(submissions=2, seed=0, planted=-10)
    outcome = play(ATTACKS["none"], release_of("ladder"), pair_of(300), plan, number=0)
    assert not outcome.planted_released


def test_the_same_seed_plays_the_same_games_and_more_leave_the_first_as_they_were() -> None:
    pair = pair_of(50)
    for attack in ATTACKS:
        first = gains(attack, "rounded", pair, submissions=6, games=3)
        again = gains(attack, "rounded", pair, submissions=6, games=5)
        assert first.tobytes() == again[:3].tobytes()


def test_another_seed_plays_other_games() -> None:
    pair = pair_of(50)
    one, other = (
        play(ATTACKS["none"], release_of("exact"), pair, Plan(submissions=2, seed=s), number=0)
        for s in (0, 1)
    )
    assert one.gain != other.gain


def test_every_attack_stands_in_the_table_with_every_release() -> None:
    chosen = [parse_release(name, ReleaseRule(), decimals=3, path="") for name in ("exact", "step")]
    count = 0

    def done() -> None:
        nonlocal count
        count += 1

    plan = Plan(submissions=2, seed=0)
    lines = list(play_table(pair_of(9), list(ATTACKS), chosen, plan, games=2, done=done))
    assert [(line.attack, line.release) for line in lines] == [
        (attack, release) for attack in ATTACKS for release in ("exact", "step 0.01")
    ]
    assert count == 2 * len(lines)
    assert {(line.submissions, line.seeds) for line in lines} == {(2, 2)}


def test_a_line_is_what_its_games_are() -> None:
    outcomes = [
        Outcome(gain=gain, labels=3, refused=2, planted_released=told, planted_above=above)
        for gain, told, above in [(0.2, True, True), (0.1, True, False), (-0.1, False, False)]
    ]
    line = summarise(outcomes, unit=0.1, attack="a", release="r", submissions=9)
    assert line.mean_gain == pytest.approx(0.2 / 3)
    assert line.mean_gain_se == pytest.approx(2 / 3)
    assert line.gain_sd == pytest.approx(np.std([2, 1, -1], ddof=1))
    assert (line.labels, line.refused) == (3, 2)
    assert (line.false_release_share, line.utility, line.planted_above) == (2 / 3, 2 / 3, 1 / 3)


def test_one_game_has_no_spread() -> None:
    outcome = Outcome(gain=0.0, labels=0, refused=0, planted_released=True, planted_above=True)
    line = summarise([outcome], unit=0.1, attack="a", release="r", submissions=2)
    assert line.gain_sd is None
