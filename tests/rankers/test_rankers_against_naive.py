"""Each ranker against its formula in a few plain lines, and BM25 against bm25s itself."""

import bm25s
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from small_task import small_task, tasks

from heldout.ids import DocId, QueryId
from heldout.rankers import terms
from heldout.rankers.run import RankingTask, Run

EVERYTHING = 10
QUERY = QueryId("q")


def agree(run: Run, expected: naive.Scores) -> None:
    """Same scores to float32; with them `test_ranking_order` holds the order."""
    assert list(run) == list(expected)
    for query, hits in run.items():
        assert {hit.document: hit.score for hit in hits} == pytest.approx(
            expected[query], rel=1e-5, abs=1e-6
        )


def whole(task: RankingTask) -> RankingTask:
    return RankingTask(documents=task.documents, queries=task.queries, depth=EVERYTHING)


@given(tasks())
def test_tfidf(task: RankingTask) -> None:
    task = whole(task)
    agree(terms.rank_tfidf(task, terms.TfidfSettings()), naive.tfidf_cosine(task, naive.words))


@given(tasks(), st.integers(1, 6))
def test_character_ngrams(task: RankingTask, length: int) -> None:
    task = whole(task)
    settings = terms.NgramSettings(length=length)
    agree(terms.rank_char_ngrams(task, settings), naive.tfidf_cosine(task, naive.grams(length)))


@given(tasks(), st.floats(0.5, 2000))
def test_dirichlet(task: RankingTask, mu: float) -> None:
    task = whole(task)
    agree(
        terms.rank_likelihood(task, terms.LikelihoodSettings(mu=mu)),
        naive.query_likelihood(task, mu=mu),
    )


@given(tasks(), st.floats(0.05, 0.95))
def test_jelinek_mercer(task: RankingTask, lam: float) -> None:
    task = whole(task)
    settings = terms.LikelihoodSettings(smoothing="jelinek-mercer", lam=lam)
    agree(terms.rank_likelihood(task, settings), naive.query_likelihood(task, lam=lam))


@given(tasks(), st.floats(0.01, 4), st.floats(0, 1))
def test_bm25(task: RankingTask, k1: float, b: float) -> None:
    task = whole(task)
    settings = terms.Bm25Settings(k1=k1, b=b, stem=False)
    agree(terms.rank_bm25(task, settings), naive.bm25(task, k1=k1, b=b))


@given(tasks(), st.integers(1, 4), st.floats(0, 1))
def test_rm3(task: RankingTask, documents: int, original: float) -> None:
    task = whole(task)
    settings = terms.Rm3Settings(documents=documents, terms=50, original=original, stem=False)
    expected = naive.rm3(task, k1=0.9, b=0.4, documents=documents, terms=50, original=original)
    agree(terms.rank_rm3(task, settings), expected)


def test_rm3_passes_over_terms_of_more_than_a_tenth_of_the_documents() -> None:
    """Of thirty documents "b" is in three and "c" in four."""
    rows = ["a b c", "a b c", "b c", "c", *["d"] * 26]
    documents = {DocId(f"d{number:02}"): text for number, text in enumerate(rows)}
    task = RankingTask(documents=documents, queries={QUERY: "a"}, depth=EVERYTHING)
    settings = terms.Rm3Settings(documents=2, terms=50, original=0.5, stem=False)
    expected = naive.rm3(task, k1=0.9, b=0.4, documents=2, terms=50, original=0.5)[QUERY]
    found = {hit.document: hit.score for hit in terms.rank_rm3(task, settings)[QUERY] if hit.score}
    assert found == pytest.approx({name: score for name, score in expected.items() if score})
    assert sorted(found) == ["d00", "d01", "d02"]


def test_bm25_gives_what_bm25s_gives() -> None:
    task = whole(small_task())
    settings = terms.Bm25Settings(k1=1.2, b=0.75, stem=False)
    tokenise = terms.make_tokeniser(settings)
    peer = bm25s.BM25(k1=1.2, b=0.75, method="lucene", dtype="float64")
    peer.index([tokenise(text) for text in task.documents.values()], show_progress=False)
    run = terms.rank_bm25(task, settings)
    for query in list(task.queries)[:2]:
        scores = np.asarray(peer.get_scores(tokenise(task.queries[query])))
        ours = {hit.document: hit.score for hit in run[query]}
        assert ours == pytest.approx(
            dict(zip(task.documents, scores.tolist(), strict=True)), rel=1e-5
        )


def test_feedback_keeps_the_heaviest_terms() -> None:
    weights = csr_array(np.array([[0.1, 0.3, 0.0, 0.3, 0.3], [0.0, 0.2, 0.0, 0.0, 0.0], [0.0] * 5]))
    kept = terms._heaviest(weights, 2).toarray()
    assert kept == pytest.approx(np.array([[0, 0.5, 0, 0.5, 0], [0, 1, 0, 0, 0], [0] * 5]))
