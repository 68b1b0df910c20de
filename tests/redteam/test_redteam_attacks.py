"""Each attack by itself: what it sends, and that it knows only what it is sent."""

from collections.abc import Callable, Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from heldout.redteam.attacks import ATTACKS, Target
from heldout.redteam.boards import Answer
from heldout.redteam.releases import COPIED, Run

NOTHING = Answer(score=None)
SPOILING = tuple(
    name for name in ATTACKS if name.startswith(("slow", "10", "20", "at the", "jumps", "sandb"))
)


def published(score: float | None, other: float | None = None) -> Answer:
    return Answer(score=score, other=other)


def target_of(queries: int, submissions: int, *, above: float = 0.0, noise: float = 0.0) -> Target:
    """Systems of 0.5 in the mean; the best baseline lies `above` them."""
    typical = np.linspace(0.25, 0.75, queries)
    return Target(
        submissions=submissions,
        typical=typical,
        sure=np.arange(queries - queries // 4, queries),
        unit=0.02,
        baseline=0.5 + above,
        noise=noise,
        margin=lambda error: 2 * error,
    )


def drive(
    attack: str, target: Target, answers: Sequence[Answer], *, seed: int = 0, most: int = 10_000
) -> list[Run]:
    """All that an attack sends when it is given these answers, over and over."""
    return react(attack, target, lambda n, _: answers[n % len(answers)], seed=seed, most=most)


def react(
    attack: str,
    target: Target,
    answer: Callable[[int, Run], Answer],
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
        assert len(sent) == submissions
        assert all(run.shape == (queries,) and run.dtype == np.int8 for run in sent)
        assert {int(choice) for run in sent for choice in run} <= {-1, 0, 1, COPIED}


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_same_seed_and_answers_send_the_same_bytes(attack: str) -> None:
    target = target_of(60, 12, above=-0.2)
    one, again, other = (drive(attack, target, MIXED, seed=seed) for seed in (0, 0, 1))
    assert bytes_of(one) == bytes_of(again)
    assert bytes_of(one) != bytes_of(other)


LISTENERS = [name for name in ATTACKS if name not in ("none", "best of n")]


@pytest.mark.parametrize("attack", LISTENERS)
def test_an_attack_goes_by_what_it_is_sent(attack: str) -> None:
    target = target_of(150, 40, above=-0.2)

    def say_luck(_: int, run: Run) -> Answer:
        return published(float(run[:75].sum()))

    def say_other_luck(_: int, run: Run) -> Answer:
        return published(float(run[75:].sum()))

    one, other = react(attack, target, say_luck), react(attack, target, say_other_luck)
    assert one[0].tobytes() == other[0].tobytes()
    assert bytes_of(one) != bytes_of(other)


@pytest.mark.parametrize("attack", ["none", "best of n"])
def test_whoever_does_not_listen_sends_the_same_whatever_is_said(attack: str) -> None:
    target = target_of(30, 8)
    assert bytes_of(drive(attack, target, MIXED)) == bytes_of(drive(attack, target, [NOTHING]))


def test_no_attack_repeats_its_run() -> None:
    sent = drive("none", target_of(40, 5), [published(0.1), published(0.9)])
    assert all((run == sent[0]).all() for run in sent)


# votes


@pytest.mark.parametrize("attack", ["sign vote", "weighted vote"])
def test_a_vote_elects_what_was_above_chance(attack: str) -> None:
    scores = [0.9, 0.1, 0.8, 0.3, 0.6]
    *probes, final = drive(attack, target_of(101, 6), [published(s) for s in scores])
    lucks = np.array(scores) - np.mean(scores)
    weights = np.sign(lucks) if attack == "sign vote" else lucks
    votes = sum(weight * run for weight, run in zip(weights, probes, strict=True))
    decided = np.abs(votes) > 1e-6
    assert decided.sum() > 60
    assert (final[decided] == np.sign(votes[decided])).all()


def test_no_answer_at_all_is_a_vote_against_where_others_were_published() -> None:
    answers = [published(0.9), NOTHING, NOTHING, NOTHING]
    *probes, final = drive("weighted vote", target_of(200, 5), answers)
    against = sum(-run for run in probes[1:])
    assert (final == np.sign(probes[0] + against / 3 * 0.999)).all()


@pytest.mark.parametrize("attack", LISTENERS)
def test_a_number_beside_the_score_counts_as_far_as_it_says_something(attack: str) -> None:
    """One without noise is as good as the score; one of other queries is as good as silence."""
    scores = [0.9, 0.1, 0.2, 0.8]
    beside = [published(None, score) for score in scores]
    exact, other = (target_of(99, 40, noise=noise) for noise in (0.0, np.inf))
    if attack != "copies":  # which also goes by whether there is a score
        ranked = drive(attack, exact, [published(score) for score in scores])
        assert bytes_of(ranked) == bytes_of(drive(attack, exact, beside))
    assert bytes_of(drive(attack, other, beside)) == bytes_of(drive(attack, other, [NOTHING]))


def test_a_number_says_a_run_s_luck_in_u_and_one_with_noise_says_less() -> None:
    """By Bayes' rule, for a luck of sd u/2: with noise of the same size one half of it."""
    target = target_of(50, 4, noise=0.01)
    assert target.luck(published(0.53, 0.9), 0.5) == pytest.approx(1.5)
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


# climbing


def test_a_climber_goes_on_from_what_rose_and_back_from_what_did_not() -> None:
    answers = [published(score) for score in (0.5, 0.6, 0.6)]
    sent = drive("hill-climbing", target_of(100, 5), [*answers, NOTHING, NOTHING])
    assert (sent[1] != sent[0]).sum() == 2  # 2% of 100
    assert (sent[2] != sent[1]).sum() == 2  # it rose: on from there
    assert (sent[3] != sent[1]).sum() == 2  # it did not rise: from there again
    assert (sent[4] == sent[1]).all()  # the best of all, at the end


def test_a_decoder_asks_for_one_query_at_a_time_and_for_each_once() -> None:
    sent = drive("decoding", target_of(12, 14), [published(0.5)])
    asked = [int(np.flatnonzero(run != sent[0])[0]) for run in sent[1:-1]]
    assert all((run != sent[0]).sum() == 1 for run in sent[1:-1])
    assert sorted(asked) == list(range(12))
    assert (sent[-1] == sent[0]).all()


def test_a_decoder_keeps_what_it_has_read() -> None:
    rising = [published(0.1 * n) for n in range(13)]
    sent = drive("decoding", target_of(12, 14), rising)
    assert (sent[-1] == -sent[0]).all()


def test_whoever_asks_alone_answers_one_query_both_ways_and_then_all() -> None:
    target = target_of(12, 25)
    sent = drive("single queries", target, [published(0.4), published(0.1)])
    assert all(np.abs(run).sum() == 1 for run in sent[:24])
    assert all((one == -other).all() for one, other in zip(sent[:24:2], sent[1:24:2], strict=True))
    assert sorted(int(np.flatnonzero(run)[0]) for run in sent[:24:2]) == list(range(12))
    assert (sent[24] == 1).all()  # what was asked first always scored more


def test_labels_that_were_not_read_are_guessed() -> None:
    *_, final = drive("single queries", target_of(200, 5), [NOTHING])
    assert 60 < (final == 1).sum() < 140


# low starts


def spoilt(run: Run) -> set[int]:
    return set(np.flatnonzero(run == 0).tolist())


@pytest.mark.parametrize("attack", SPOILING)
def test_a_low_start_lies_near_the_baseline_and_the_end_spoils_nothing(attack: str) -> None:
    target = target_of(400, 81, above=-0.2)
    sent = drive(attack, target, [published(0.5), NOTHING])
    level = target.typical[sent[0] != 0].sum() / 400
    assert target.baseline <= level + 1e-9
    assert level < target.baseline + 0.1
    assert (sent[-1] != 0).all()


@pytest.mark.parametrize("attack", SPOILING)
@pytest.mark.parametrize("above", [0.0, 0.1])
def test_where_the_baseline_is_as_good_there_is_nothing_to_spoil(attack: str, above: float) -> None:
    sent = drive(attack, target_of(60, 12, above=above), MIXED)
    assert all((run != 0).all() for run in sent)


@pytest.mark.parametrize("attack", [name for name in SPOILING if "sure" in name])
def test_the_sure_queries_are_spoilt_first(attack: str) -> None:
    target = target_of(400, 81, above=-0.4)
    first = spoilt(drive(attack, target, [NOTHING])[0])
    sure = set(target.sure.tolist())
    assert sure <= first or first <= sure
    assert len(first & sure) >= 50
    plain = spoilt(drive(attack.removesuffix(", sure"), target, [NOTHING])[0])
    assert len(plain & sure) < len(sure) < len(plain)


@pytest.mark.parametrize(("attack", "names"), [("10 names", 10), ("20 names, sure", 20)])
def test_stairs_open_the_same_queries_for_all_names(attack: str, names: int) -> None:
    sent = drive(attack, target_of(300, 4 * names + 1, above=-0.3), MIXED)
    before: set[int] | None = None
    for step in range(4):
        here = sent[names * step : names * (step + 1)]
        closed = spoilt(here[0])
        assert all(spoilt(run) == closed for run in here)
        assert before is None or closed < before
        assert len({run.tobytes() for run in here}) == names  # their coins differ
        before = closed
    assert before == set()


def test_stairs_elect_the_coins_of_those_that_were_lucky_at_a_step() -> None:
    """Of ten names with one run each, one is published: its whole run has most of the weight."""
    target = target_of(200, 11)
    sent = react("10 names", target, lambda n, _: published(0.9) if n == 3 else NOTHING)
    agree = [(sent[-1] == run).mean() for run in sent[:10]]
    assert max(agree) == agree[3] > 0.9


def test_a_slow_ramp_opens_a_little_more_each_time_and_draws_half_of_its_coins_again() -> None:
    sent = drive("slow ramp", target_of(400, 41, above=-0.3), MIXED)
    counts = [len(spoilt(run)) for run in sent[:-1]]
    falls = -np.diff(counts)
    assert falls.min() >= 0
    assert np.ptp(falls) <= 1
    for one, other in pairwise(sent[20:40]):
        both = (one != 0) & (other != 0)
        assert 0.1 < (one != other)[both].mean() < 0.4  # a quarter of them


def test_a_sandbagger_spoils_less_and_less_and_climbs_from_the_vote() -> None:
    sent = drive("sandbagging", target_of(200, 50, above=-0.3), [NOTHING])
    counts = [len(spoilt(run)) for run in sent]
    assert counts[:30] == sorted(counts[:30], reverse=True)
    assert counts[0] > counts[15] > counts[29] == 0
    assert all((run != sent[30]).sum() == 4 for run in sent[31:-1])  # 2% of 200
    assert (sent[-1] == sent[30]).all()


@pytest.mark.parametrize("attack", ["at the edge", "at the edge, sure", "jumps", "jumps, sure"])
def test_edge_runs_rise_step_by_step_by_the_margin(attack: str) -> None:
    target = target_of(400, 200, above=-0.3)
    sent = drive(attack, target, [NOTHING])
    count = next(n for n, run in enumerate(sent) if (run != 0).all())
    levels = [target.typical[run != 0].sum() / 400 for run in sent[:count]]
    rises = np.diff([target.baseline, *levels])
    height = 1.5 if "jumps" in attack else 1.0
    least = height * 2 * 0.5 * target.unit  # two standard errors of the coins that were drawn again
    assert count > 3
    assert rises[1:].min() >= least
    assert rises.max() < 3 * least


def test_an_edge_run_that_was_published_votes_for_what_changed() -> None:
    target = target_of(400, 200, above=-0.3)
    count = next(
        n for n, run in enumerate(drive("at the edge", target, [NOTHING])) if (run != 0).all()
    )
    agree = []
    for lucky in range(1, count):
        answers = [published(0.5) if n == lucky else NOTHING for n in range(200)]
        sent = drive("at the edge", target, answers)
        change = np.where(sent[lucky - 1] == 0, 0, sent[lucky] - sent[lucky - 1])
        asked = change != 0
        agree.append((np.sign(change[asked]) == sent[count + 1][asked]).mean())
    assert min(agree) > 0.75


# copies


@pytest.mark.parametrize("attack", [name for name in ATTACKS if "cop" in name])
def test_a_copy_of_the_baseline_gives_way_part_by_part(attack: str) -> None:
    sent = drive(attack, target_of(200, 60, above=-0.3), [NOTHING])
    copied = [set(np.flatnonzero(run == COPIED).tolist()) for run in sent]
    parts = copied.index(set()) + 1
    before = set(range(200))
    for run, left in zip(sent[:parts], copied[:parts], strict=True):
        assert left < before
        assert len(before - left) in (200 // parts, 200 // parts + 1)
        before = left
        assert (run != 0).all()
    for one, other in pairwise(sent[:parts]):
        kept = (one != COPIED).nonzero()
        assert (one[kept] == other[kept]).all()  # an answer is about the new part alone
    assert all(not left for left in copied[parts:])


def test_every_attack_says_what_it_does() -> None:
    assert len({attack.about for attack in ATTACKS.values()}) == len(ATTACKS)
