"""Whether a ranker is better than BM25, as far as labels can tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.rankers.playbook.playbook import (
    Comparison,
    Labels,
    Verdict,
    compare,
    find_places,
    fit_labels,
    likely_detectable,
)
from heldout.rankers.run import Hit, Run, Task
from heldout.scoring.measures import parse_measure
from heldout.stats.power import power_of_t

RR = parse_measure("RR@10")


def run_with(places: list[int], *, depth: int = 15) -> Run:
    """A run whose only relevant document, `right`, stands at these places; 0 for nowhere."""
    run = {}
    for number, place in enumerate(places):
        documents = [f"d{rank}" for rank in range(1, depth + 1)]
        if place:
            documents[place - 1] = "right"
        hits = [Hit(DocId(name), float(depth - rank)) for rank, name in enumerate(documents)]
        run[QueryId(f"q{number}")] = hits
    return run


def labels_of(queries: int) -> Labels:
    return {QueryId(f"q{number}"): {DocId("right"): 1} for number in range(queries)}


def compared(ours: list[int], theirs: list[int], *, gain: float = 0.05) -> Comparison:
    rng = np.random.default_rng(0)
    labels = labels_of(len(ours))
    return compare(run_with(ours), run_with(theirs), labels, RR, rng, gain=gain, trials=300)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([1, 1, 2] * 10, [2, 3, 2] * 10, "better"),
        ([2, 3, 2] * 10, [1, 1, 2] * 10, "worse"),
        ([5, 4, 5] * 200, [4, 5, 5] * 200, "not better"),
        ([1, 2, 5] * 10, [2, 1, 5] * 10, "cannot tell"),
        ([1] * 9, [2, 3, 4] * 3, "cannot tell"),
        ([1] * 40, [2] * 40, "cannot tell"),
        ([1], [2], "cannot tell"),
        ([0] * 30, [0] * 30, "cannot tell"),
    ],
)
def test_the_verdict_is_what_both_intervals_allow(
    ours: list[int], theirs: list[int], verdict: Verdict
) -> None:
    found = compared(ours, theirs)
    assert found.verdict == verdict
    assert bool(found.why) == (verdict == "cannot tell")


def test_figures_are_those_of_scipy() -> None:
    ours, theirs = [1, 2, 5, 0, 1, 3] * 5, [2, 2, 4, 1, 0, 10] * 5
    found = compared(ours, theirs)
    mine, other = ([1 / place if place else 0.0 for place in one] for one in (ours, theirs))
    tested = stats.ttest_rel(mine, other)
    low, high = tested.confidence_interval()
    assert found.t == pytest.approx((low, high))
    assert found.p == pytest.approx(tested.pvalue)
    assert (found.ranker, found.baseline) == pytest.approx((np.mean(mine), np.mean(other)))
    assert (found.wins, found.ties, found.losses) == (15, 5, 10)
    assert found.deviation == pytest.approx(np.std(np.subtract(mine, other), ddof=1))


def test_who_finds_something_is_counted() -> None:
    found = compared([1, 11, 3, 0], [2, 1, 11, 0]).found
    assert (found.both, found.ranker, found.baseline, found.neither) == (1, 1, 1, 1)


def test_the_queries_for_a_gain_find_it_with_the_power_that_is_said() -> None:
    found = compared([1, 2, 5] * 10, [2, 1, 5] * 10, gain=0.05)
    assert found.queries_for_gain is not None
    assert found.deviation is not None
    assert power_of_t(found.queries_for_gain, 0.05 / found.deviation) >= 0.8
    assert power_of_t(found.queries_for_gain - 1, 0.05 / found.deviation) < 0.8
    assert found.queries_for_gain > found.queries
    assert found.detectable is not None
    assert found.detectable > 0.05


def test_nothing_is_planned_from_queries_that_never_differ() -> None:
    found = compared([1] * 30, [1] * 30)
    assert (found.t, found.p, found.queries_for_gain, found.detectable) == (None,) * 4
    assert found.difference == 0


places = st.lists(st.integers(0, 15), min_size=1, max_size=25)


@given(st.data())
def test_two_rankers_seen_from_the_other_side_are_mirrored(data: st.DataObject) -> None:
    ours = data.draw(places)
    theirs = data.draw(st.lists(st.integers(0, 15), min_size=len(ours), max_size=len(ours)))
    one, other = compared(ours, theirs), compared(theirs, ours)
    assert one.difference == pytest.approx(-other.difference, abs=1e-12)
    assert (one.wins, one.losses) == (other.losses, other.wins)
    assert (one.found.ranker, one.found.baseline) == (other.found.baseline, other.found.ranker)
    mirrored = {"better": {"worse"}, "worse": {"better"}}
    assert other.verdict in mirrored.get(one.verdict, {"not better", "cannot tell"})
    assert one.found.both + one.found.ranker + one.found.baseline + one.found.neither == len(ours)


def test_equal_rankers_are_seldom_called_better() -> None:
    """A nominal 2.5% on each side: 120 samples of 40 queries of one ranker against itself."""
    rng = np.random.default_rng(11)
    wrong = 0
    for seed in range(120):
        ours, theirs = rng.integers(0, 12, size=(2, 40)).tolist()
        labels = labels_of(40)
        found = compare(
            run_with(ours),
            run_with(theirs),
            labels,
            RR,
            np.random.default_rng(seed),
            gain=0.05,
            trials=100,
        )
        wrong += found.verdict == "better"
    assert wrong <= 9


def test_a_query_that_no_run_answers_scores_nothing() -> None:
    labels = {**labels_of(12), QueryId("unanswered"): {DocId("right"): 1}}
    run = run_with([1] * 12)
    found = compare(run, run, labels, RR, np.random.default_rng(0), gain=0.1, trials=10)
    assert found.queries == 13
    assert found.ranker == pytest.approx(12 / 13)


def test_a_measure_without_a_value_for_each_query_is_refused() -> None:
    measure = parse_measure("FirstRel")
    with pytest.raises(InputError) as caught:
        compare(
            run_with([1, 0]),
            run_with([1, 1]),
            labels_of(2),
            measure,
            np.random.default_rng(0),
            gain=1,
        )
    assert caught.value.problems[0].code == "measure-undefined"


@pytest.mark.parametrize("gain", [0, -0.1])
def test_a_gain_that_is_none_is_refused(gain: float) -> None:
    with pytest.raises(ValueError, match=str(gain)):
        compared([1], [1], gain=gain)


def test_labels_from_the_top_of_one_run_are_seen() -> None:
    shown = find_places(run_with([1, 5, 10] * 10), labels_of(30))
    assert (shown.top, shown.below, shown.missed, shown.at_top) == (30, 0, 0, True)
    deep = find_places(run_with([1, 5, 11, 0] * 10), labels_of(40))
    assert (deep.top, deep.below, deep.missed, deep.at_top) == (20, 10, 10, False)
    few = find_places(run_with([1] * 5), labels_of(5))
    assert not few.at_top


def task_of(documents: list[str], queries: list[str]) -> Task:
    return Task(
        documents={DocId(name): "text" for name in documents},
        queries={QueryId(name): "text" for name in queries},
        depth=10,
    )


def test_labels_are_cut_to_the_queries_asked_and_what_is_unknown_is_counted() -> None:
    labels = {**labels_of(3), QueryId("q0"): {DocId("right"): 1, DocId("gone"): 1, DocId("x"): 0}}
    found = fit_labels(labels, task_of(["right"], ["q0", "q1", "other"]))
    assert set(found.labels) == {"q0", "q1"}
    assert (found.unasked, found.unknown) == (1, 1)


@pytest.mark.parametrize(
    ("documents", "queries", "what"),
    [(["right"], ["1", "2"], "queries"), (["1", "2"], ["q0"], "documents")],
)
def test_labels_of_another_collection_are_refused(
    documents: list[str], queries: list[str], what: str
) -> None:
    with pytest.raises(InputError) as caught:
        fit_labels(labels_of(3), task_of(documents, queries))
    (problem,) = caught.value.problems
    assert problem.code == "labels-match-nothing"
    assert what in problem.found


def test_what_labels_would_buy_is_a_range_over_collections() -> None:
    low, high = likely_detectable(50, (0.3, 0.2, 0.25))
    assert power_of_t(50, low / 0.2) == pytest.approx(0.8)
    assert power_of_t(50, high / 0.3) == pytest.approx(0.8)
