"""The game: exchangeable means nothing gained, and the attacks do what their authors say."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference_game import Game

from heldout.board.rules import release
from heldout.board.rules.release import ReleaseRule
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.boards import Exchange, NamedRule, exchange, parse_rule
from heldout.redteam.game import (
    AttackCase,
    GameOutcome,
    GamePlan,
    Weak,
    begin,
    play,
    play_cases,
    play_worst_again,
    summarise,
)

RR = np.array([0.0, 0.1, 0.2, 0.25, 0.5, 1.0])
EVERY = ("rounded", "clear", "clear+feedback")


def pair_of(queries: int, *, seed: int = 1) -> Exchange:
    """Two systems with scores as RR@10 gives them, equal on half of the queries."""
    rng = np.random.default_rng(seed)
    a, b = rng.choice(RR, (2, queries))
    return exchange(a, np.where(rng.random(queries) < 0.5, a, b))


def opposites(queries: int) -> Exchange:
    """Where the one has 1 the other has 0, so that labels are coins."""
    a = np.random.default_rng(5).integers(0, 2, queries).astype(np.float64)
    return exchange(a, 1 - a)


def rule_of(name: str, *, decimals: int = 3) -> NamedRule:
    return parse_rule(name, ReleaseRule(), decimals=decimals, path="")


def weak(pair: Exchange, gap: float) -> Weak:
    return Weak(gap=gap, scores=0.2 * pair.middle)


def outcomes(
    attack: str,
    rule: str,
    pair: Exchange,
    *,
    submissions: int,
    games: int,
    gap: float = 0.0,
    decimals: int = 3,
) -> list[GameOutcome]:
    plan = GamePlan(submissions=submissions, seed=3)
    named = rule_of(rule, decimals=decimals)
    baseline = weak(pair, gap)
    return [play(ATTACKS[attack], named, pair, baseline, plan, number=n) for n in range(games)]


def gains(played: Sequence[GameOutcome]) -> np.ndarray:
    return np.array([outcome.gain for outcome in played])


def worths(played: Sequence[GameOutcome]) -> np.ndarray:
    return np.array([outcome.worth for outcome in played])


# what the game is


@pytest.mark.parametrize("gap", [0.0, pytest.param(2.0, marks=pytest.mark.night), 5.0])
@pytest.mark.parametrize("rule", ["rounded", "clear"])
def test_the_game_is_that_of_a_slow_straightforward_one(rule: str, gap: float) -> None:
    submissions, seed = 12, 7
    pair = pair_of(37)
    low = 0.25 * pair.truth  # 5 u are more than the weak system loses: zeros beyond it
    plan = GamePlan(submissions=submissions, seed=seed)
    baseline = Weak(gap=gap, scores=np.full(37, low))
    for name, attack in ATTACKS.items():
        for number in range(4):
            named = rule_of(rule)
            fast = play(attack, named, pair, baseline, plan, number=number)
            systems = pair.a.tolist(), pair.b.tolist()
            game = Game(*systems, rule, gap=gap, weak=low, seed=seed, game=number)
            slow = game.play(attack, submissions)
            assert fast.gain == pytest.approx(slow.gain, abs=1e-9), (name, number)
            assert fast.worth == pytest.approx(slow.worth, abs=1e-9), (name, number)
            assert (fast.records, fast.planted) == (slow.records, slow.planted), (name, number)


@pytest.mark.parametrize(
    "rule", ["clear", *(pytest.param(one, marks=pytest.mark.night) for one in (EVERY[0], EVERY[2]))]
)
def test_whoever_does_not_look_learns_nothing(rule: str) -> None:
    found = outcomes("best of n", rule, pair_of(400), submissions=3, games=300, gap=8)
    assert abs(worths(found).mean()) < 4 * 0.5 / 300**0.5
    assert worths(found).std() == pytest.approx(0.5, abs=0.08)  # half of u: that is what u means


def test_the_same_seed_plays_the_same_games_and_more_leave_the_first_as_they_were() -> None:
    for attack in ATTACKS:
        found = outcomes(attack, "clear+noise", pair_of(50), submissions=6, games=5, gap=4)
        again = outcomes(attack, "clear+noise", pair_of(50), submissions=6, games=3, gap=4)
        assert found[:3] == again


def test_every_rule_and_attack_is_played_on_the_same_boards() -> None:
    pair, plan = pair_of(60), GamePlan(submissions=3, seed=3)
    # Of a part of the queries u is larger, and the baseline lies lower.
    whole = [name for name in EVERY if "feedback" not in name]
    boards = [begin(rule_of(r), pair, weak(pair, 4), plan, number=9) for r in whole]
    first, labels = boards[0]
    for board, other in boards:
        assert board.baseline.tolist() == first.baseline.tolist()
        assert (board.key, other.first.tolist()) == (first.key, labels.first.tolist())
    other_board, other_labels = begin(rule_of("clear"), pair, weak(pair, 4), plan, number=8)
    assert other_board.key != first.key
    assert other_labels.first.tolist() != labels.first.tolist()
    split, _ = begin(rule_of("clear+feedback"), pair, weak(pair, 4), plan, number=9)
    assert split.key == first.key
    assert split.baseline.mean() < first.baseline.mean()


def test_the_baseline_can_be_the_board_s_own() -> None:
    pair = pair_of(60)
    own = np.linspace(0, 0.5, 60)
    board, _ = begin(rule_of("clear"), pair, own, GamePlan(submissions=3, seed=0), number=4)
    assert board.baseline.tolist() == own.tolist()


def test_where_the_systems_never_differ_on_what_ranks_nothing_is_gained() -> None:
    """Their only difference may lie in the feedback part: no division by a unit of 0."""
    a = np.full(8, 0.5)
    pair = exchange(a, [1.0, *a[1:]])
    plan = GamePlan(submissions=3, seed=0)
    found = [
        play(ATTACKS["best of n"], rule_of("rounded+feedback"), pair, 0.5 * a, plan, number=n)
        for n in range(20)
    ]
    assert np.isfinite(gains(found)).all()
    assert 0 in gains(found)


# what attacks gain


@pytest.mark.night
def test_numbers_that_vote_gain_like_the_root_of_their_count() -> None:
    """In the limit E|N| / 2 = .4 sqrt(K) u: the price of `rounded` (release.md)."""
    pair, found = opposites(4000), {}
    for count in (26, 101, 401):
        played = outcomes("weighted vote", "rounded", pair, submissions=count, games=8, decimals=6)
        found[count] = gains(played).mean() / (count - 1) ** 0.5
    assert found[26] == pytest.approx(0.4, rel=0.1)
    assert found[101] == pytest.approx(0.4, rel=0.06)
    assert found[401] == pytest.approx(0.4, rel=0.06)


def test_the_best_of_n_gains_what_the_best_of_n_normal_draws_does() -> None:
    found = outcomes("best of n", "rounded", pair_of(500), submissions=100, games=60)
    draws = np.random.default_rng(0).normal(size=(20_000, 100)).max(axis=1) / 2
    assert gains(found).mean() == pytest.approx(draws.mean(), abs=0.12)
    assert abs(worths(found).mean()) < 4 * 0.5 / 60**0.5  # and its last run is worth nothing


@pytest.mark.night
def test_a_single_number_without_noise_is_worth_two_fifths_of_u(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The floor of every rule that publishes an exact number: its run, or the opposite of it.

    E|N| u/2 = .4 u; docs/explanation/redteam.md, `clear` at a baseline 8 u below.
    """
    monkeypatch.setattr(release, "NOISE", 0.0)
    found = outcomes(
        "weighted vote", "clear", opposites(3000), submissions=20, games=250, gap=8, decimals=6
    )
    alone = [outcome for outcome in found if outcome.records == 1]
    assert len(alone) > 0.9 * len(found)
    spread = 0.5 * (1 - 2 / np.pi) ** 0.5
    assert worths(alone).mean() == pytest.approx(
        (2 / np.pi) ** 0.5 / 2, abs=4 * spread / len(alone) ** 0.5
    )
    assert abs(gains(found).mean()) < 0.15  # what stands on the board is the first run


