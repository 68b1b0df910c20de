"""Contests, tournaments and labels: the rules, and the absurd cases."""

from itertools import combinations
from math import comb

from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy.stats import binomtest

from heldout.judging.campaign.judgments import Judgment, PairVotes, count_votes
from heldout.judging.campaign.pools import Candidate, Pool, stand_for
from heldout.judging.labels.contests import PERFECT, find_cycles, first_documents, hold_contests
from heldout.judging.labels.labels import count_pairings, make_labels, play

_PASSAGES = ["a", "b", "c", "d", "e"]
_JUDGED = st.lists(
    st.tuples(st.sampled_from(list(combinations(_PASSAGES, 2))), st.booleans()), max_size=30
)


def vote(query: str, preferred: str, other: str) -> Judgment:
    return Judgment(query=query, left=other, right=preferred, preferred=preferred)


def pool(query: str, *docs: str, known: str | None = None) -> Pool:
    return Pool(
        query=query, candidates=tuple(Candidate(doc=doc, known=doc == known) for doc in docs)
    )


def test_queries_are_counted_and_not_votes() -> None:
    judged = [vote("q1", "x", "y")] * 5 + [vote("q2", "y", "x"), vote("q3", "x", "y")]
    judged += [vote("q4", "x", "y"), vote("q4", "y", "x")]
    tops = {"A": dict.fromkeys(("q1", "q2", "q3", "q4"), ("x",))}
    tops |= {"B": dict.fromkeys(("q1", "q2", "q3", "q4"), ("y",))}
    found = hold_contests(first_documents(tops, None, same={}), count_votes(judged))
    (one,) = found.contests
    assert (one.a_preferred, one.b_preferred, one.drawn) == (2, 1, 1)
    assert one.share == 2 / 3
    assert found.wins == {"A": 1, "B": 0}
    oracle = binomtest(2, 3)
    interval = oracle.proportion_ci(0.95, "exact")
    assert one.p == oracle.pvalue
    assert abs(one.low - interval.low) + abs(one.high - interval.high) < 1e-12


def test_what_cannot_be_told_is_none_and_not_zero() -> None:
    tops = {"A": {"q1": ("x",)}, "B": {"q1": ("x",)}}
    (one,) = hold_contests(first_documents(tops, None, same={}), {}).contests
    assert (one.queries, one.p, one.share, one.p_bonferroni) == (0, None, None, None)


def test_the_perfect_run_shows_the_known_answer_and_equal_texts_are_one_passage() -> None:
    twice = Pool(
        query="q",
        candidates=(Candidate(doc="k", known=True, same=("z",)), Candidate(doc="x")),
    )
    same = stand_for([twice])
    first = first_documents({"A": {"q": ("z",)}, "B": {"q": ("x",)}}, {"q": ["k"]}, same=same)
    assert first == {PERFECT: {"q": "k"}, "A": {"q": "k"}, "B": {"q": "x"}}
    votes = count_votes([vote("q", "x", "z"), vote("q", "k", "z")], same=same)
    assert votes == {"q": {("k", "x"): PairVotes(first=0, second=1)}}
    by_pair = {(one.a, one.b): one for one in hold_contests(first, votes).contests}
    assert by_pair[PERFECT, "A"].same == 1
    assert by_pair[PERFECT, "B"].b_preferred == 1
    assert make_labels([twice], votes).labels == {"q": ("x",)}


def test_a_circle_of_three_leaves_three_labels() -> None:
    judged = [vote("q", "a", "b"), vote("q", "b", "c"), vote("q", "c", "a")]
    judged += [vote("q", best, "d") for best in "abc"]
    found = make_labels([pool("q", *"abcd")], count_votes(judged))
    assert found.labels == {"q": ("a", "b", "c")}
    assert (found.cycles, found.count) == (1, 3)
    pairings = count_pairings(found.labels, count_votes(judged))
    assert (pairings.won, pairings.pairs) == (6, 6)
    worst = count_pairings({"q": ("d",)}, count_votes(judged))
    assert (worst.won, worst.pairs, worst.label_won) == (0, 3, 0)
    assert (pairings.label_won, pairings.label_pairings) == (6, 9)


