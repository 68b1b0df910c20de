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
    # Centred, so that sums of squares lose nothing.
    centred = values - values.mean(axis=1, keepdims=True)
    difference, error = _welch(centred, member)
    found = _sizes(difference, error)
    width = max(values.shape[1], values.shape[0] * len(member))
    blocks = map_blocks(
        _draw, centred, member, rng=rng, draws=draws, size=block_size(width), executor=executor
    )
    largest = np.sort(np.concatenate(blocks))
    hits = draws - np.searchsorted(largest, found - _SLACK, side="left")
    p = np.where(error > 0, (1 + hits) / (1 + draws), np.nan)
    return Subgroups(difference=difference, error=error, p=p, draws=draws)


def _draw(
    centred: NDArray[np.float64], member: NDArray[np.bool_], rng: Generator, draws: int
) -> NDArray[np.float64]:
    """The largest |t| of each draw."""
    return np.array(
        [_sizes(*_welch(centred, rng.permutation(member, axis=1))).max() for _ in range(draws)]
    )


def _sizes(difference: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
    """|t|; without an error it is 0, or endless where there is a difference all the same."""
    endless = np.where(np.abs(difference) > _SLACK, np.inf, 0.0)
    return np.where(error > 0, np.abs(difference) / np.where(error > 0, error, 1.0), endless)


def _welch(
    centred: NDArray[np.float64], member: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Difference of the means and its standard error, shape (rows, groups) each."""
    inside = member.T.astype(np.float64)
    squared = centred**2
    total, total_squares = centred.sum(axis=1)[:, None], squared.sum(axis=1)[:, None]
    count = member.sum(axis=1)
    sums, squares = centred @ inside, squared @ inside
    mean_in, variance_in = _moments(sums, squares, count)
    rest = member.shape[1] - count
    mean_out, variance_out = _moments(total - sums, total_squares - squares, rest)
    variance = variance_in / count + variance_out / rest
    tiny = 1e-24 * (total_squares + 1)  # what rounding leaves of a variance of 0
    return mean_in - mean_out, np.sqrt(np.where(variance > tiny, variance, 0.0))


def _moments(
    sums: NDArray[np.float64], squares: NDArray[np.float64], count: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    means = sums / count
    return means, np.maximum(squares - sums * means, 0.0) / (count - 1)
