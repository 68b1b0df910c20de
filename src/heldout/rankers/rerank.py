"""Re-ranking: the first documents of a run scored anew by a model that reads query and document."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, quote
from heldout.ids import QueryId
from heldout.rankers.pairs import PairScorer, TextPair
from heldout.rankers.run import Hit, Run, Task, rank_scores

__all__ = ["Finished", "Progress", "rerank"]

Progress = Callable[[int, int], None]
"""Told after each query how many are done, and of how many."""


class Finished(Protocol):
    """Scores of queries that are done, kept where a killed run finds them again."""

    def find(self, query: QueryId) -> Sequence[float] | None:
        """Scores of the query's first documents in their order; None if it is not done."""

    def add(self, query: QueryId, scores: Sequence[float]) -> None:
        """Keep them before going on."""


def rerank(
    task: Task,
    first: Run,
    score: PairScorer,
    *,
    depth: int,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> Run:
    """Score the first documents of each query anew, and order them by that.

    The rest stays below them in the order of the first stage; its scores are made lower by one
    each. A query is scored in one call, so its scores do not depend on other queries.

    Args:
        task: texts, and how many documents to return per query.
        first: the run of the first stage; a query that it does not answer stays empty.
        score: from pairs of texts to finite scores, higher is better.
        depth: documents per query to score, >= 1.
        progress: told after each query.
        finished: scores of a run that was killed; those of this one are added.

    Raises:
        InputError: code `rerank-document`: the first stage has a document without text; or
            what `score` raises.
        ValueError: a score is NaN or infinite, or `depth` is below 1.
    """
    if depth < 1:
        raise ValueError("wanted: depth >= 1")
    run: dict[QueryId, list[Hit]] = {}
    for number, (query, text) in enumerate(task.queries.items(), 1):
        hits = first.get(query, ())
        scores = finished.find(query) if finished is not None else None
        if scores is None or len(scores) != len(hits[:depth]):
            _check_known(task, query, hits)
            scores = _score(task, text, hits[:depth], score)
            if finished is not None:
                finished.add(query, scores)
        run[query] = _reorder(hits, scores)[: task.depth]
        if progress:
            progress(number, len(task.queries))
    return run


def _score(task: Task, text: str, hits: Sequence[Hit], score: PairScorer) -> Sequence[float]:
    if not hits:
        return []
    scores = score([TextPair(text, task.documents[hit.document]) for hit in hits])
    return [float(value) for value in scores]


def _check_known(task: Task, query: QueryId, hits: Sequence[Hit]) -> None:
    unknown = next((hit.document for hit in hits if hit.document not in task.documents), None)
    if unknown is None:
        return
    raise InputError(
        Problem(
            code="rerank-document",
            path="--first",
            found=f"document {quote(unknown)} of query {quote(query)}",
            expected="only documents of the collection",
            hint="was the run made on this collection?",
        )
    )


def _reorder(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """The scored documents by their scores, then the others as they stood."""
    if not scores:
        return []
    documents = [hit.document for hit in hits[: len(scores)]]
    head = rank_scores(documents, np.array(scores, dtype=np.float64), len(scores))
    rest = [hit.document for hit in hits[len(scores) :]]
    below = _scores_below(head[-1].score, len(rest))
    return head + [Hit(document, value) for document, value in zip(rest, below, strict=True)]


def _scores_below(floor: float, count: int) -> list[float]:
    """Falling float32 values below a score: one apart, or as far as float32 needs there."""
    step = max(1.0, 2 * float(np.spacing(np.float32(abs(floor) + count))))
    values: NDArray[np.float32] = (floor - step * np.arange(1, count + 1)).astype(np.float32)
    return [float(value) for value in values]
