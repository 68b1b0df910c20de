"""Random draws in fixed blocks, the bootstrap over queries, and intervals from it.

Each block of draws has a generator of its own: how many workers share the blocks, and in which
order they finish, changes nothing. The same seed gives the same bytes on one core, on ten, and on a
cluster.

A trial draws queries with replacement. How often each was drawn, times the scores, gives the sums
of all systems at once: a product of two matrices and no loop (Craswell et al. 2021, §3.1).
Sums are exact (`stats.exact`), so a tie is a tie on every machine.

Assumptions: queries are drawn independently from those that the measure is meant for. Percentile
and BCa intervals are for one number; looking at many of them needs a correction
(`stats.sign_flips`). Sources: Efron and Tibshirani 1993, chapters 13 and 14.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from heldout.stats.exact import DECIMALS, Whole, mean_of_sums, whole_numbers

Found = TypeVar("Found")

_CELLS = 1 << 19
_DRAWS = 256
_TASKS = 32


def block_size(width: int) -> int:
    """Draws in a block: 256, fewer where a draw is wide, never fewer than 8.

    Args:
        width: numbers that a draw takes; a block then needs some 4 MB for each array, which
            is faster than more.
    """
    return min(_DRAWS, max(8, _CELLS // max(width, 1)))


def run_tasks(
    work: Callable[..., Found], tasks: Iterable[Sequence[Any]], executor: Executor | None
) -> Iterator[Found]:
    """Do some tasks, each with its own arguments.

    Args:
        work: a function of a module, so that it can be sent to another process.
        tasks: the arguments of each.
        executor: where to do them; `None` for here.

    Yields:
        What each gave, in their order. None is held here after that.
    """
    if executor is None:
        yield from (work(*task) for task in tasks)
        return
    futures = deque([executor.submit(work, *task) for task in tasks])
    while futures:
        yield futures.popleft().result()


Block = tuple[Generator, int]
"""A block's generator, and how many draws it has."""


