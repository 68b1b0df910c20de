"""The order of a run is that of trec_eval, whatever stands at the edge of its depth."""

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from small_task import small_task, tasks

from heldout.ids import DocId, QueryId
from heldout.rankers.methods import METHODS, choose_method
from heldout.rankers.run import RankingTask, best_hits, rank_scores

scores = st.dictionaries(
    st.text("aé0Z", min_size=1, max_size=3).map(DocId),
    st.sampled_from([-1.5, 0.0, 0.1, 0.1 + 1e-12, 2.0, 3e5]),
    min_size=1,
    max_size=20,
)


@given(scores, st.integers(1, 25))
def test_best_hits_are_the_head_of_the_whole_order(scores: dict[DocId, float], depth: int) -> None:
    hits = best_hits(scores, depth)
    rounded = {document: float(np.float32(score)) for document, score in scores.items()}
    ordered = sorted(rounded, key=lambda document: document.encode(), reverse=True)
    ordered.sort(key=rounded.__getitem__, reverse=True)
    assert [hit.document for hit in hits] == ordered[:depth]
    assert [hit.score for hit in hits] == [rounded[document] for document in ordered[:depth]]


@given(scores)
def test_trec_eval_sees_the_same_order(scores: dict[DocId, float]) -> None:
    hits = best_hits(scores, len(scores))
    for rank, hit in enumerate(hits, 1):
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {hit.document: 1}}, {"recip_rank"})
        measured = evaluator.evaluate({"q": {other.document: other.score for other in hits}})
        assert measured["q"]["recip_rank"] == pytest.approx(1 / rank)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_what_is_no_score_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        rank_scores((DocId("a"), DocId("b")), np.array([1.0, bad]), 1)


WORD_METHODS = sorted(
    name for name, method in METHODS.items() if not method.load and name != "hybrid"
)


@pytest.mark.parametrize("method", WORD_METHODS)
def test_a_run_is_complete_and_ordered(method: str) -> None:
    task = small_task(depth=5)
    run = choose_method(method, {})(task)
    assert list(run) == list(task.queries)
    for hits in run.values():
        assert len(hits) == len({hit.document for hit in hits}) == 5
        keys = [(hit.score, hit.document) for hit in hits]
        assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize("method", WORD_METHODS)
def test_a_smaller_depth_is_the_head_of_a_larger(method: str) -> None:
    if method == "fusion":
        pytest.skip("a fusion knows only the heads of what it fuses")
    deep = choose_method(method, {})(small_task(depth=7))
    flat = choose_method(method, {})(small_task(depth=3))
    assert flat == {query: hits[:3] for query, hits in deep.items()}


@pytest.mark.parametrize("method", WORD_METHODS)
def test_the_order_of_the_documents_does_not_matter(method: str) -> None:
    task = small_task()
    turned = RankingTask(
        documents=dict(reversed(list(task.documents.items()))),
        queries=task.queries,
        depth=task.depth,
    )
    assert choose_method(method, {})(turned) == choose_method(method, {})(task)


@given(tasks(), st.sampled_from(WORD_METHODS))
def test_no_task_is_too_odd(task: RankingTask, method: str) -> None:
    run = choose_method(method, {})(task)
    wanted = min(task.depth, len(task.documents))
    assert all(len(hits) == wanted for hits in run.values())


@pytest.mark.parametrize("method", WORD_METHODS)
def test_the_right_document_comes_first(method: str) -> None:
    run = choose_method(method, {})(small_task())
    assert run[QueryId("7")][0].document == "d3"


@pytest.mark.parametrize("method", WORD_METHODS)
def test_documents_without_words_are_ranked_last_or_tied(method: str) -> None:
    task = RankingTask(
        documents={DocId("a"): "...", DocId("b"): ""}, queries={QueryId("q"): "x"}, depth=2
    )
    hits = choose_method(method, {})(task)[QueryId("q")]
    assert [hit.document for hit in hits] == ["b", "a"]


def test_a_task_without_documents_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one document"):
        RankingTask(documents={}, queries={}, depth=1)
    with pytest.raises(ValueError, match="at least one document"):
        small_task(depth=0)