def stairs(rule: str, *, gap: float, games: int = 40, queries: int = 1000) -> dict[str, float]:
    """What each staircase is worth, with the numbers that the rule publishes."""
    pair = pair_of(queries)
    return {
        name: worths(outcomes(name, rule, pair, submissions=60, games=games, gap=gap)).mean()
        for name in ATTACKS
        if name.startswith("staircase")
    }


@pytest.mark.night
def test_a_staircase_reads_more_of_exact_numbers_and_without_a_gap_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    level, found = stairs("clear", gap=0), []
    for noise in (10.0, 0.0):
        monkeypatch.setattr(release, "NOISE", noise)
        found.append(stairs("clear", gap=16))
    for name, exact in found[1].items():
        assert abs(level[name]) < 4 * 0.5 / 40**0.5
        assert exact > max(found[0][name] + 0.1, 0.5)


def test_a_free_last_step_stands_on_the_board() -> None:
    pair = pair_of(1000)
    found = {
        name: outcomes(name, "clear", pair, submissions=60, games=40, gap=16)
        for name in ("staircase", "staircase, last step free")
    }
    free, spent = (
        np.mean([one.gain == one.worth for one in found[name]])
        for name in sorted(found, reverse=True)
    )
    assert free > 0.6 > spent


# what the rules do


