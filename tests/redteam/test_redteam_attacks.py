"""Each attack by itself: what it sends, and that it knows only what it is sent."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from heldout.redteam.attacks import ATTACKS, Target, _Readings
from heldout.redteam.boards import GameAnswer, Run, Scores

NOTHING = GameAnswer(score=None)
STAIRCASES = tuple(name for name in ATTACKS if name.startswith("staircase"))


def published(score: float | None, other: float | None = None) -> GameAnswer:
    return GameAnswer(score=score, other=other)


def target_of(
    queries: int, submissions: int, *, above: float = 0.0, noise: float = 0.0, blur: float = 0.0
) -> Target:
    """Systems of 0.5 in the mean; the best baseline lies `above` them."""
    typical = np.linspace(0.25, 0.75, queries)
    return Target(
        submissions=submissions,
        typical=typical,
        sure=np.arange(queries - queries // 4, queries),
        unit=0.02,
        baseline=0.5 + above,
        noise=noise,
        blur=blur,
        digit=0.001,
        spread=0.02,
        chance=chance,
    )


def chance(above: Scores, error: Scores) -> Scores:
    """Half of the runs that lie two standard errors above are published."""
    return np.asarray((1 + np.tanh((above - 2 * error) / 0.01)) / 2, np.float64)


def drive(
    attack: str, target: Target, answers: Sequence[GameAnswer], *, seed: int = 0, most: int = 10_000
) -> list[Run]:
    """All that an attack sends when it is given these answers, over and over."""
    return react(attack, target, lambda n, _: answers[n % len(answers)], seed=seed, most=most)


def react(
    attack: str,
    target: Target,
    answer: Callable[[int, Run], GameAnswer],
    *,
    seed: int = 0,
    most: int = 10_000,
) -> list[Run]:
    """All that an attack sends when each run is answered by its number and itself."""
    moves = ATTACKS[attack].moves(target, np.random.default_rng(seed))
    sent = [next(moves)]
    try:
        while len(sent) < most:
            sent.append(moves.send(answer(len(sent) - 1, sent[-1])))
    except StopIteration:
        return sent
    raise AssertionError("it does not end")


def bytes_of(sent: Sequence[Run]) -> bytes:
    return b"".join(run.tobytes() for run in sent)


MIXED = [published(0.5), NOTHING, published(0.6, 0.4), published(None, 0.55), published(0.1)]


@pytest.mark.parametrize("submissions", [3, 4, 40])
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_sends_whole_runs_and_as_many_as_it_may(attack: str, submissions: int) -> None:
    for queries, above, answers in product(
        (2, 7, 150), (0.0, -0.3, 0.2, -0.6), ([NOTHING], MIXED, [published(0.5)])
    ):
        sent = drive(attack, target_of(queries, submissions, above=above), answers)
        assert len(sent) <= submissions
        assert len(sent) == submissions or attack in STAIRCASES
        assert all(run.shape == (queries,) and run.dtype == np.int8 for run in sent)
        assert {int(choice) for run in sent for choice in run} <= {-1, 0, 1}


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "best of n"])
def test_an_attack_goes_by_what_it_is_sent(attack: str) -> None:
    target = target_of(150, 40, above=-0.2)

    def say_luck(_: int, run: Run) -> GameAnswer:
        return published(0.4 + float(run[:75].sum()) / 1000)

    def say_other_luck(_: int, run: Run) -> GameAnswer:
        return published(0.4 + float(run[75:].sum()) / 1000)

    one, other = react(attack, target, say_luck), react(attack, target, say_other_luck)
    assert one[0].tobytes() == other[0].tobytes()
    assert bytes_of(one) != bytes_of(other)


def test_whoever_does_not_listen_sends_the_same_whatever_is_said() -> None:
    target = target_of(30, 8)
    one, other = (drive("best of n", target, answers) for answers in (MIXED, [NOTHING]))
    assert bytes_of(one) == bytes_of(other)


# votes


def test_a_vote_elects_what_was_above_chance() -> None:
    scores = [0.9, 0.1, 0.8, 0.3, 0.6]
    *probes, final = drive("weighted vote", target_of(101, 6), [published(s) for s in scores])
    lucks = np.array(scores) - np.mean(scores)
    votes = sum(weight * run for weight, run in zip(lucks, probes, strict=True))
    decided = np.abs(votes) > 1e-6
    assert decided.sum() > 60
    assert (final[decided] == np.sign(votes[decided])).all()


def test_no_answer_at_all_is_a_vote_against_where_others_were_published() -> None:
    answers = [published(0.9), NOTHING, NOTHING, NOTHING]
    *probes, final = drive("weighted vote", target_of(200, 5), answers)
    against = sum(-run for run in probes[1:])
    assert (final == np.sign(probes[0] + against / 3 * 0.999)).all()


@pytest.mark.parametrize("attack", ["weighted vote", "names at the edge"])
def test_a_number_beside_the_score_counts_as_far_as_it_says_something(attack: str) -> None:
    """One without noise is as good as the score; one of other queries is as good as silence."""
    scores = [0.9, 0.1, 0.2, 0.8]
    beside = [published(None, score) for score in scores]
    exact, other = (target_of(99, 40, noise=noise) for noise in (0.0, np.inf))
    ranked = drive(attack, exact, [published(score) for score in scores])
    assert bytes_of(ranked) == bytes_of(drive(attack, exact, beside))
    assert bytes_of(drive(attack, other, beside)) == bytes_of(drive(attack, other, [NOTHING]))


def test_a_number_says_a_run_s_luck_in_u_and_one_with_noise_says_less() -> None:
    """By Bayes' rule, for a luck of sd u/2: with noise of the same size one half of it."""
    target = target_of(50, 4, noise=0.01)
    assert target.luck(published(0.53, 0.9), 0.5) == pytest.approx(1.5)
    noisy = target_of(50, 4, noise=0.1, blur=0.01)
    assert noisy.luck(published(0.53, 0.9), 0.5) == pytest.approx(0.75)
    assert target.luck(published(None, 0.53), 0.5) == pytest.approx(0.75)
    assert target.luck(NOTHING, 0.5) is None
    assert target_of(50, 4, noise=np.inf).luck(published(None, 0.53), 0.5) is None


