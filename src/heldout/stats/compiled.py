"""The loops of `all_pairs` that numba compiles: all splits side by side, in whole numbers.

Numpy gives the same bytes where numba is not installed, and takes about seven times as long.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


_compile: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(nogil=True, cache=True)


@_compile
def _add_group(
    differences: NDArray[np.float64],
    group: NDArray[np.intp],
    member: NDArray[np.uint8],
    so_far: tuple[Any, Any, Whole, Whole, Whole],
    before: int,
) -> int:
    """Add queries with equal sizes, before which so many are; returns how many are positive."""
    rank, won, first, second, ties = so_far
    lanes, size, marks = len(rank), len(group), 0
    tied, ours = np.zeros(lanes, np.int32), np.zeros(lanes, np.int32)
    for query in group:
        row = member[query]
        for s in range(lanes):
            tied[s] += row[s]
        if differences[query] > 0:
            marks += 1
            for s in range(lanes):
                ours[s] += row[s]
    for s in range(lanes):
        mine, t, r = np.int64(ours[s]), np.int64(tied[s]), np.int64(rank[s])
        rest = size - t
        first[s] += mine * (2 * r + t + 1)
        second[s] += (marks - mine) * (2 * (before - r) + rest + 1)
        ties[0, s] += t * (t * t - 1)
        ties[1, s] += rest * (rest * rest - 1)
        won[s] += ours[s]
        rank[s] += tied[s]
    return marks


@_compile
def sum_signed_ranks(
    differences: NDArray[np.float64],
    keys: NDArray[np.generic],
    orders: NDArray[np.intp],
    member: NDArray[np.uint8],
    sums: tuple[Whole, Whole, Whole, Whole],
) -> None:
    """Add to sums of 0 what `all_pairs.SignedSums` holds of each pair.

    Args:
        differences: as `all_pairs.sum_signed_ranks`.
        keys: likewise.
        orders: the queries of each pair in order of their keys.
        member: likewise.
        sums: doubled rank sums, ties, wins and losses.
    """
    count, lanes = member.shape
    # Made here, so that the compiler knows that they lie apart
    rank, won = np.empty(lanes, np.int32), np.empty(lanes, np.int32)
    first, second = np.empty(lanes, np.int64), np.empty(lanes, np.int64)
    for p in range(len(orders)):
        rank[:], won[:], first[:], second[:] = 0, 0, 0, 0
        skip = 0
        while skip < count and differences[p, orders[p, skip]] == 0:
            skip += 1
        start, marked = skip, 0
        while start < count:
            query, end = orders[p, start], start + 1
            while end < count and keys[p, orders[p, end]] == keys[p, query]:
                end += 1
            if end > start + 1:
                so_far = (rank, won, first, second, sums[1][:, p])
                group = orders[p, start:end]
                marked += _add_group(differences[p], group, member, so_far, start - skip)
            elif differences[p, query] > 0:
                marked += 1
                above = start - skip + 1
                for s in range(lanes):
                    inside = np.int32(member[query, s])
                    own = rank[s] + inside
                    rank[s] = own
                    won[s] += inside
                    first[s] += 2 * inside * own
                    second[s] += 2 * (1 - inside) * (above - own)
            else:
                for s in range(lanes):
                    rank[s] += member[query, s]
            start = end
        for s in range(lanes):
            sums[0][0, p, s], sums[0][1, p, s] = first[s], second[s]
            sums[2][0, p, s], sums[2][1, p, s] = won[s], marked - won[s]
            sums[3][0, p, s] = rank[s] - won[s]
            sums[3][1, p, s] = count - skip - marked - (rank[s] - won[s])


@_compile
def rank_scores(
    pair: tuple[NDArray[np.float64], NDArray[np.float64]],
    below: tuple[NDArray[np.signedinteger], NDArray[np.signedinteger]],
    doubled: Whole,
    ties: Whole,
) -> None:
    """Rank the scores of two systems together, in both halves of every split.

    Args:
        pair: scores of A and of B, ascending.
        below: how many of the lowest 0, 1, … of each are in the first half: (1 + queries, splits).
        doubled: to be filled, shape (2, splits): twice B's rank sums, but for the ranks among its
            own.
        ties: likewise, the sum of t³ - t.
    """
    a, b = pair
    of_a, of_b = below
    count, lanes = of_a.shape
    first, second = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    ties[:] = 0
    low = start = 0
    while start < count - 1 or low < count - 1:
        high, end = low, start
        value = a[low] if low < count - 1 else np.inf
        value = min(value, b[start] if start < count - 1 else np.inf)
        while high < count - 1 and a[high] == value:
            high += 1
        while end < count - 1 and b[end] == value:
            end += 1
        size = end - start
        if size:
            both = low + high
            for s in range(lanes):
                inside, lower = of_b[end, s] - of_b[start, s], of_a[low, s] + of_a[high, s]
                first[s] += inside * lower
                second[s] += (size - inside) * (both - lower)
        if size + high - low > 1:
            for s in range(lanes):
                t = np.int64(of_b[end, s] - of_b[start, s] + of_a[high, s] - of_a[low, s])
                rest = size + high - low - t
                ties[0, s] += t * (t * t - 1)
                ties[1, s] += rest * (rest * rest - 1)
        low, start = high, end
    doubled[0], doubled[1] = first, second