@pytest.mark.parametrize("attack", ["names at the edge", "weighted vote"])
def test_names_together_gain_nothing_on_the_board_under_the_clear_rule(attack: str) -> None:
    found = gains(outcomes(attack, "clear", pair_of(1000), submissions=100, games=25, gap=8))
    assert abs(found.mean()) < 0.35


@pytest.mark.night
@pytest.mark.parametrize("attack", ["best of n", "weighted vote"])
def test_what_rounded_scores_give_away_the_clear_rule_does_not(attack: str) -> None:
    pair = pair_of(1000)
    rounded = gains(outcomes(attack, "rounded", pair, submissions=100, games=10))
    held = gains(outcomes(attack, "clear", pair, submissions=100, games=25))
    assert held.mean() < 0.2
    assert rounded.mean() > held.mean() + 0.5


@pytest.mark.night
def test_feedback_is_worth_nothing_on_what_ranks_and_everything_where_it_does() -> None:
    pair = pair_of(1000)
    found = {
        rule: worths(outcomes("weighted vote", rule, pair, submissions=150, games=20)).mean()
        for rule in ("rounded", "clear+feedback", "clear+noise")
    }
    assert found["rounded"] > 2
    assert abs(found["clear+feedback"]) < 4 * 0.5 / 20**0.5
    assert found["clear+noise"] < 0.7  # noise hides most, and not all


@pytest.mark.parametrize("rule", EVERY)
def test_a_system_that_is_plainly_better_is_always_published(rule: str) -> None:
    """6 u, after thirty runs that are equally good."""
    found = outcomes("best of n", rule, pair_of(500), submissions=30, games=40)
    least = 1.0 if rule == "rounded" else 0.9
    assert np.mean([outcome.planted[1] for outcome in found]) >= least
    assert np.mean([outcome.planted[0] for outcome in found]) >= least - 0.2


# lines


def nothing() -> None:
    """No progress is shown."""


def case_of(attack: str, rule: str, pair: Exchange, gap: float = 0.0) -> AttackCase:
    return AttackCase(attack=attack, named=rule_of(rule), baseline=weak(pair, gap))


def outcome(gain: float, *, worth: float = 0.0, records: int = 1, told: bool = True) -> GameOutcome:
    return GameOutcome(gain=gain, worth=worth, records=records, planted=(told, True))


