"""Runs scored on two kinds of labels: scores, taus, redrawn judgments, runs left out."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from heldout.errors import InputError
from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import Find, Tournament, find_strongest, make_labels, play
from heldout.judging.labels.rescoring import (
    LeftOut,
    ScoredLabels,
    grade,
    leave_each_out,
    means_of,
    perfect_ranks,
    rank_means,
    redraw_labels,
    remove_run,
    rescore,
    score_each,
    score_labels,
)
from heldout.judging.studies.sample import fold_ranks, order_agreement
from heldout.scoring.measures import parse_measure
from heldout.stats.rank_correlation import TauRange, kendall
from heldout.trec.tops import RunPositions

RR = parse_measure("RR@10")
LISTS = st.dictionaries(st.sampled_from("pqrs"), st.permutations("abcdef"), min_size=1)


def places(lists: Mapping[str, Sequence[str]]) -> RunPositions:
    return RunPositions(
        found={query: {doc: n for n, doc in enumerate(docs, 1)} for query, docs in lists.items()},
        retrieved={query: len(docs) for query, docs in lists.items()},
    )


def scored(name: str, labels: Mapping[str, Sequence[str]], measure: str = "RR@10") -> ScoredLabels:
    return ScoredLabels(name=name, labels=grade(labels), measure=parse_measure(measure))


def rng() -> Generator:
    return Generator(PCG64(1))


def first(a: str, b: str) -> dict[tuple[str, str], PairVotes]:
    """One vote for a against b."""
    return {(min(a, b), max(a, b)): PairVotes(first=int(a < b), second=int(a > b))}


@given(lists=LISTS, best=st.dictionaries(st.sampled_from("pqrs"), st.sampled_from("abcdef")))
def test_reciprocal_ranks_are_those_of_the_lists(
    lists: dict[str, list[str]], best: dict[str, str]
) -> None:
    queries = sorted(best)
    if not queries:
        return
    labels = scored("best", {query: (doc,) for query, doc in best.items()})
    found = score_labels({"A": places(lists)}, labels, queries=queries)
    wanted = [
        1 / (lists[query].index(best[query]) + 1) if query in lists else 0.0 for query in queries
    ]
    assert found.tolist() == [wanted]


def test_many_sets_of_labels_give_what_each_gives_alone() -> None:
    runs = {"A": places({"p": "abc", "q": "cab"}), "B": places({"p": "cba"})}
    sets = [[{"a": 1}, {"c": 1, "b": 1}, {"a": 1}], [{"z": 1}, {"a": 2}, {"b": 1}]]
    found = score_each(runs, sets, RR, queries=["p", "q"])
    assert found.shape == (2, 2, 3)
    for draw in range(3):
        alone = ScoredLabels(name="", labels={"p": sets[0][draw], "q": sets[1][draw]}, measure=RR)
        assert found[:, :, draw].tolist() == score_labels(runs, alone, queries=["p", "q"]).tolist()


def test_a_measure_without_a_value_is_an_error_and_not_a_number() -> None:
    labels = scored("labels", {"p": ("z",)}, "FirstRel@10")
    with pytest.raises(InputError, match="missing-scores"):
        score_labels({"A": places({"p": "ab"})}, labels, queries=["p"])


def test_the_perfect_run_scores_1_before_and_what_it_is_worth_after() -> None:
    known = {"p": ["a"], "q": ["b", "c"], "r": ["c"]}
    runs = {
        "A": places({"p": "abc", "q": "abc", "r": "abc"}),
        PERFECT: perfect_ranks(known),
    }
    after = scored("after", {"p": ("a",), "q": ("c",), "r": ("a", "c")})
    found = rescore(runs, scored("before", known), after, rng(), trials=50)
    by_run = {one.run: one for one in found.runs}
    assert by_run[PERFECT].before.value == 1
    assert by_run[PERFECT].after.value == pytest.approx(2 / 3)
    assert by_run[PERFECT].before.t is None
    assert by_run["A"].after.value == pytest.approx((1 + 1 / 3 + 1) / 3)
    assert [one.name for one in found.taus] == ["all", f"all and {PERFECT}"]
    assert found.taus[0].tau is None
    assert found.taus[1].tau == -1


def test_queries_with_labels_of_one_kind_are_left_out_and_counted() -> None:
    runs = {"A": places({"p": "ab"}), "B": places({"p": "ba"})}
    found = rescore(
        runs, scored("before", {"p": "a", "q": "a"}), scored("after", {"p": "b"}), rng(), trials=9
    )
    assert (found.queries, found.left_out) == (1, 1)
    assert found.taus[0].tau == -1
    with pytest.raises(InputError, match="no-common-query"):
        rescore(runs, scored("before", {"x": "a"}), scored("after", {"p": "b"}), rng())


def test_lower_is_better_where_the_measure_says_so() -> None:
    runs = {"A": places({"p": "ab", "q": "ab"}), "B": places({"p": "ba", "q": "ba"})}
    labels = {"p": ("a",), "q": ("a",)}
    found = rescore(
        runs, scored("before", labels), scored("after", labels, "FirstRel@10"), rng(), trials=9
    )
    assert found.runs[0].run == "A"
    assert (found.runs[0].after.value, found.runs[0].after.rank) == (1.0, 1)
    assert found.taus[0].tau == 1


def simulated(queries: int, seed: int) -> tuple[tuple[Pool, ...], Votes, dict[str, RunPositions]]:
    """Pools of four, a vote on each pair that is right with 70%, three runs of known quality."""
    draw = Generator(PCG64(seed))
    pools, votes = [], {}
    lists: dict[str, dict[str, list[str]]] = {run: {} for run in "ABC"}
    for number in range(queries):
        query = f"q{number:04}"
        pools.append(
            Pool(query=query, candidates=tuple(Candidate(doc=doc, runs=("A",)) for doc in "abcd"))
        )
        votes[query] = {
            (x, y): PairVotes(first=int(right), second=int(not right))
            for x, y, right in (
                (x, y, draw.random() < 0.7) for x, y in ("ab", "ac", "ad", "bc", "bd", "cd")
            )
        }
        for run, share in zip("ABC", (0.8, 0.5, 0.2), strict=True):
            docs = list("abcd")
            if draw.random() > share:
                draw.shuffle(docs)
            lists[run][query] = docs
    return tuple(pools), votes, {run: places(found) for run, found in lists.items()}


def test_redrawn_judgments_widen_intervals_and_the_same_seed_gives_the_same() -> None:
    pools, votes, runs = simulated(120, 5)
    labels = scored("after", make_labels(pools, votes).labels)
    before = scored("before", {pool.query: ("a",) for pool in pools})
    found: list[Any] = [
        rescore(
            runs,
            before,
            labels,
            generator,
            redrawn=redraw_labels(pools, votes, draws=30, rng=generator),
            trials=400,
        )
        for generator in (rng(), rng())
    ]
    assert found[0] == found[1]
    for one in found[0].runs:
        assert one.noisy[1] - one.noisy[0] > one.after.bca[1] - one.after.bca[0]
        assert one.label_error
        assert one.after.t[0] < one.after.value < one.after.t[1]
    noise: Any = found[0].noise
    assert 0 < noise.tau <= 1
    assert noise.draws == 30


def test_drawn_labels_tell_how_far_scores_spread_and_not_where_they_lie() -> None:
    runs = {"A": places({"p": "ab", "q": "ab"}), "B": places({"p": "ba", "q": "ba"})}
    labels = scored("labels", {"p": ("a",), "q": ("a",)})
    other = {"p": [("b",)] * 4, "q": [("b",)] * 4}
    found = {one.run: one for one in rescore(runs, labels, labels, rng(), redrawn=other).runs}
    assert found["A"].noisy == (1.0, 1.0)
    assert found["B"].noisy == (0.5, 0.5)
    assert found["A"].label_error == 0
    either = {"p": [("a",), ("b",)] * 2, "q": [("a",), ("b",)] * 2}
    again = {one.run: one for one in rescore(runs, labels, labels, rng(), redrawn=either).runs}
    assert again["A"].label_error == pytest.approx(0.25)


def test_tau_is_printed_without_an_interval() -> None:
    """Percentiles of a bootstrap held the true one in 0 to 12% of samples."""
    assert not {"low", "high"} & {field.name for field in fields(TauRange)}


def test_judgments_are_drawn_as_many_as_there_are() -> None:
    pool = Pool(query="p", candidates=(Candidate(doc="a"), Candidate(doc="b")))
    votes: Votes = {"p": {("a", "b"): PairVotes(first=1, second=1)}}
    drawn = redraw_labels([pool], votes, draws=2000, rng=rng())["p"]
    # Two votes drawn of one for each: as often one of each as twice the same
    assert 0.45 < drawn.count(("a", "b")) / 2000 < 0.55
    assert 0.2 < drawn.count(("a",)) / 2000 < 0.3


def test_a_dozen_sets_of_labels_keep_their_order() -> None:
    run = places({"p": "abcdefghijkl"})
    found = score_each({"A": run}, [[{doc: 1} for doc in "abcdefghijkl"]], RR, queries=["p"])
    assert found[0, 0].tolist() == [*(1 / n for n in range(1, 11)), 0, 0]


def test_unanimous_judges_draw_the_same_labels_and_a_query_without_votes_keeps_its_own() -> None:
    pools = (
        Pool(query="p", candidates=(Candidate(doc="a"), Candidate(doc="b"))),
        Pool(query="q", candidates=(Candidate(doc="a", known=True), Candidate(doc="b"))),
        Pool(query="r", candidates=(Candidate(doc="a"),)),
    )
    votes: Votes = {"p": {("a", "b"): PairVotes(first=0, second=5)}}
    found = redraw_labels(pools, votes, draws=4, rng=rng())
    assert found == {"p": [("b",)] * 4, "q": [("a",)] * 4}


def test_equal_means_share_the_best_rank() -> None:
    assert rank_means([0.5, 0.7, 0.5, 0.1]) == (2, 1, 2, 4)


def test_order_agrees_on_pairs_that_the_run_shows_and_people_decided() -> None:
    run = places({"p": "abcd", "q": "ba", "r": "xyzuvwabcdef"})
    votes: Votes = {
        "p": {
            ("a", "b"): PairVotes(first=2, second=1),
            ("c", "d"): PairVotes(first=0, second=1),
            ("a", "d"): PairVotes(first=1, second=1),
            ("a", "z"): PairVotes(first=1, second=0),
        },
        "q": {("a", "b"): PairVotes(first=0, second=1)},
        "r": {("e", "x"): PairVotes(first=0, second=1)},
        "s": {("a", "b"): PairVotes(first=0, second=1)},
    }
    found = order_agreement(run, votes)
    assert (found.units, found.groups) == (3, 2)
    assert found.value == pytest.approx(2 / 3)
    deep = order_agreement(run, votes, depth=11)
    assert (deep.units, deep.value) == (4, 0.75)
    nothing = order_agreement(run, {})
    assert (nothing.value, nothing.low, nothing.units) == (None, None, 0)


def test_a_text_stands_where_it_is_shown_first() -> None:
    folded = fold_ranks(places({"p": "zab"}), {"p": {"z": "b", "b": "b"}})
    assert folded.found == {"p": {"b": 1, "a": 2}}


def test_the_interval_of_agreement_adds_two_queries_to_those_of_a_mean() -> None:
    run = places({str(n): "ab" for n in range(40)})
    votes = {str(n): first("a", "b") if n % 4 else first("b", "a") for n in range(40)}
    found = order_agreement(run, votes)
    values = np.array([float(n % 4 > 0) for n in range(40)] + [1.0, 0.0])
    error = values.std(ddof=1) / np.sqrt(42)
    assert found.value == 0.75
    assert values.mean() - found.low == pytest.approx(2.0227 * error, rel=1e-4)


def test_leaving_a_run_out_takes_what_it_alone_contributed() -> None:
    pools = (
        Pool(
            query="p",
            candidates=(
                Candidate(doc="k", known=True, runs=("B",)),
                Candidate(doc="o", runs=("A",)),
                Candidate(doc="s", runs=("A", "B")),
            ),
        ),
        Pool(query="q", candidates=(Candidate(doc="o", runs=("A",)),)),
    )
    votes: Votes = {"p": first("o", "k") | first("o", "s") | first("s", "k")}
    gone = Pool(query="r", candidates=tuple(Candidate(doc=doc, runs=("A",)) for doc in "ox"))
    left = remove_run("A", pools, votes)
    assert [[one.doc for one in pool.candidates] for pool in left.pools] == [["k", "s"]]
    assert (left.passages, left.pairs) == (2, 2)
    assert remove_run("B", pools, votes).passages == 0
    runs = {"A": places({"p": "oks"}), "B": places({"p": "sko"})}
    # A query whose label goes with the run is in neither mean
    every, cast = (*pools, gone), {**votes, "r": first("o", "x")}
    after = scored("after", make_labels(every, cast).labels)
    by_run = {one.run: one for one in leave_each_out(runs, every, cast, after)}
    assert by_run["A"].value == 1
    assert by_run["A"].without == pytest.approx(1 / 3)
    assert (by_run["A"].rank, by_run["A"].rank_without) == (1, 2)
    assert (by_run["A"].changed, by_run["A"].tau) == (2, -1)
    assert (by_run["B"].changed, by_run["B"].tau) == (0, 1)


def leave_out_plainly(
    run: str,
    runs: Mapping[str, RunPositions],
    pools: Sequence[Pool],
    votes: Votes,
    after: ScoredLabels,
    *,
    find: Find,
) -> LeftOut | None:
    """Everything done again: all labels, and all scores on all queries."""
    left = remove_run(run, pools, votes)
    without = grade(make_labels(left.pools, left.votes, find=find).labels)
    queries = sorted(query for query in without if after.labels.get(query))
    if not queries:
        return None
    sets = (after, ScoredLabels(name="without", labels=without, measure=after.measure))
    whole, again = (means_of(score_labels(runs, one, queries=queries)) for one in sets)
    place, sign = list(runs).index(run), 1 if after.measure.kind.better == "higher" else -1
    return LeftOut(
        run=run,
        passages=left.passages,
        pairs=left.pairs,
        changed=sum(without.get(query) != one for query, one in after.labels.items()),
        value=float(whole[place]),
        without=float(again[place]),
        rank=rank_means((sign * whole).tolist())[place],
        rank_without=rank_means((sign * again).tolist())[place],
        tau=kendall(whole, again),
    )


def contributed(seed: int) -> tuple[tuple[Pool, ...], Votes, dict[str, RunPositions]]:
    """Pools of first documents; some queries have no known answer, and some pairs no vote."""
    draw = Generator(PCG64(seed))
    runs = {run: {q: draw.permutation([*"abcdef"]).tolist() for q in "pqrst"} for run in "ABCD"}
    pools, votes = [], {}
    for query in "pqrst":
        own: dict[str, list[str]] = {}
        for run, lists in runs.items():
            own.setdefault(lists[query][0], []).append(run)
        known = "a" if draw.random() < 0.6 else None
        docs = sorted({*own, *([] if known is None else [known])})
        pools.append(
            Pool(
                query=query,
                candidates=tuple(
                    Candidate(doc=doc, runs=tuple(own.get(doc, ())), known=doc == known)
                    for doc in docs
                ),
            )
        )
        pairs = [(a, b) for a in docs for b in docs if a < b and draw.random() < 0.7]
        counts = draw.integers(0, 3, (len(pairs), 2)).tolist()
        votes[query] = {
            pair: PairVotes(first=first, second=second)
            for pair, (first, second) in zip(pairs, counts, strict=True)
            if first or second
        }
    return tuple(pools), votes, {run: places(lists) for run, lists in runs.items()}


@given(
    seed=st.integers(0, 10_000),
    find=st.sampled_from([play, find_strongest]),
    measure=st.sampled_from(["RR@10", "FirstRel"]),
)
def test_leaving_each_run_out_gives_what_doing_everything_again_gives(
    seed: int, find: Find, measure: str
) -> None:
    pools, votes, runs = contributed(seed)
    after = scored("after", make_labels(pools, votes, find=find).labels, measure)
    perfect = {PERFECT: perfect_ranks({"p": ("a",)})}
    found = leave_each_out({**runs, **perfect}, pools, votes, after, find=find)
    pooled = sorted({run for pool in pools for one in pool.candidates for run in one.runs})
    wanted = [leave_out_plainly(run, runs, pools, votes, after, find=find) for run in pooled]
    assert list(found) == [one for one in wanted if one is not None]


def test_only_queries_that_lose_a_passage_are_labelled_again() -> None:
    pools, votes, runs = contributed(0)
    after = scored("after", make_labels(pools, votes).labels)
    calls = []

    def find(docs: Sequence[str], cast: Mapping[tuple[str, str], PairVotes]) -> Tournament:
        calls.append(tuple(docs))
        return play(docs, cast)

    leave_each_out(runs, pools, votes, after, find=find)
    lost = [
        pool
        for run in runs
        for pool in remove_run(run, pools, votes).pools
        if pool.query in remove_run(run, pools, votes).touched
    ]
    assert 0 < len(calls) <= len(lost) < len(runs) * len(pools)
