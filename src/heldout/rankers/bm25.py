"""BM25 as the library bm25s computes it, alone and with pseudo-relevance feedback (RM3)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from heldout.errors import SetupError
from heldout.rankers.run import Run, Task
from heldout.rankers.terms import (
    TermIndex,
    TextSettings,
    index_terms,
    make_tokeniser,
    rank_products,
)

_MOST = 1000.0
_COMMON = 0.1
"""A term in a larger share of the documents expands no query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Settings(TextSettings):
    """The free parameters of BM25.

    Attributes:
        k1: how much repetition of a term counts, 0 to 1,000.
        b: how much the length of a document is held against it, in [0, 1].
        delta: lower bound of `bm25l` and `bm25+`, 0 to 1,000; the others ignore it.
        variant: the formula, as bm25s names them.
        stem: as in `TextSettings`, but on.
    """

    k1: float = 0.9
    b: float = 0.4
    delta: float = 0.5
    variant: Literal["lucene", "robertson", "atire", "bm25l", "bm25+"] = "lucene"
    stem: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters outside their ranges."""
        if not (0 <= self.k1 <= _MOST and 0 <= self.b <= 1 and 0 <= self.delta <= _MOST):
            raise ValueError("wanted: k1 and delta in 0..1000, b in 0..1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rm3Settings(TextSettings):
    """BM25 (variant `lucene`) twice: as asked, then with the words of the best documents.

    Attributes:
        k1: how much repetition of a term counts, 0 to 1,000.
        b: how much the length of a document is held against it, in [0, 1].
        documents: how many best documents are taken as relevant, >= 1.
        terms: how many of their terms are added to the query, >= 1.
        original: weight of the words that were asked, in [0, 1].
        stem: as in `TextSettings`, but on.
    """

    k1: float = 0.9
    b: float = 0.4
    documents: int = 5
    terms: int = 20
    original: float = 0.7
    stem: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters outside their ranges."""
        if not (0 <= self.k1 <= _MOST and 0 <= self.b <= 1 and 0 <= self.original <= 1):
            raise ValueError("wanted: k1 in 0..1000, b and original in 0..1")
        if self.documents < 1 or self.terms < 1:
            raise ValueError("wanted: documents and terms of at least 1")


def rank_bm25(task: Task, settings: Bm25Settings) -> Run:
    """Rank by BM25.

    A query's score is the sum of its terms' weights, each as often as it is asked. `bm25l`
    and `bm25+` also give terms that a document lacks a weight; it is the same for all
    documents of a query and left out.

    Raises:
        SetupError: bm25s (or, with `stem`, PyStemmer) is not installed.

    Source: Robertson and Zaragoza, FnTIR 3(4), 2009; variants: Kamphuis et al., ECIR 2020,
    as implemented in Lu, arXiv:2407.03618, 2024.
    """
    index = index_terms(task, make_tokeniser(settings))
    weights = _weights(index.document_counts, settings)
    return rank_products(index, queries=index.query_counts, documents=weights, depth=task.depth)


def rank_rm3(task: Task, settings: Rm3Settings) -> Run:
    """Rank by BM25 with the query mixed with a relevance model of its own best documents.

    The model of a query is the mean of the word distributions of its best documents,
    weighted by their BM25 scores; terms in more than a tenth of all documents are left out,
    the heaviest kept and made to sum to 1, and mixed with the query's own words.

    Raises:
        SetupError: bm25s (or, with `stem`, PyStemmer) is not installed.

    Source: Lavrenko and Croft, SIGIR 2001; the mixture RM3: Abdul-Jaleel et al., TREC 2004.
    """
    index = index_terms(task, make_tokeniser(settings))
    weights = _weights(index.document_counts, Bm25Settings(k1=settings.k1, b=settings.b))
    first = rank_products(
        index, queries=index.query_counts, documents=weights, depth=settings.documents
    )
    expansion = _heaviest(_feedback(index, first) @ _distributions(index), settings.terms)
    asked = _unit_sums(index.query_counts)
    mixed = csr_array(settings.original * asked + (1 - settings.original) * expansion)
    return rank_products(index, queries=mixed, documents=weights, depth=task.depth)


def _weights(counts: csr_array, settings: Bm25Settings) -> csr_array:
    """BM25 weight of each term in each document, shape (documents, terms)."""
    try:
        import bm25s  # noqa: PLC0415 - of the extra `rankers`
    except ImportError as error:
        raise SetupError("BM25 needs bm25s: pip install 'heldout[rankers]'") from error
    if counts.nnz == 0:
        return counts
    model = bm25s.BM25(
        k1=settings.k1, b=settings.b, delta=settings.delta, method=settings.variant, dtype="float64"
    )
    # Our own numbering of terms: that of bm25s goes through a set, so by hash seed.
    columns = {column: column for column in range(counts.shape[1])}
    model.index((_token_lists(counts), columns), create_empty_token=False, show_progress=False)
    scores = model.scores
    return csr_array(
        csc_array((scores["data"], scores["indices"], scores["indptr"]), shape=counts.shape)
    )


def _token_lists(counts: csr_array) -> list[list[int]]:
    """The documents again as lists of columns, each as often as it occurs."""
    repeated = np.repeat(counts.indices, counts.data.astype(np.int64))
    ends = np.cumsum(np.asarray(counts.sum(axis=1), dtype=np.int64))
    return [part.tolist() for part in np.split(repeated, ends[:-1])]


def _feedback(index: TermIndex, run: Run) -> csr_array:
    """Share of each document in each query's model, shape (queries, documents)."""
    rows = {document: row for row, document in enumerate(index.documents)}
    hits = [run[query] for query in index.queries]
    places = [rows[hit.document] for ranking in hits for hit in ranking]
    values = np.array([hit.score for ranking in hits for hit in ranking], dtype=np.float64)
    starts = np.cumsum([0, *(len(ranking) for ranking in hits)])
    shape = (len(hits), len(index.documents))
    return _unit_sums(csr_array((values, np.array(places, np.int64), starts), shape=shape))


def _distributions(index: TermIndex) -> csr_array:
    """Word distribution of each document, without the terms that are too common."""
    counts = index.document_counts
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    rare = (frequencies <= max(1.0, _COMMON * counts.shape[0])).astype(np.float64)
    return csr_array(_unit_sums(counts) @ diags_array(rare))


def _heaviest(weights: csr_array, terms: int) -> csr_array:
    """The `terms` heaviest of each row, made to sum to 1; ties go to the lower column."""
    weights = csr_array(weights)
    weights.sort_indices()
    for start, end in zip(weights.indptr, weights.indptr[1:], strict=False):
        row = weights.data[start:end]
        row[np.argsort(-row, kind="stable")[terms:]] = 0
    weights.eliminate_zeros()
    return _unit_sums(weights)


def _unit_sums(matrix: csr_array) -> csr_array:
    """Rows scaled to sum to 1; a row without weight stays zero."""
    sums: NDArray[np.float64] = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    return csr_array(diags_array(1 / np.where(sums > 0, sums, 1)) @ matrix)
