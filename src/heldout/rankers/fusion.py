"""Fusion: several runs of the same queries become one."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit, Run, best_hits

__all__ = ["fuse_reciprocal", "fuse_scores"]


def fuse_reciprocal(runs: Sequence[Run], *, depth: int, k: float) -> Run:
    """Reciprocal rank fusion: a document's score is the sum of 1 / (k + rank).

    Args:
        runs: at least one; a query that a run does not answer gets nothing from it.
        depth: hits per query, >= 1.
        k: >= 0; the larger, the less the first ranks count.

    Source: Cormack, Clarke and Buettcher, SIGIR 2009 (k = 60 there).
    """

    def shares(hits: Sequence[Hit]) -> list[float]:
        return [1 / (k + rank) for rank in range(1, len(hits) + 1)]

    return _fuse(runs, depth, shares)


def fuse_scores(runs: Sequence[Run], *, depth: int) -> Run:
    """CombSUM: the sum of scores, each ranking's scores first stretched to [0, 1].

    A ranking whose scores are all equal gives each document 1.

    Args:
        runs: at least one; a query that a run does not answer gets nothing from it.
        depth: hits per query, >= 1.

    Source: Fox and Shaw, TREC-2, 1993; stretching: Lee, SIGIR 1997.
    """

    def shares(hits: Sequence[Hit]) -> list[float]:
        low, high = hits[-1].score, hits[0].score
        return [(hit.score - low) / (high - low) if high > low else 1.0 for hit in hits]

    return _fuse(runs, depth, shares)


def _fuse(runs: Sequence[Run], depth: int, shares: Callable[[Sequence[Hit]], list[float]]) -> Run:
    queries = dict.fromkeys(query for run in runs for query in run)
    fused: dict[QueryId, list[Hit]] = {}
    for query in queries:
        scores: defaultdict[DocId, float] = defaultdict(float)
        for run in runs:
            hits = run.get(query, ())
            for hit, share in zip(hits, shares(hits) if hits else [], strict=True):
                scores[hit.document] += share
        fused[query] = best_hits(scores, depth)
    return fused
