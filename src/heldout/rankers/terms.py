"""Counts of terms as sparse matrices, and the scoring of all queries against them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit, Task, rank_scores
from heldout.rankers.text import Tokeniser

__all__ = ["TermIndex", "count_terms", "index_terms", "rank_products", "score_blocks"]

_BLOCK = 256
"""Queries scored at once: a dense block of 256 x 10,000 scores takes 20 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermIndex:
    """Term counts of the documents and queries of a task over one vocabulary.

    Attributes:
        documents: ids in ascending order, the rows of `document_counts`.
        queries: ids in the order of the task, the rows of `query_counts`.
        vocabulary: terms of the documents and their columns, by first occurrence.
        document_counts: float64, shape (documents, terms).
        query_counts: float64, shape (queries, terms); terms of no document are left out.
    """

    documents: tuple[DocId, ...]
    queries: tuple[QueryId, ...]
    vocabulary: dict[str, int]
    document_counts: csr_array
    query_counts: csr_array


def index_terms(task: Task, tokenise: Tokeniser) -> TermIndex:
    """Count the terms of a task's documents and queries.

    Args:
        task: what to rank.
        tokenise: from text to terms.
    """
    documents = tuple(sorted(task.documents))
    terms = [tokenise(task.documents[document]) for document in documents]
    vocabulary = {term: column for column, term in enumerate(dict.fromkeys(chain(*terms)))}
    return TermIndex(
        documents=documents,
        queries=tuple(task.queries),
        vocabulary=vocabulary,
        document_counts=count_terms(terms, vocabulary),
        query_counts=count_terms([tokenise(text) for text in task.queries.values()], vocabulary),
    )


def count_terms(texts: Sequence[Sequence[str]], vocabulary: dict[str, int]) -> csr_array:
    """How often each term stands in each text.

    Args:
        texts: terms of each text; those outside the vocabulary are left out.
        vocabulary: column of each term.

    Returns:
        float64, shape (texts, max(1, terms)); columns of a row ascend, so that sums over
        them come out the same each time.
    """
    columns = [[vocabulary[term] for term in text if term in vocabulary] for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in columns])]).astype(np.int64)
    places = np.fromiter(chain(*columns), dtype=np.int64, count=int(starts[-1]))
    shape = (len(texts), max(1, len(vocabulary)))
    counts = csr_array((np.ones(len(places)), places, starts), shape=shape)
    counts.sum_duplicates()
    return counts


def score_blocks(
    queries: csr_array, documents: csr_array
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Inner products of weighted queries and weighted documents, some queries at a time.

    Args:
        queries: shape (queries, terms).
        documents: shape (documents, terms).

    Yields:
        Number of the block's first query, and scores of shape (block, documents).
    """
    columns = csr_array(documents.T)
    for start in range(0, queries.shape[0], _BLOCK):
        yield start, (queries[start : start + _BLOCK] @ columns).toarray()


def rank_products(
    index: TermIndex,
    *,
    queries: csr_array,
    documents: csr_array,
    depth: int,
    offsets: NDArray[np.float64] | None = None,
) -> dict[QueryId, list[Hit]]:
    """Rank by inner products of weights.

    Args:
        index: says whose rows these are.
        queries: weights, shape (queries, terms).
        documents: weights, shape (documents, terms).
        depth: hits per query, >= 1.
        offsets: shape (documents,); added once per query term, by the query's sum of
            weights (length normalisation of language models). None adds nothing.
    """
    lengths = np.asarray(queries.sum(axis=1), dtype=np.float64)
    run: dict[QueryId, list[Hit]] = {}
    for start, block in score_blocks(queries, documents):
        for row, scores in enumerate(block, start):
            total = scores if offsets is None else scores + lengths[row] * offsets
            run[index.queries[row]] = rank_scores(index.documents, total, depth)
    return run
