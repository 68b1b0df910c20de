"""The order of documents does not depend on the file's, and is that of the named tools."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_runs import Row, as_float32, format_run, integers, ranked_documents, scan
from odd_runs import GRADES, tied_runs

from heldout.trec.orders import ORDERS, Order


@pytest.mark.parametrize("order", ORDERS)
@given(rows=tied_runs(), qrels=GRADES, seed=st.randoms(use_true_random=False))
def test_the_order_of_lines_means_nothing(
    order: Order, rows: list[Row], qrels: dict[str, dict[str, int]], seed: random.Random
) -> None:
    shuffled = seed.sample(rows, len(rows))
    grouped = sorted(rows, key=lambda row: row[0])
    scans = [
        scan(format_run(lines, trec=order != "msmarco"), order, qrels=qrels)
        for lines in (rows, shuffled, grouped)
    ]
    first = scans[0]
    for other in scans[1:]:
        assert integers(other) == integers(first)
        assert other.facts == first.facts
        assert (other.signature.documents == first.signature.documents).all()
        assert other.counts == first.counts


@given(rows=tied_runs(), qrels=GRADES)
def test_both_forms_say_the_same_by_rank(rows: list[Row], qrels: dict[str, dict[str, int]]) -> None:
    by_form = [scan(format_run(rows, trec=trec), "msmarco", qrels=qrels) for trec in (True, False)]
    assert integers(by_form[0]) == integers(by_form[1])
    assert [found.form for found in by_form] == ["trec", "msmarco"]


def displaced(rows: list[Row], order: Order) -> dict[str, int]:
    """Query -> places among its first ten where ranks and scores have different documents."""
    by_score = ranked_documents(rows, order)
    if order == "msmarco":  # equal scores contradict no rank
        in_turn = sorted(rows, key=lambda row: row[2])
        in_turn.sort(key=lambda row: float(row[3]), reverse=True)
        by_score = {query: [row[1] for row in in_turn if row[0] == query] for query in by_score}
    by_rank = ranked_documents(rows, "msmarco")
    return {
        query: sum(one != other for one, other in zip(by_rank[query][:10], found, strict=False))
        for query, found in by_score.items()
    }


@pytest.mark.parametrize("order", ORDERS)
@given(rows=tied_runs())
def test_ranks_that_contradict_scores_are_told_under_each_order(
    order: Order, rows: list[Row]
) -> None:
    wrong = displaced(rows, order)
    found = scan(format_run(rows, trec=True), order)
    assert found.ok
    assert found.counts.get("rank-disagrees", 0) == sum(map(bool, wrong.values()))
    assert found.facts.displaced_top == sum(wrong.values())
    assert found.facts.queries_displaced_top == sum(map(bool, wrong.values()))


@pytest.mark.parametrize("sort", [True, False], ids=["in the order", "in any order"])
@given(rows=tied_runs())
def test_queries_that_trec9_orders_otherwise_are_counted(*, sort: bool, rows: list[Row]) -> None:
    if sort:
        rows = sorted(rows, key=lambda row: (row[0], -float(row[3])))
    one, other = (ranked_documents(rows, order) for order in ("trec", "trec9"))

    found = scan(format_run(rows, trec=True), "trec")
    assert found.facts.queries_swapped == sum(one[query] != other[query] for query in one)
    assert scan(format_run(rows, trec=True), "trec9").facts.queries_swapped == 0
    assert scan(format_run(rows, trec=True), "msmarco").facts.queries_swapped == 0


@given(rows=tied_runs())
def test_three_columns_have_no_scores_to_contradict(rows: list[Row]) -> None:
    found = scan(format_run(rows, trec=False), "msmarco")
    assert (found.counts, found.facts.displaced_top) == ({}, 0)


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_float32_is_the_machines_own(score: float) -> None:
    """A score and its float32 tie under `trec9`, whatever its digits."""
    try:
        rounded = as_float32(score)
    except OverflowError:
        rounded = math.inf
    if math.isinf(rounded):
        assert "score-infinite" in scan(f"q 0 a 1 {score!r} t\n".encode(), "trec9").counts
        return
    rows = [("q", "a", 1, repr(score)), ("q", "b", 2, repr(rounded))]
    found = scan(format_run(rows, trec=True), "trec9", qrels={"q": {"b": 1}})
    assert found.rankings["q"].positions.tolist() == [1]
    assert found.facts.tied == 1


def test_a_long_interleaved_run_equals_the_grouped_one() -> None:
    """Rank by rank over all queries: every query's rows stand apart, over many blocks."""
    rng = random.Random(0)  # noqa: S311 - a test's data
    rows = [
        (f"q{query}", f"d{rng.randrange(10**6)}-{rank}", rank, f"{1000 - rank}")
        for rank in range(1, 301)
        for query in range(50)
    ]
    qrels = {f"q{query}": {row[1]: 1 for row in rows[query :: 50 * 7]} for query in range(50)}
    grouped = sorted(rows, key=lambda row: row[0])
    for order in ORDERS:
        data, tidy = (format_run(r, trec=order != "msmarco") for r in (rows, grouped))
        assert len(data) > 1 << 18
        assert integers(scan(data, order, qrels=qrels)) == integers(scan(tidy, order, qrels=qrels))