def test_losers_are_dropped_and_wins_counted_among_those_who_tie() -> None:
    # a and b win three each; a beat b, so a is best
    order = [("a", "b"), ("a", "c"), ("a", "d"), ("e", "a"), ("b", "c"), ("b", "d"), ("b", "e")]
    order += [("c", "d"), ("c", "e"), ("d", "e")]
    found = play(_PASSAGES, count_votes([vote("q", *pair) for pair in order])["q"])
    assert found.rounds[0] == {"a": 3, "b": 3, "c": 2, "d": 1, "e": 1}
    assert found.rounds[1:] == ({"a": 1, "b": 0},)
    assert (found.best, found.cycle) == (("a",), False)


def test_queries_without_votes_keep_their_label_and_a_draw_is_no_circle() -> None:
    drawn = [vote("q", "a", "b"), vote("q", "b", "a")]
    pools = [pool("q", "a", "b"), pool("r", "a", "b", known="b"), pool("s", "a")]
    found = make_labels(pools, count_votes(drawn))
    assert found.labels == {"q": ("a", "b"), "r": ("b",)}
    assert (found.cycles, found.several, found.unvoted) == (0, 1, ("r", "s"))


@given(judged=_JUDGED)
def test_who_beats_all_others_is_best_and_names_do_not_matter(
    judged: list[tuple[tuple[str, str], bool]],
) -> None:
    rows = [vote("q", *(pair if first else pair[::-1])) for pair, first in judged]
    votes = count_votes(rows).get("q", {})
    found = play(_PASSAGES, votes)
    assert found.best
    for passage in _PASSAGES:
        beaten = {
            other
            for other in _PASSAGES
            if (pair := votes.get((min(passage, other), max(passage, other))))
            and (pair.first > pair.second if passage < other else pair.second > pair.first)
        }
        if len(beaten) == len(_PASSAGES) - 1:
            assert found.best == (passage,)
    renamed = {"a": "e", "b": "d", "c": "c", "d": "b", "e": "a"}
    turned = [vote("q", renamed[str(r.preferred)], renamed[str(r.other)]) for r in rows]
    other = play(_PASSAGES, count_votes(turned).get("q", {}))
    assert set(other.best) == {renamed[one] for one in found.best}
    assert other.cycle == found.cycle


def test_queries_keep_the_error_rate_that_votes_do_not() -> None:
    # Two equally good runs; on each query people lean one way or the other, three vote.
    rng = Generator(PCG64(6))
    wrong = {"queries": 0, "votes": 0}
    for _ in range(600):
        leaning = rng.beta(1.5, 1.5, 100)
        first = rng.binomial(3, leaning)
        votes = {
            str(n): {("x", "y"): PairVotes(first=int(one), second=3 - int(one))}
            for n, one in enumerate(first)
        }
        shown = {"A": dict.fromkeys(votes, "x"), "B": dict.fromkeys(votes, "y")}
        (contest,) = hold_contests(shown, votes).contests
        wrong["queries"] += (contest.p or 0) <= 0.05
        wrong["votes"] += binomtest(int(first.sum()), 300).pvalue <= 0.05
    assert wrong["queries"] / 600 <= 0.06
    assert wrong["votes"] / 600 > 0.1


@given(
    beats=st.lists(st.booleans(), min_size=10, max_size=10),
    order=st.permutations(_PASSAGES),
)
def test_circles_are_those_of_the_wins_whatever_the_order_of_runs(
    beats: list[bool], order: list[str]
) -> None:
    pairs = dict(zip(combinations(_PASSAGES, 2), beats, strict=True))

    def beaten(a: str, b: str) -> bool:
        return pairs[a, b] if (a, b) in pairs else not pairs[b, a]

    first = {run: {f"{a}{b}": run for a, b in pairs if run in (a, b)} for run in order}
    votes = {
        f"{a}{b}": {(a, b): PairVotes(first=int(won), second=int(not won))}
        for (a, b), won in pairs.items()
    }
    found = find_cycles(hold_contests(first, votes))
    assert all(beaten(a, b) and beaten(b, c) and beaten(c, a) for a, b, c in found)
    # Kendall and Babington Smith 1940: circles follow from the wins alone
    wins = [sum(beaten(run, other) for other in order if other != run) for run in order]
    assert len(found) == comb(5, 3) - sum(comb(won, 2) for won in wins)
    assert len({frozenset(one) for one in found}) == len(found)


def test_votes_on_passages_that_no_pool_has_decide_nothing() -> None:
    votes = count_votes([vote("q", "stranger", "a"), vote("q", "stranger", "b")])
    found = make_labels([pool("q", "a", "b", known="a")], votes)
    assert (found.labels, found.unvoted) == ({"q": ("a",)}, ("q",))
