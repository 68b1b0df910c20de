"""The bootstrap over queries: ranks, means, and intervals of a mean.

A trial draws queries with replacement. How often each was drawn, times the scores, gives the sums
of all systems at once: a product of two matrices and no loop (msmarco-benchmarking, section 3.1).
Sums are exact (`stats.whole`), so a tie is a tie on every machine.
"""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.blocks import add_blocks, block_size, map_blocks
from heldout.stats.exact import DECIMALS
from heldout.stats.whole import Whole, mean_of_sums, whole_numbers

__all__ = ["DIGITS", "BootstrapRanks", "TieRule", "bootstrap_means", "bootstrap_ranks", "rank_rows"]

TieRule = Literal["earlier", "shared"]
"""`earlier`: of equal systems the one that stands first gets the better rank.
`shared`: all of them get the best of their ranks."""

DIGITS = DECIMALS
"""Means are rounded to so many digits before they are ranked, where they are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BootstrapRanks:
    """Where systems ranked in the trials.

    Attributes:
        counts: int64, shape (systems, systems): in how many trials a system had rank column + 1.
        trials: how many there were.
        tied: trials in which some systems had equal means, so that the rule decided.
    """

    counts: NDArray[np.int64]
    trials: int
    tied: int


def bootstrap_ranks(
    values: NDArray[np.float64],
    rng: Generator,
    *,
    trials: int = 1000,
    size: int | None = None,
    ties: TieRule = "earlier",
    executor: Executor | None = None,
) -> BootstrapRanks:
    """Ranks by mean, the highest first, of systems on queries drawn with replacement.

    Args:
        values: finite scores, shape (systems, queries), both >= 1.
        rng: where draws come from.
        trials: how many, >= 1.
        size: queries that a trial draws; `None` for as many as there are.
        ties: what equal means get.
        executor: where to compute; `None` for here.

    Source: msmarco-benchmarking, section 3.1.
    """
    size = values.shape[1] if size is None else size
    whole = whole_numbers(values, summed=size)
    block = block_size(max(size, values.shape[1]))
    counts = add_blocks(
        _rank_block, whole, size, ties, rng=rng, draws=trials, size=block, executor=executor
    )
    systems = len(values)
    table = counts[:-1].reshape(systems, systems)
    return BootstrapRanks(counts=table, trials=trials, tied=int(counts[-1]))


def bootstrap_means(
    values: NDArray[np.float64],
    rng: Generator,
    *,
    trials: int = 1000,
    size: int | None = None,
    executor: Executor | None = None,
) -> NDArray[np.float64]:
    """Means of rows over queries drawn with replacement, the same draws for every row.

    Args:
        values: finite scores, shape (rows, queries), both >= 1.
        rng: where draws come from.
        trials: how many, >= 1.
        size: queries that a trial draws; `None` for as many as there are.
        executor: where to compute; `None` for here.

    Returns:
        float64, shape (trials, rows).
    """
    size = values.shape[1] if size is None else size
    whole = whole_numbers(values, summed=size)
    block = block_size(max(size, values.shape[1]))
    sums = map_blocks(_sum_block, whole, size, rng=rng, draws=trials, size=block, executor=executor)
    return mean_of_sums(np.concatenate(sums), whole, size)


def rank_rows(means: NDArray[np.float64], ties: TieRule) -> tuple[NDArray[np.int64], int]:
    """Ranks from 1 within each row, the highest value first.

    Args:
        means: shape (rows, systems).
        ties: what equal values get.

    Returns:
        Ranks in the shape of `means`, and the number of rows with equal values.
    """
    order = np.argsort(-means, axis=1, kind="stable")
    ordered = np.take_along_axis(means, order, axis=1)
    places = np.broadcast_to(np.arange(1, means.shape[1] + 1), means.shape)
    equal = ordered[:, 1:] == ordered[:, :-1]
    if ties == "shared":
        places = places.copy()
        places[:, 1:][equal] = 0
        places = np.maximum.accumulate(places, axis=1)
    ranks = np.empty(means.shape, np.int64)
    np.put_along_axis(ranks, order, places, axis=1)
    return ranks, int(equal.any(axis=1).sum())


def _rank_block(
    whole: Whole, size: int, ties: TieRule, rng: Generator, trials: int
) -> NDArray[np.int64]:
    """Trials by system and rank, in one row, with the number of tied trials behind them."""
    sums = _sum_block(whole, size, rng, trials)
    ranks, tied = rank_rows(mean_of_sums(sums, whole, size), ties)
    systems = len(whole.values)
    cells = np.arange(systems) * systems + ranks - 1
    counts = np.bincount(cells.ravel(), minlength=systems * systems + 1)
    counts[-1] = tied
    return counts


def _sum_block(whole: Whole, size: int, rng: Generator, trials: int) -> NDArray[np.float64]:
    queries = whole.values.shape[1]
    drawn = rng.integers(0, queries, (trials, size), dtype=np.int32)
    drawn += np.arange(trials, dtype=np.int32)[:, np.newaxis] * queries
    counts = np.bincount(drawn.ravel(), minlength=trials * queries).reshape(trials, queries)
    sums: NDArray[np.floating] = counts.astype(whole.values.dtype) @ whole.values.T
    return sums.astype(np.float64)
