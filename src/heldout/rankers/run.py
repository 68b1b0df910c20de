"""What a ranker is given and what it returns, in the order of `trec.ranking`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.ids import DocId, QueryId
from heldout.trec.ranking import order_by_score, sort_keys

__all__ = ["Hit", "Run", "Task", "best_hits", "rank_scores"]


class Hit(NamedTuple):
    """One document of a ranking with its score, higher is better."""

    document: DocId
    score: float


Run = Mapping[QueryId, Sequence[Hit]]
"""Per query the documents found, best first: score descending, then document id descending
bytewise, as trec_eval orders them. Scores are float32 values, so that no reader of the
written run, with 32 bits or with 64, sees another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to rank.

    Attributes:
        documents: text by id, at least one.
        queries: text by id.
        depth: documents to return per query, >= 1; fewer only where there are fewer. What
            shares nothing with the query fills the end in the order of ids, so that a run
            is always complete.
    """

    documents: Mapping[DocId, str]
    queries: Mapping[QueryId, str]
    depth: int

    def __post_init__(self) -> None:
        """Refuse what cannot be ranked."""
        if not self.documents or self.depth < 1:
            message = "a task needs at least one document and a depth of at least 1"
            raise ValueError(message)


def rank_scores(documents: Sequence[DocId], scores: NDArray[np.float64], depth: int) -> list[Hit]:
    """The best documents of one query.

    Args:
        documents: their ids, each once.
        scores: float64, shape (documents,); finite as float32.
        depth: how many to return, >= 1.

    Returns:
        min(depth, documents) hits in the order of `Run`.

    Raises:
        ValueError: a score is NaN or infinite.
    """
    keys = sort_keys(scores, "trec9")
    if not np.isfinite(keys).all():
        raise ValueError("a score is NaN or infinite")
    last = np.partition(keys, -depth)[-depth] if depth < len(keys) else -np.inf
    # Everything that ties with the last place stays in, for the id decides there.
    candidates = np.flatnonzero(keys >= last)
    names = [documents[row].encode() for row in candidates.tolist()]
    best = candidates[order_by_score(keys[candidates], names)[:depth]]
    return [
        Hit(documents[row], score)
        for row, score in zip(best.tolist(), keys[best].tolist(), strict=True)
    ]


def best_hits(scores: Mapping[DocId, float], depth: int) -> list[Hit]:
    """The best of some documents, in the order of `Run`.

    Args:
        scores: score per document, finite as float32.
        depth: how many to return, >= 1.

    Raises:
        ValueError: a score is NaN or infinite.
    """
    return rank_scores(tuple(scores), np.fromiter(scores.values(), np.float64), depth)