def map_shares(
    work: Callable[..., Found],
    *shared: Any,
    rng: Generator,
    draws: int,
    size: int,
    executor: Executor | None = None,
) -> Iterator[Found]:
    """Divide all blocks of draws into shares, one for a task, and do them.

    Args:
        work: called as `work(*shared, blocks)` for each share; a function of a module, so that it
            can be sent to another process.
        shared: what every share needs.
        rng: the blocks' generators are spawned from it.
        draws: how many in all, >= 1.
        size: how many a block has; the last one may have fewer.
        executor: where to do it; `None` for here.

    Yields:
        What each share gave, in the order of the blocks. None is held here after that.
    """
    counts = [min(size, draws - start) for start in range(0, draws, size)]
    blocks = list(zip(rng.spawn(len(counts)), counts, strict=True))
    # Few tasks, since each may carry the scores to another process
    length = -(-len(blocks) // _TASKS)
    shares = [blocks[start : start + length] for start in range(0, len(blocks), length)]
    yield from run_tasks(work, ((*shared, share) for share in shares), executor)


def map_blocks(
    work: Callable[..., Found],
    *shared: Any,
    rng: Generator,
    draws: int,
    size: int,
    executor: Executor | None = None,
) -> list[Found]:
    """Do all blocks of draws, one by one.

    Args:
        work: called as `work(*shared, generator, draws)` for each block.
        shared: what every block needs.
        rng: the blocks' generators are spawned from it, as by `map_shares`.
        draws: how many in all, >= 1.
        size: how many a block has; the last one may have fewer.
        executor: where to do it; `None` for here.

    Returns:
        What each block gave, in the order of the blocks.
    """
    shares = map_shares(_do, work, shared, rng=rng, draws=draws, size=size, executor=executor)
    return [found for share in shares for found in share]


def _do(work: Callable[..., Found], shared: Sequence[Any], blocks: Sequence[Block]) -> list[Found]:
    return [work(*shared, rng, draws) for rng, draws in blocks]


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

    Source: Craswell et al. 2021, §3.1.
    """
    size = values.shape[1] if size is None else size
    whole = whole_numbers(values, summed=size)
    block = block_size(max(size, values.shape[1]))
    rows = np.arange(len(values)) * len(values) - 1
    counts, ties_met = np.zeros((len(values), len(values)), np.int64), 0
    for ranks, tied in map_shares(
        _rank_share, whole, size, ties, rng=rng, draws=trials, size=block, executor=executor
    ):
        np.add.at(counts.reshape(-1), (rows + ranks).ravel(), 1)
        ties_met += tied
    return BootstrapRanks(counts=counts, trials=trials, tied=ties_met)


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
    positions = np.broadcast_to(np.arange(1, means.shape[1] + 1), means.shape)
    equal = ordered[:, 1:] == ordered[:, :-1]
    if ties == "shared":
        positions = positions.copy()
        positions[:, 1:][equal] = 0
        positions = np.maximum.accumulate(positions, axis=1)
    ranks = np.empty(means.shape, np.int64)
    np.put_along_axis(ranks, order, positions, axis=1)
    return ranks, int(equal.any(axis=1).sum())


def _rank_share(
    whole: Whole, size: int, ties: TieRule, blocks: Sequence[Block]
) -> tuple[NDArray[np.int32], int]:
    """Ranks in each trial, shape (trials, systems), and how many trials are tied.

    They are counted where all shares meet: a table of systems by ranks is larger than they are.
    """
    found = [
        rank_rows(mean_of_sums(_sum_block(whole, size, rng, trials), whole, size), ties)
        for rng, trials in blocks
    ]
    ranks = np.concatenate([ranks.astype(np.int32) for ranks, _ in found])
    return ranks, sum(tied for _, tied in found)


def _sum_block(whole: Whole, size: int, rng: Generator, trials: int) -> NDArray[np.float64]:
    queries = whole.values.shape[1]
    drawn = rng.integers(0, queries, (trials, size), dtype=np.int32)
    drawn += np.arange(trials, dtype=np.int32)[:, np.newaxis] * queries
    counts = np.bincount(drawn.ravel(), minlength=trials * queries).reshape(trials, queries)
    sums: NDArray[np.floating] = counts.astype(whole.values.dtype) @ whole.values.T
    return sums.astype(np.float64)


class Interval(NamedTuple):
    """The ends of an interval for one number; `None` where it is undefined."""

    low: float | None
    high: float | None


_NONE = Interval(None, None)


def percentile_interval(draws: NDArray[np.float64], *, level: float = 0.95) -> Interval:
    """Return the quantiles of the draws; undefined where all are equal, or one is NaN.

    Args:
        draws: the number in each trial of a bootstrap, at least one.
        level: in (0, 1).
    """
    if not np.ptp(draws) > 0:
        return _NONE
    return Interval(*np.quantile(draws, ((1 - level) / 2, (1 + level) / 2)).tolist())


def bca_interval(
    draws: NDArray[np.float64],
    estimate: float,
    jackknife: NDArray[np.float64],
    *,
    level: float = 0.95,
) -> Interval:
    """Return quantiles of the draws, moved for their bias and for their acceleration.

    Args:
        draws: the number in each trial of a bootstrap, at least one.
        estimate: the number itself. Draws equal to it count as half below.
        jackknife: the number without each query in turn.
        level: in (0, 1).

    Returns:
        An interval that is undefined where all draws, or all of the jackknife, are equal, and
        where no draw lies on one side of the estimate.
    """
    below = (np.mean(draws < estimate) + np.mean(draws <= estimate)) / 2
    if np.ptp(draws) == 0 or np.ptp(jackknife) == 0 or below in (0, 1):
        return _NONE
    pull = jackknife.mean() - jackknife
    acceleration = np.sum(pull**3) / (6 * np.sum(pull**2) ** 1.5)
    bias = ndtri(below)
    at = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
    return Interval(*np.quantile(draws, ndtr(bias + at / (1 - acceleration * at))).tolist())
