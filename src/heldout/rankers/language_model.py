"""Query likelihood: a document is as good as its word model explains the query."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from heldout.rankers.run import Run, Task
from heldout.rankers.terms import TermIndex, index_terms, rank_products
from heldout.rankers.text import TextSettings, make_tokeniser

__all__ = ["LikelihoodSettings", "rank_likelihood"]

_MOST = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodSettings(TextSettings):
    """How a document's word model is smoothed with that of the collection.

    Attributes:
        smoothing: `dirichlet` or `jelinek-mercer`.
        mu: weight of the collection in words, above 0 and up to 1,000,000 (`dirichlet`).
        lam: share of the collection, in (0, 1) (`jelinek-mercer`).
    """

    smoothing: Literal["dirichlet", "jelinek-mercer"] = "dirichlet"
    mu: float = 200.0
    lam: float = 0.5

    def __post_init__(self) -> None:
        """Refuse weights that give no probability."""
        if not (0 < self.mu <= _MOST and 0 < self.lam < 1):
            raise ValueError("wanted: 0 < mu <= 1000000 and 0 < lam < 1")


def rank_likelihood(task: Task, settings: LikelihoodSettings) -> Run:
    """Rank by the logarithm of the probability that a document's model gives the query.

    Scores leave out what is equal for all documents of a query: the sum of ln p(w) over its
    words under the collection's model. Query words of no document are left out.

    Raises:
        SetupError: stems are wanted and PyStemmer is not installed.

    Source: Zhai and Lafferty, TOIS 22(2), 2004, equations 6 and 7 and Table II.
    """
    index = index_terms(task, make_tokeniser(settings))
    weigh = _dirichlet if settings.smoothing == "dirichlet" else _jelinek_mercer
    weights, offsets = weigh(index, settings)
    return rank_products(
        index, queries=index.query_counts, documents=weights, depth=task.depth, offsets=offsets
    )


def _dirichlet(
    index: TermIndex, settings: LikelihoodSettings
) -> tuple[csr_array, NDArray[np.float64]]:
    counts = index.document_counts
    weights = counts.copy()
    weights.data = np.log1p(counts.data / (settings.mu * _collection_model(counts)[counts.indices]))
    return weights, np.log(settings.mu / (_lengths(counts) + settings.mu))


def _jelinek_mercer(
    index: TermIndex, settings: LikelihoodSettings
) -> tuple[csr_array, NDArray[np.float64]]:
    counts = index.document_counts
    lengths = np.repeat(_lengths(counts), np.diff(counts.indptr))
    odds = (1 - settings.lam) / settings.lam
    weights = counts.copy()
    model = _collection_model(counts)[counts.indices]
    weights.data = np.log1p(odds * counts.data / (lengths * model))
    return weights, np.full(counts.shape[0], np.log(settings.lam))


def _collection_model(counts: csr_array) -> NDArray[np.float64]:
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64)
    return totals / max(float(totals.sum()), 1.0)


def _lengths(counts: csr_array) -> NDArray[np.float64]:
    return np.asarray(counts.sum(axis=1), dtype=np.float64)
