"""Do rows have another mean on a group of queries than on the rest? All groups and rows at once.

Each group of queries is compared with the queries outside it by Welch's t. Which queries form the
groups is then drawn again and again: all groups at once, so that overlapping ones stay so. The
largest |t| of a draw corrects for having looked at every row and every group.

Assumptions: queries are independent; under the hypothesis it says nothing of a query in which
groups it is. The t is studentised, so unequal variances inside and outside do little harm where
both sides are large. p = (1 + hits) / (1 + draws), never 0. Sources: Westfall and Young 1993 (the
largest t); Janssen 1997 (studentised permutation).
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.blocks import block_size, map_blocks

__all__ = ["Subgroups", "compare_subgroups"]

_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subgroups:
    """Every row inside and outside every group.

    Attributes:
        difference: float64, shape (rows, groups): mean inside less mean outside.
        error: its standard error; 0 where the row is constant on both sides.
        p: same shape, corrected over all rows and groups; NaN where undefined: the row is
            constant on both sides.
        draws: how many were made.
    """

    difference: NDArray[np.float64]
    error: NDArray[np.float64]
    p: NDArray[np.float64]
    draws: int


def compare_subgroups(
    values: NDArray[np.float64],
    member: NDArray[np.bool_],
    rng: Generator,
    *,
    draws: int = 9999,
    executor: Executor | None = None,
) -> Subgroups:
    """Compare all rows inside and outside of all groups.

    Args:
        values: finite, shape (rows, queries).
        member: shape (groups, queries): whether a query is in a group; each group has at least
            two queries, and at least two are outside.
        rng: where draws come from.
        draws: how many, >= 1.
        executor: where to compute; `None` for here.
    """
    centred = values - values.mean(axis=1, keepdims=True)
    # Of centred values, so that sums of squares lose nothing.
    powers = np.vstack([centred, centred**2])
    difference, error = _welch(powers, member[np.newaxis])
    found = _sizes(difference[0], error[0])
    size = block_size(member.size)
    blocks = map_blocks(_draw, powers, member, rng=rng, draws=draws, size=size, executor=executor)
    largest = np.sort(np.concatenate(blocks))
    hits = draws - np.searchsorted(largest, found - _SLACK, side="left")
    p = np.where(error[0] > 0, (1 + hits) / (1 + draws), np.nan)
    return Subgroups(difference=difference[0], error=error[0], p=p, draws=draws)


def _draw(
    powers: NDArray[np.float64], member: NDArray[np.bool_], rng: Generator, draws: int
) -> NDArray[np.float64]:
    """The largest |t| of each draw."""
    queries = member.shape[1]
    drawn = np.stack([member[:, rng.permutation(queries)] for _ in range(draws)])
    largest: NDArray[np.float64] = _sizes(*_welch(powers, drawn)).max(axis=(1, 2))
    return largest


def _sizes(difference: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
    """|t|; without an error it is 0, or endless where there is a difference all the same."""
    endless = np.where(np.abs(difference) > _SLACK, np.inf, 0.0)
    return np.where(error > 0, np.abs(difference) / np.where(error > 0, error, 1.0), endless)


def _welch(
    powers: NDArray[np.float64], member: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Difference of the means and its standard error, shape (draws, rows, groups) each.

    Args:
        powers: rows, then their squares, shape (2 * rows, queries).
        member: shape (draws, groups, queries).
    """
    draws, groups, queries = member.shape
    inside = member.reshape(draws * groups, queries).astype(np.float64)
    sums = (powers @ inside.T).reshape(2, -1, draws, groups).transpose(0, 2, 1, 3)
    total = powers.sum(axis=1).reshape(2, 1, -1, 1)
    count = member[0].sum(axis=1)
    mean_in, variance_in = _moments(sums[0], sums[1], count)
    rest = queries - count
    mean_out, variance_out = _moments(total[0] - sums[0], total[1] - sums[1], rest)
    variance = variance_in / count + variance_out / rest
    tiny = 1e-24 * (total[1] + 1)  # what rounding leaves of a variance of 0
    return mean_in - mean_out, np.sqrt(np.where(variance > tiny, variance, 0.0))


def _moments(
    sums: NDArray[np.float64], squares: NDArray[np.float64], count: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    means = sums / count
    return means, np.maximum(squares - sums * means, 0.0) / (count - 1)
