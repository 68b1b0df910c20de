"""Each attack by itself: what it sends, and that it knows only what it was told."""

import numpy as np
import pytest

from heldout.redteam.attacks import ATTACKS, Heard, Published, Target
from heldout.redteam.exchange import Run, guess


def target_of(queries: int, submissions: int, *, heard: Heard = 0.5) -> Target:
    rng = np.random.default_rng(1)
    others = [Published(run=guess(rng, queries), heard=heard) for _ in range(10)]
    return Target(queries=queries, submissions=submissions, published=others)


def drive(attack: str, target: Target, answers: list[Heard], *, seed: int = 0) -> list[Run]:
    """All that an attack sends when it is told these answers, over and over."""
    moves = ATTACKS[attack].moves(target, np.random.default_rng(seed))
    sent = [next(moves).copy()]
    try:
        while True:
            sent.append(moves.send(answers[(len(sent) - 1) % len(answers)]).copy())
    except StopIteration:
        return sent


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("submissions", [2, 3, 40])
@pytest.mark.parametrize("queries", [1, 7, 150])
def test_an_attack_sends_whole_runs_and_as_many_as_it_may(
    attack: str, submissions: int, queries: int
) -> None:
    sent = drive(attack, target_of(queries, submissions), [0.5, None, 0.6, 0.1])
    assert len(sent) == submissions
    assert all(run.shape == (queries,) and run.dtype == np.int8 for run in sent)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_that_is_told_nothing_goes_on(attack: str) -> None:
    assert len(drive(attack, target_of(20, 9, heard=None), [None])) == 9


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_same_seed_and_answers_send_the_same_bytes(attack: str) -> None:
    target = target_of(60, 10)
    one, again, other = (drive(attack, target, [0.3, 0.5, 0.4], seed=s) for s in (0, 0, 1))
    assert b"".join(run.tobytes() for run in one) == b"".join(run.tobytes() for run in again)
    if attack != "blending":  # with equal published scores nothing but the weights is drawn
        assert b"".join(map(bytes, one)) != b"".join(map(bytes, other))


def test_no_attack_repeats_its_run() -> None:
    sent = drive("none", target_of(40, 5), [0.1, 0.9])
    assert all((run == sent[0]).all() for run in sent)


def test_boosting_ends_with_the_majority_of_what_was_above_chance() -> None:
    answers: list[Heard] = [0.9, 0.1, 0.9, 0.1, 0.9]
    *probes, final = drive("boosting", target_of(101, 6), answers)
    votes = sum(
        (1 if said > 0.5 else -1) * run
        for said, run in zip([0.9, 0.1, 0.9, 0.1, 0.9], probes, strict=True)
    )
    assert (final == np.sign(votes)).all()


def test_boosting_against_silence_keeps_its_first_run() -> None:
    sent = drive("boosting", target_of(50, 8), [0.5, *[None] * 7])
    assert (sent[-1] == sent[0]).all()


def test_a_climber_goes_on_from_what_rose_and_back_from_what_did_not() -> None:
    sent = drive("hill-climbing", target_of(100, 4), [0.5, 0.6, 0.6, None])
    assert (sent[1] != sent[0]).sum() == 2  # 2% of 100
    assert (sent[2] != sent[1]).sum() == 2  # it rose: on from there
    assert (sent[3] != sent[1]).sum() == 2  # it did not rise: from there again


def test_a_decoder_asks_for_one_query_at_a_time_and_for_each_once() -> None:
    sent = drive("decoding", target_of(12, 13), [0.5])
    asked = [int(np.flatnonzero(run != sent[0])[0]) for run in sent[1:]]
    assert all((run != sent[0]).sum() == 1 for run in sent[1:])
    assert sorted(asked) == list(range(12))


def test_a_decoder_keeps_what_it_has_read() -> None:
    sent = drive("decoding", target_of(12, 13), [0.1 * n for n in range(13)])
    assert (sent[-1] == -sent[0]).all()


def test_a_sandbagger_spoils_less_and_less_and_nothing_at_the_end() -> None:
    sent = drive("sandbagging", target_of(200, 40), [0.01 * n for n in range(1, 40)])
    answered = [int((run != 0).sum()) for run in sent]
    assert answered[:30] == [6 * n for n in range(1, 31)]
    assert answered[30:] == [200] * 10


def test_whoever_asks_alone_answers_one_query_both_ways_and_then_all() -> None:
    sent = drive("partial runs", target_of(12, 25), [0.4, 0.1])
    assert all(np.abs(run).sum() == 1 for run in sent[:24])
    assert all((one == -other).all() for one, other in zip(sent[:24:2], sent[1:24:2], strict=True))
    assert sorted(int(np.flatnonzero(run)[0]) for run in sent[:24:2]) == list(range(12))
    assert (sent[24] == 1).all()  # what was asked first always scored more


def test_only_attacks_that_say_so_leave_a_query_unanswered() -> None:
    for attack in ATTACKS:
        whole = all((run != 0).all() for run in drive(attack, target_of(50, 8), [0.5, 0.6]))
        assert whole == (attack not in ("sandbagging", "partial runs", "spoilt runs"))


def test_a_sandbagger_votes_for_the_changes_after_which_the_score_rose_most() -> None:
    probes = drive("sandbagging", target_of(100, 3), [0.1, 0.9])[:2]
    (*_, final) = drive("sandbagging", target_of(100, 3), [0.1, 0.9])
    growth = 0.9 / 90
    rises = [0.1 - growth * 45, 0.8 - growth * 45]
    votes = rises[0] * probes[0] + rises[1] * (probes[1] - probes[0])
    assert (final[votes != 0] == np.sign(votes[votes != 0])).all()


def test_blending_begins_with_the_vote_of_the_published_runs_by_their_scores() -> None:
    rng = np.random.default_rng(2)
    others = [Published(run=guess(rng, 99), heard=0.1 * n) for n in range(9)]
    target = Target(queries=99, submissions=2, published=others)
    first = drive("blending", target, [0.5])[0]
    votes = sum(np.sign(n - 4) * other.run for n, other in enumerate(others))
    decided = votes != 0
    assert (first[decided] == np.sign(votes)[decided]).all()


def test_an_entry_without_a_score_has_no_vote() -> None:
    rng = np.random.default_rng(2)
    silent = [Published(run=guess(rng, 30), heard=None) for _ in range(5)]
    told = [Published(run=guess(rng, 30), heard=score) for score in (0.1, 0.9)]
    with_, without = (
        drive("blending", Target(queries=30, submissions=2, published=rows), [0.5])[0]
        for rows in (told + silent, told)
    )
    assert (with_ == without).all()


def test_every_attack_says_what_it_does() -> None:
    assert all(attack.about for attack in ATTACKS.values())
