"""Loops that numba compiles: of `all_pairs`, all splits side by side, `sign_flips`, `rank_tests`.

Numpy gives the same bytes where numba is not installed, and takes up to seven times as long.
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


@_compile
def _reaches(row: NDArray[np.float32], other: NDArray[np.float32], least: np.float32) -> bool:
    reached = False
    for flip in range(len(row)):
        reached |= abs(other[flip] - row[flip]) >= least
    return reached


@_compile
def mark(
    scaled: NDArray[np.float32],
    limits: NDArray[np.float32],
    margin: np.float32,
    first: int,
    last: int,
) -> NDArray[np.bool_]:
    """Mark pairs as `sign_flips` does by numpy."""
    marks = np.zeros((last, last - first), np.bool_)
    start = 0
    for row in range(last - 1):
        for other in range(max(first, row + 1), last):
            least = limits[start + other - row - 1] - margin
            marks[row, other - first] = _reaches(scaled[row], scaled[other], least)
        start += len(scaled) - row - 1
    return marks


@_compile
def _cut(
    values: NDArray[np.float64], counts: Whole, before: Whole, limit: float
) -> tuple[int, float, float]:
    """Count the sums of two values up to a limit; also the largest of them, and the next larger."""
    total, below, above = 0, -np.inf, np.inf
    last = len(values) - 1
    for first in range(len(values)):
        while last >= first and values[first] + values[last] > limit:
            above = min(above, values[first] + values[last])
            last -= 1
        if last < first:
            break
        below = max(below, values[first] + values[last])
        each = counts[first]
        total += each * (before[last + 1] - before[first + 1]) + each * (each + 1) // 2
    return total, below, above


@_compile
def find_averages(
    values: NDArray[np.float64],
    counts: Whole,
    ends: NDArray[np.intp],
    positions: Whole,
    averages: NDArray[np.float64],
) -> None:
    """Find averages of two values as `rank_tests.WalshAverages`, not rounded.

    Args:
        values: distinct ones of each sample, ascending, one sample after the other.
        counts: how often each occurs.
        ends: shape (samples, 2): where each sample begins and ends.
        positions: shape (samples, wanted), from 1; 0 for none, which leaves the average as it is.
        averages: same shape, to be filled.
    """
    for sample in range(len(ends)):
        start, end = ends[sample]
        own, each = values[start:end], counts[start:end]
        before = np.zeros(end - start + 1, np.int64)
        before[1:] = np.cumsum(each)
        size = before[-1]
        for wanted in range(positions.shape[1]):
            position = positions[sample, wanted]
            if position == 0:
                continue
            low, high, least, most = 2 * own[0], 2 * own[-1], 0, size * (size + 1) // 2
            step = 0
            while low < high and least + 1 < position < most:
                # Where it is if sums lie evenly; every third time in the middle, if they do not
                share = 0.5 if step % 3 == 2 else (position - least) / (most - least)  # noqa: PLR2004
                limit = low + (high - low) * share
                if limit >= high:
                    limit = low
                step += 1
                total, below, above = _cut(own, each, before, limit)
                if total < position:
                    low, least = above, total
                else:
                    high, most = below, total
            averages[sample, wanted] = (low if position == least + 1 else high) / 2
