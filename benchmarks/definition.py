"""Measures of one query by their definitions, for what the benchmark checks scores against."""

from collections.abc import Iterable, Sequence
from math import log2

__all__ = ["mean_scores", "score_query"]

_CUT = 10


def score_query(judged: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Scores of one query, at a run depth of at most 1,000.

    Args:
        judged: (rank from 1, grade) of its judged documents; rank 0 where the run has it not.
    """
    relevant = sorted(rank for rank, grade in judged if grade)
    found = [rank for rank in relevant if rank]
    first = 1.0 / found[0] if found else 0.0
    best = sorted((grade for _, grade in judged), reverse=True)[:_CUT]
    ideal = sum(grade / log2(rank + 1) for rank, grade in enumerate(best, 1))
    gain = sum(grade / log2(rank + 1) for rank, grade in judged if 0 < rank <= _CUT)
    precision = sum(index / rank for index, rank in enumerate(found, 1))
    return {
        "RR": first,
        "RR@10": first if found and found[0] <= _CUT else 0.0,
        "nDCG@10": gain / ideal if ideal else 0.0,
        "AP": precision / len(relevant) if relevant else 0.0,
        "R@1000": len(found) / len(relevant) if relevant else 0.0,
    }


def mean_scores(judged: Iterable[Sequence[tuple[int, int]]]) -> dict[str, float]:
    """Mean over queries of `score_query`."""
    values = [score_query(rows) for rows in judged]
    return {name: sum(value[name] for value in values) / len(values) for name in values[0]}