def test_a_line_is_what_its_games_are() -> None:
    pair = pair_of(9)
    games = [
        outcome(2, worth=1),
        outcome(1, worth=0.5, records=4),
        outcome(-1, worth=0, records=0, told=False),
    ]
    line = summarise(
        games, case_of("best of n", "clear", pair, 8), pair, GamePlan(submissions=5, seed=0)
    )
    assert (line.attack, line.release, line.baseline) == ("best of n", "clear", "8 u below")
    assert (line.submissions, line.seeds) == (5, 3)
    assert line.mean_gain_se == pytest.approx(2 / 3)
    assert line.mean_gain == pytest.approx(2 / 3 * pair.unit)
    assert line.gain_sd == pytest.approx(np.std([2, 1, -1], ddof=1))
    assert (line.worth, line.worth_sd) == (0.5, 0.5)
    assert line.false_release_share == 2 / 3
    assert (line.record_share, line.records) == (2 / 3, 5 / 3)
    assert (line.utility, line.utility_6) == (2 / 3, 1)
    assert line.harm == line.mean_gain_se
    assert line.error == pytest.approx(np.std([2, 1, -1], ddof=1) / 3**0.5)


def test_the_harm_is_what_the_attacker_knows_where_that_is_more() -> None:
    pair = pair_of(9)
    games = [outcome(0, worth=1), outcome(0, worth=2)]
    line = summarise(
        games, case_of("best of n", "clear", pair), pair, GamePlan(submissions=3, seed=0)
    )
    assert line.harm == 1.5
    assert line.error == pytest.approx(0.5)
    assert line.baseline == "equal"


def test_one_game_has_no_spread() -> None:
    pair = pair_of(9)
    case = AttackCase(attack="best of n", named=rule_of("rounded"), baseline=np.zeros(9))
    line = summarise([outcome(1)], case, pair, GamePlan(submissions=3, seed=0))
    assert (line.gain_sd, line.worth_sd, line.error) == (None, None, None)
    assert line.baseline == "the board's own"


def test_every_case_has_its_line_in_order_wherever_it_is_played() -> None:
    pair, plan, count = pair_of(30), GamePlan(submissions=4, seed=2), 0
    cases = [case_of(attack, rule, pair, 2) for attack in ATTACKS for rule in ("rounded", "clear")]

    def done() -> None:
        nonlocal count
        count += 1

    one, two = (
        list(play_cases(cases, pair, plan, games=5, done=done, processes=p)) for p in (1, 2)
    )
    with ThreadPoolExecutor(2) as executor:
        given = list(play_cases(cases, pair, plan, games=5, done=done, executor=executor))
    assert one == two == given
    assert [(line.attack, line.release) for line in one] == [
        (case.attack, case.named.name) for case in cases
    ]
    assert count == 3 * len(cases)


def test_the_worst_attack_is_played_again_on_seeds_that_did_not_choose_it() -> None:
    pair, plan = pair_of(60), GamePlan(submissions=10, seed=0)
    cases = [
        case_of(attack, rule, pair, gap)
        for rule in ("rounded", "clear")
        for gap in (0.0, 3.0)
        for attack in ("best of n", "weighted vote")
    ]

    first = list(play_cases(cases, pair, plan, games=6, done=nothing))
    fresh = play_worst_again(first, cases, pair, plan, games=6, done=nothing)
    assert [(line.release, line.baseline) for line in fresh] == [
        (rule, gap) for rule in ("rounded", "clear") for gap in ("equal", "3 u below")
    ]
    assert all(line.fresh and line.seeds == 6 for line in fresh)
    assert not any(line.fresh for line in first)
    for line in fresh:
        rivals = [x for x in first if (x.release, x.baseline) == (line.release, line.baseline)]
        worst = max(rivals, key=lambda x: x.harm)
        assert line.attack == worst.attack
        assert line.harm != worst.harm
