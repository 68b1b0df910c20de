"""The sequential mode: rules, laws, and how often they err."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heldout.judging.campaign.drawing import Pair, meeting_order, plan_batch, search
from heldout.judging.campaign.judgments import Judgment, PairVotes, count_votes
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.labels import find_strongest, find_unbeaten

_SETTINGS = Settings(name="c", mode="sequential", lead=2, cap=7)


def pool(query: str, *docs: str, known: str | None = None) -> Pool:
    return Pool(
        query=query, candidates=tuple(Candidate(doc=doc, known=doc == known) for doc in docs)
    )


def vote(preferred: str | None, one: str, other: str, *, task: str = "t", n: int = 1) -> Judgment:
    return Judgment(
        query="q",
        left=one,
        right=other,
        preferred=preferred,
        reason="same" if preferred is None else None,
        worker="w9" if task == "bad" else f"w{n}",
        task=task,
        position=n,
    )


def next_pairs(
    pools: list[Pool], judged: list[Judgment], *, planned: dict[Pair, int] | None = None
) -> list[tuple[Pair, int]]:
    return list(plan_batch(pools, judged, _SETTINGS, planned=planned or {}).items())


def votes_of(first: int, second: int) -> PairVotes:
    return PairVotes(first=first, second=second)


def test_the_best_so_far_meets_one_challenger_after_another() -> None:
    pools = [pool("q", "a", "b", "c", known="b")]
    one, two, three = meeting_order(pools[0])
    judged: list[Judgment] = []
    (wanted,) = next_pairs(pools, judged)
    assert wanted == (("q", *sorted((one, two))), 2)
    judged += [vote(one, one, two, n=1), vote(two, one, two, n=2)]
    (wanted,) = next_pairs(pools, judged)
    assert wanted == (("q", *sorted((one, two))), 2)
    judged += [vote(two, one, two, n=3), vote(two, one, two, n=4)]
    (wanted,) = next_pairs(pools, judged)
    assert wanted[0] == ("q", *sorted((two, three)))
    judged += [vote(two, two, three, n=5), vote(two, three, two, n=6)]
    assert next_pairs(pools, judged) == []
    assert find_unbeaten(["a", "b", "c"], count_votes(judged)["q"]).best == (two,)


def test_luck_leaves_the_known_answer_its_share() -> None:
    """Judges who cannot tell keep it as often as any other passage, although it is known."""
    random = np.random.default_rng(6)
    kept = 0
    for number in range(2000):
        one = pool(f"q{number}", "a", "b", "c", "d", known="a")
        order = meeting_order(one)
        votes: dict[tuple[str, str], PairVotes] = {}
        while (found := search(order, votes, lead=1, cap=1)).challenger is not None:
            pair = (min(found.best, found.challenger), max(found.best, found.challenger))
            won = int(random.integers(2))
            votes[pair] = votes_of(won, 1 - won)
        kept += found.best == "a"
    assert abs(kept / 2000 - 0.25) < 4 * (0.25 * 0.75 / 2000) ** 0.5


def test_at_the_cap_who_is_ahead_wins_and_nobody_needs_a_lead() -> None:
    short = search(["a", "b"], {("a", "b"): votes_of(1, 2)}, lead=3, cap=3)
    assert (short.best, short.challenger, short.wanted) == ("b", None, 0)
    even = search(["b", "a"], {("a", "b"): votes_of(2, 2)}, lead=3, cap=4)
    assert even.best == "b"
    open_ = search(["a", "b"], {("a", "b"): votes_of(3, 3)}, lead=3, cap=7)
    assert (open_.challenger, open_.wanted) == ("b", 1)


def test_a_pair_that_nobody_can_judge_comes_to_an_end() -> None:
    pools = [pool("q", "a", "b", known="a")]
    judged = [vote(None, "a", "b", n=n) for n in range(1, 7)]
    (wanted,) = next_pairs(pools, judged)
    assert wanted[1] == 1
    assert next_pairs(pools, [*judged, vote(None, "a", "b", n=7)]) == []


def test_answers_beside_a_failed_test_are_asked_for_again() -> None:
    pools = [pool("q", "a", "b", known="a")]
    judged = [
        vote("b", "a", "b", n=1),
        vote("b", "a", "b", task="bad", n=9),
        vote("b", "a", "b", task="bad", n=8),
    ]
    lying = Judgment(
        query="q",
        left="a",
        right="x",
        preferred="x",
        answer="a",
        worker="w9",
        task="bad",
        position=3,
    )
    (wanted,) = next_pairs(pools, [*judged, lying])
    assert wanted[1] == 1


def test_a_pair_that_waits_in_tasks_is_not_drawn_again() -> None:
    pools = [pool("q", "a", "b", known="a"), pool("r", "c", "d", known="c")]
    planned = {("q", "a", "b"): 2}
    assert [pair for pair, _ in next_pairs(pools, [], planned=planned)] == [("r", "c", "d")]
    one_answer = [vote("a", "a", "b", n=1)]
    found = next_pairs(pools, one_answer, planned=planned)
    assert [pair[0] for pair, _ in found] == ["r"]
    both = [*one_answer, vote("b", "a", "b", n=2)]
    assert {pair[0] for pair, _ in next_pairs(pools, both, planned=planned)} == {
        "q",
        "r",
    }


def test_who_was_shown_more_often_is_not_worse_for_having_lost_more() -> None:
    """Pruned pools: the best meets the good ones too, and loses more often than who left early."""
    votes = {("best", f"bad{n}"): votes_of(1, 0) for n in range(6)}
    votes |= {("best", f"good{n}"): votes_of(int(n > 1), int(n <= 1)) for n in range(6)}
    votes |= {("early", f"good{n}"): votes_of(0, 1) for n in range(1)}
    votes |= {(f"bad{n}", f"good{n}"): votes_of(0, 1) for n in range(6)}
    names = sorted({one for pair in votes for one in pair})
    sorted_votes = {
        (min(pair), max(pair)): found if pair[0] < pair[1] else votes_of(found.second, found.first)
        for pair, found in votes.items()
    }
    best = find_unbeaten(names, sorted_votes).best
    assert best == find_strongest(names, sorted_votes).best
    assert "early" not in best


def test_absurd_pools_want_nothing() -> None:
    assert next_pairs([], []) == []
    assert next_pairs([pool("q", "a")], []) == []
    assert next_pairs([pool("q", "a", "b")], [vote("a", "a", "z")] * 9)[0][1] == 2


@given(
    st.permutations(["a", "b", "c", "d", "e"]),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 10_000),
)
def test_a_whole_search_finds_who_never_lost_within_the_cap(
    order: list[str], lead: int, cap: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    votes: dict[tuple[str, str], PairVotes] = {}
    while (found := search(order, votes, lead=lead, cap=cap)).challenger is not None:
        assert found.wanted >= 1
        pair = (min(found.best, found.challenger), max(found.best, found.challenger))
        won = int(rng.binomial(found.wanted, 0.6))
        before = votes.get(pair, votes_of(0, 0))
        votes[pair] = votes_of(before.first + won, before.second + found.wanted - won)
    assert len(votes) == len(order) - 1
    assert all(one.total <= cap for one in votes.values())
    assert all(abs(one.first - one.second) <= lead for one in votes.values())
    if all(one.first != one.second for one in votes.values()):
        assert find_unbeaten(sorted(order), votes).best == (found.best,)
    assert found.best in find_unbeaten(sorted(order), votes).best
