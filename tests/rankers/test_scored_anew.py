"""Re-ranking: whatever scores, the first documents are reordered and the rest stays below."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_task import run_of, small_task

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.rankers.reranking import rerank
from heldout.rankers.run import Hit, RankingTask, Run, TextPair, format_run, rank_scores

float32 = st.floats(-(2.0**127), 2.0**127, width=32)


def lengths(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
    return np.array([float(len(pair.document)) for pair in pairs])


def first_run(task: RankingTask) -> Run:
    documents = sorted(task.documents)
    scores = np.arange(len(documents), dtype=np.float64)
    return {query: rank_scores(documents, scores, len(documents)) for query in task.queries}


def make_task(count: int, depth: int) -> RankingTask:
    return RankingTask(
        documents={DocId(f"d{number:03}"): str(number) for number in range(count)},
        queries={QueryId("q"): "anything"},
        depth=depth,
    )


@given(st.lists(float32, min_size=1, max_size=12), st.integers(1, 15), st.integers(1, 15))
def test_the_head_is_ordered_by_score_and_the_tail_as_it_was(
    scores: list[float], depth: int, returned: int
) -> None:
    task = make_task(len(scores), returned)
    first = first_run(task)[QueryId("q")]

    def score(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        return np.array([scores[int(pair.document)] for pair in pairs])

    found = rerank(task, {QueryId("q"): first}, score, depth=depth)[QueryId("q")]
    head = sorted(first[:depth], key=lambda hit: hit.document, reverse=True)
    head.sort(key=lambda hit: -scores[int(hit.document[1:])])
    wanted = [hit.document for hit in [*head, *first[depth:]]][:returned]
    assert [hit.document for hit in found] == wanted
    # Any reader of the scores sees that order: the tail falls strictly, as float32 too.
    values = np.array([hit.score for hit in found], dtype=np.float32)
    assert (values[:-1] >= values[1:]).all()
    tail = values[max(0, min(depth, len(first)) - 1) :]
    assert (np.diff(tail) < 0).all()


def test_a_written_run_is_read_in_the_order_that_was_meant() -> None:
    task = small_task(depth=7)
    run = rerank(task, first_run(task), lengths, depth=3)
    for line in format_run(run, form="trec", tag="x").decode().splitlines():
        query, _, document, rank, score, _ = line.split()
        hit = run[QueryId(query)][int(rank) - 1]
        assert (hit.document, np.float32(hit.score)) == (document, np.float32(score))


def test_a_query_without_documents_stays_empty_and_nobody_scores_it() -> None:
    task = small_task()
    first = run_of({"7": [("d1", 2.0), ("d3", 1.0)], "unasked": [("d1", 1.0)]})
    seen: list[int] = []

    def score(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        seen.append(len(pairs))
        return lengths(pairs)

    done: list[None] = []
    run = rerank(task, first, score, depth=5, done=lambda: done.append(None))
    assert {query: len(hits) for query, hits in run.items()} == {"007": 0, "7": 2, "8": 0, "9": 0}
    assert seen == [2]
    assert len(done) == 4


def test_a_document_of_another_collection_is_named() -> None:
    first = run_of({"7": [("d1", 2.0), ("elsewhere", 1.0)]})
    with pytest.raises(InputError, match='rerank-document --first: found document "elsewhere"'):
        rerank(small_task(), first, lengths, depth=1)


def test_no_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="depth"):
        rerank(small_task(), {}, lengths, depth=0)


def test_a_tail_below_a_huge_score_still_falls() -> None:
    task = make_task(4, 4)
    first = [Hit(DocId(f"d{number:03}"), -number) for number in range(4)]
    run = rerank(task, {QueryId("q"): first}, lambda _: np.array([1e30]), depth=1)
    values = [hit.score for hit in run[QueryId("q")]]
    assert values == sorted(set(values), reverse=True)