def test_names_at_the_edge_lie_where_half_of_them_are_published() -> None:
    """Above the baseline by the margin, 2 u; each spoils the same queries."""
    target = target_of(400, 12, above=-0.2)
    *probes, final = drive("names at the edge", target, [NOTHING])
    closed = [np.flatnonzero(run == 0).tolist() for run in probes]
    assert all(one == closed[0] for one in closed)
    left = target.typical[probes[0] != 0].sum() / 400
    assert left == pytest.approx(target.baseline + 2 * target.unit, abs=0.75 / 400)
    assert (final != 0).all()


# staircases


def spoilt(run: Run) -> set[int]:
    return set(np.flatnonzero(run == 0).tolist())


@pytest.mark.parametrize("attack", STAIRCASES)
def test_a_staircase_begins_above_the_baseline_and_opens_sure_queries(attack: str) -> None:
    target = target_of(400, 81, above=-0.15)
    *climb, last = drive(attack, target, [NOTHING])
    levels = [target.typical[run != 0].sum() / 400 for run in climb]
    assert len(climb) >= 3
    assert levels[0] == pytest.approx(target.baseline + target.unit, abs=2 / 400)
    assert levels == sorted(set(levels))
    assert spoilt(climb[0]) <= set(target.sure.tolist())
    assert not spoilt(last)


def test_a_free_last_step_leaves_what_the_last_run_needs() -> None:
    target = target_of(400, 81, above=-0.15)
    *_, before, _ = drive("staircase, last step free", target, [NOTHING])
    left = 0.5 - target.typical[before != 0].sum() / 400
    error = (target.unit**2 / 2 + (target.typical[before == 0] ** 2).sum() / 400**2) ** 0.5
    assert chance(np.array(left), np.array(error)) >= 0.85
    *_, before, _ = drive("staircase", target, [NOTHING])
    assert 0.5 - target.typical[before != 0].sum() / 400 < left


@pytest.mark.parametrize("attack", STAIRCASES)
@pytest.mark.parametrize("above", [0.0, 0.1])
def test_where_the_baseline_is_as_good_there_is_nothing_to_climb(attack: str, above: float) -> None:
    (only,) = drive(attack, target_of(60, 12, above=above), MIXED)
    assert not spoilt(only)


def test_the_lucks_are_the_least_squares_solution() -> None:
    """Against the normal equations over all coins, written out."""
    rng = np.random.default_rng(3)
    directions, noise = rng.normal(size=(6, 40)), rng.random(6)
    read, start = rng.normal(size=6), rng.normal(size=40) / 9
    readings = _Readings(start)
    for row, value, variance in zip(directions, read, noise, strict=True):
        readings.add(row, value, variance)
    weighted = directions.T / noise
    inverse = np.linalg.inv(np.eye(40) + weighted @ directions)
    right = inverse @ (start + weighted @ read)
    assert readings.amounts() == pytest.approx(right)
    mean, variance = readings.expect(directions[0] + 1)
    assert mean == pytest.approx((directions[0] + 1) @ right)
    assert variance == pytest.approx((directions[0] + 1) @ inverse @ (directions[0] + 1))


def test_an_answer_that_is_no_number_is_read_as_what_it_says_on_average() -> None:
    """That a normal draw is above its mean says sqrt(2 / pi) of its deviation."""
    readings, along = _Readings(np.zeros(9)), np.full(9, 0.5)
    readings.learn(along, lambda values: (values > 0).astype(np.float64))
    mean, variance = readings.expect(along)
    assert mean == pytest.approx(1.5 * (2 / np.pi) ** 0.5, rel=0.05)
    assert variance == pytest.approx(2.25 * (1 - 2 / np.pi), rel=0.05)
    readings.learn(along, np.ones_like)  # says nothing
    assert readings.expect(along) == pytest.approx((mean, variance), rel=0.01)
