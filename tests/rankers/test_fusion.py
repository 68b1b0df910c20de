"""Fusion of runs."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_task import run_of

from heldout.ids import DocId, QueryId
from heldout.rankers.run import Run, best_hits, fuse_reciprocal, fuse_scores

rankings = st.dictionaries(
    st.sampled_from("abcdefg").map(DocId), st.floats(-5, 5, width=16), min_size=1
).map(lambda scores: best_hits(scores, 7))
runs: st.SearchStrategy[Run] = st.dictionaries(st.sampled_from(["1", "2"]).map(QueryId), rankings)

ONE = run_of({"q": [("a", 9.0), ("b", 8.0), ("c", 5.0)]})
TWO = run_of({"q": [("b", 0.4), ("d", 0.2)], "only": [("x", 1.0)]})


def test_reciprocal_ranks_by_hand() -> None:
    fused = fuse_reciprocal([ONE, TWO], depth=3, k=60)
    assert [hit.document for hit in fused[QueryId("q")]] == ["b", "a", "d"]
    assert [hit.score for hit in fused[QueryId("q")]] == pytest.approx(
        [1 / 62 + 1 / 61, 1 / 61, 1 / 62], rel=1e-6
    )
    assert [hit.document for hit in fused[QueryId("only")]] == ["x"]


def test_sums_of_stretched_scores_by_hand() -> None:
    fused = fuse_scores([ONE, TWO], depth=9)
    assert {hit.document: hit.score for hit in fused[QueryId("q")]} == pytest.approx(
        {"b": 0.75 + 1, "a": 1.0, "d": 0.0, "c": 0.0}
    )
    assert fused[QueryId("only")][0].score == 1.0


@given(runs, runs)
def test_the_order_of_two_runs_does_not_matter(one: Run, two: Run) -> None:
    assert fuse_reciprocal([one, two], depth=9, k=60) == fuse_reciprocal([two, one], depth=9, k=60)
    assert fuse_scores([one, two], depth=9) == fuse_scores([two, one], depth=9)


@given(runs)
def test_a_run_alone_keeps_its_order(run: Run) -> None:
    fused = fuse_reciprocal([run], depth=9, k=60)
    for query, hits in run.items():
        assert [hit.document for hit in fused[query]] == [hit.document for hit in hits]


@given(st.lists(runs, min_size=1, max_size=3), st.integers(1, 4))
def test_scores_stay_in_range(many: list[Run], depth: int) -> None:
    for hits in fuse_scores(many, depth=depth).values():
        assert len(hits) <= depth
        assert all(0 <= hit.score <= len(many) * (1 + 1e-6) for hit in hits)
    for hits in fuse_reciprocal(many, depth=depth, k=0).values():
        assert all(0 < hit.score <= len(many) for hit in hits)


@given(st.lists(runs, min_size=1, max_size=3))
def test_nothing_is_lost(many: list[Run]) -> None:
    fused = fuse_reciprocal(many, depth=100, k=60)
    assert set(fused) == {query for run in many for query in run}
    for query, hits in fused.items():
        expected = {hit.document for run in many for hit in run.get(query, ())}
        assert {hit.document for hit in hits} == expected


@given(runs, st.floats(0.25, 4, width=16), st.floats(-2, 2, width=16))
def test_stretching_forgets_unit_and_origin(run: Run, factor: float, shift: float) -> None:
    scaled = {
        query: [hit._replace(score=hit.score * factor + shift) for hit in hits]
        for query, hits in run.items()
    }
    before, after = fuse_scores([run], depth=9), fuse_scores([scaled], depth=9)
    for query, hits in before.items():
        other = {hit.document: hit.score for hit in after[query]}
        assert all(isclose(hit.score, other[hit.document], abs_tol=1e-3) for hit in hits)
