"""Scores to measure the validity analyses on: many systems that answer the same queries alike."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.scoring.table import ScoreTable, table_of

__all__ = ["Simulated", "simulate"]

_SHARED = 0.81  # share of the variance of log rank that systems have in common
_LOWEST, _HIGHEST = -0.5, 0.36
_LEVEL, _SPREAD = 1.55, 2.9
_DEPTH = 100
_CUT = 10
_GRADES = (3, 2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Scores of simulated systems, shape (systems, queries) each.

    Attributes:
        ranks: of the first relevant document, 0 where it is not among the first 100.
        rr: RR@100, at most 101 values.
        rr_table: the same.
        ndcg: nDCG@10 of three documents of grades 3, 2 and 1: many values.
        ndcg_table: the same.
    """

    ranks: NDArray[np.int64]
    rr: NDArray[np.float64]
    rr_table: ScoreTable
    ndcg: NDArray[np.float64]
    ndcg_table: ScoreTable


def simulate(*, systems: int, queries: int, seed: int) -> Simulated:
    """Draw systems whose mean RR@100 goes in even steps of skill from about .23 to .53."""
    random = np.random.default_rng(seed)
    skill = np.linspace(_LOWEST, _HIGHEST, systems)[:, None]
    gains = np.zeros((systems, queries))
    ranks = np.zeros((systems, queries), np.int64)
    for grade in _GRADES:
        ease = np.sqrt(_SHARED) * random.normal(size=queries)
        own = np.sqrt(1 - _SHARED) * random.normal(size=(systems, queries))
        log_rank = np.minimum(_LEVEL - _SPREAD * (skill + ease + own), 20)
        rank = np.floor(np.exp(log_rank)).astype(np.int64) + 1
        gains += np.where(rank <= _CUT, grade / np.log2(rank + 1), 0)
        if grade == _GRADES[0]:
            ranks = np.where(rank <= _DEPTH, rank, 0)
    ideal = sum(grade / np.log2(place + 1) for place, grade in enumerate(_GRADES, 1))
    rr = np.divide(1, ranks, out=np.zeros(ranks.shape), where=ranks > 0)
    ndcg = gains / ideal
    return Simulated(
        ranks=ranks, rr=rr, rr_table=_table_of(rr), ndcg=ndcg, ndcg_table=_table_of(ndcg)
    )


def _table_of(values: NDArray[np.float64]) -> ScoreTable:
    queries = [f"q{number:05}" for number in range(values.shape[1])]
    rows = enumerate(values.tolist())
    return table_of({f"s{n:04}": dict(zip(queries, row, strict=True)) for n, row in rows})
