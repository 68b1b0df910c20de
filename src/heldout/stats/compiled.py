"""Loops that numba compiles: of `all_pairs`, of `sign_flips`, and of `rank_tests`.

All splits, or all flips, stand side by side in the innermost loops, where the processor takes many
at a time. The walk adds whole numbers, and the search compares what is never added, so nothing
depends on the order of operations.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from heldout.stats.exact import MidrankSums, Sorted

Whole = NDArray[np.int64]
Counts = NDArray[np.int32] | NDArray[np.int64]

_SHORT = 46_000
"""Sums of so many ranks, doubled, are below 2^31: the processor takes twice as many at a time."""


class _Pair(NamedTuple):
    """Where one pair's figures go, and what is counted on the way, for every split.

    Attributes:
        rank: elements of the first half so far.
        ours: labelled elements of the first half in a group of equal keys.
        theirs: the other ones.
        first: twice the rank sum in the first half.
        second: in the second half.
        ties: of the first half.
        other_ties: of the second half.
        labelled: labelled elements of the first half so far.
    """

    rank: Counts
    ours: NDArray[np.int32]
    theirs: NDArray[np.int32]
    first: Counts
    second: Counts
    ties: Whole
    other_ties: Whole
    labelled: Counts


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled, kept between processes where there is a folder to keep it in.

    Written out where it is called: a call for every element would take three times as long.
    """
    try:
        kept: Callable[..., Any] = numba.njit(nogil=True, inline="always", cache=True)(function)
    except RuntimeError:  # no folder can be written to
        kept = numba.njit(nogil=True, inline="always")(function)
    return kept


@_compile
def _add_one(pair: _Pair, row: NDArray[np.uint8], before: int) -> None:
    """A labelled element whose key no other has."""
    for s in range(len(row)):
        inside = np.int64(row[s])
        pair.first[s] += inside * 2 * (pair.rank[s] + 1)
        pair.second[s] += (1 - inside) * 2 * (before - pair.rank[s] + 1)
        pair.labelled[s] += inside
        pair.rank[s] += inside


@_compile
def _count_group(
    pair: _Pair,
    queries: NDArray[np.intp],
    labels: NDArray[np.bool_],
    member: NDArray[np.uint8],
) -> int:
    """Count the first half of a group; how many of the whole group are labelled."""
    pair.ours[:] = 0
    pair.theirs[:] = 0
    marked = 0
    for place in range(len(queries)):
        row = member[queries[place]]
        if labels[place]:
            marked += 1
            for s in range(len(row)):
                pair.ours[s] += row[s]
        else:
            for s in range(len(row)):
                pair.theirs[s] += row[s]
    return marked


@_compile
def _add_group(pair: _Pair, size: int, marked: int, before: int) -> None:
    """A group of equal keys that was counted."""
    for s in range(len(pair.rank)):
        mine = np.int64(pair.ours[s])
        tied = mine + np.int64(pair.theirs[s])
        rest = size - tied
        pair.first[s] += mine * (2 * pair.rank[s] + tied + 1)
        pair.second[s] += (marked - mine) * (2 * (before - pair.rank[s]) + rest + 1)
        pair.ties[s] += tied * (tied * tied - 1)
        pair.other_ties[s] += rest * (rest * rest - 1)
        pair.labelled[s] += mine
        pair.rank[s] += tied


def walk(elements: Sorted, member: NDArray[np.uint8], sums: MidrankSums) -> None:
    """As `all_pairs.walk_plain`."""
    dtype = np.int32 if elements.order.shape[1] <= _SHORT else np.int64
    _walk(elements, member, sums, np.empty((4, member.shape[1]), dtype))


@_compile
def _walk(elements: Sorted, member: NDArray[np.uint8], sums: MidrankSums, counts: Counts) -> None:
    count, splits = elements.order.shape[1], member.shape[1]
    ours, theirs = np.empty(splits, np.int32), np.empty(splits, np.int32)
    for p in range(len(elements.order)):
        order, labels, starts = elements.order[p], elements.labels[p], elements.starts[p]
        pair = _Pair(
            counts[0],
            ours,
            theirs,
            counts[1],
            counts[2],
            sums.ties[0, p],
            sums.ties[1, p],
            counts[3],
        )
        counts[:] = 0
        rank = pair.rank
        skip = elements.skip[p]
        marked = 0
        start = skip
        while start < count:
            end = start + 1
            while end < count and not starts[end]:
                end += 1
            if end == start + 1 and labels[start]:
                marked += 1
                _add_one(pair, member[order[start]], start - skip)
            elif end == start + 1:
                row = member[order[start]]
                for s in range(splits):
                    rank[s] += row[s]
            else:
                here = _count_group(pair, order[start:end], labels[start:end], member)
                _add_group(pair, end - start, here, start - skip)
                marked += here
            start = end
        for s in range(splits):
            inside = pair.labelled[s]
            sums.doubled[0, p, s] = pair.first[s]
            sums.doubled[1, p, s] = pair.second[s]
            sums.labelled[0, p, s] = inside
            sums.labelled[1, p, s] = marked - inside
            sums.others[0, p, s] = rank[s] - inside
            sums.others[1, p, s] = count - skip - rank[s] - (marked - inside)


@_compile
def merge(
    order: NDArray[np.intp],
    ordered: NDArray[np.float64],
    a: NDArray[np.intp],
    b: NDArray[np.intp],
    merged: Sorted,
) -> None:
    """Put the scores of two systems in one order, from the order of each; see `all_pairs.Halves`.

    Args:
        order: queries by rising score, shape (systems, queries).
        ordered: the scores in that order.
        a: places of the systems A.
        b: places of the systems B, whose scores are labelled.
        merged: to be filled, but for `skip`.
    """
    size = order.shape[1]
    for p in range(len(a)):
        first, second = ordered[a[p]], ordered[b[p]]
        i, j = 0, 0
        last = -np.inf
        for place in range(2 * size):
            label = i == size or (j < size and second[j] < first[i])
            if label:
                value = second[j]
                merged.order[p, place] = order[b[p], j]
                j += 1
            else:
                value = first[i]
                merged.order[p, place] = order[a[p], i]
                i += 1
            merged.labels[p, place] = label
            merged.starts[p, place] = value != last
            last = value


@_compile
def _reaches(row: NDArray[np.float32], other: NDArray[np.float32], least: np.float32) -> bool:
    """Whether two rows differ by so much somewhere."""
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
    """As `sign_flips.mark_plain`."""
    marks = np.zeros((last, last - first), np.bool_)
    start = 0
    for row in range(last - 1):
        for other in range(max(first, row + 1), last):
            least = limits[start + other - row - 1] - margin
            marks[row, other - first] = _reaches(scaled[row], scaled[other], least)
        start += len(scaled) - row - 1
    return marks


@_compile
def count_codes(
    rows: tuple[NDArray[np.uint8], NDArray[np.intp], NDArray[np.intp]],
    codes: NDArray[np.uint16],
    size: int,
    found: tuple[Whole, Whole, Whole],
) -> int:
    """Count the codes of pairs of rows.

    Args:
        rows: what all rows hold, and for each pair the first and the second of its rows.
        codes: for what a query has in the first row and in the second, from 0; `size` for none.
        size: how many codes there are.
        found: to be filled for each code that a pair has, ascending, pair by pair: the code, how
            many queries have it, and the place of the pair.

    Returns:
        How many were filled.
    """
    held, first, second = rows
    code_of, count_of, pair_of = found
    seen = np.zeros(size + 1, np.int64)
    filled = 0
    for pair in range(len(first)):
        a, b = held[first[pair]], held[second[pair]]
        for query in range(len(a)):
            seen[codes[a[query], b[query]]] += 1
        for code in range(size):
            if seen[code]:
                code_of[filled], count_of[filled], pair_of[filled] = code, seen[code], pair
                filled += 1
        seen[:] = 0
    return filled


@_compile
def sum_ranks(
    values: NDArray[np.float64],
    counts: Whole,
    ends: NDArray[np.intp],
    sums: tuple[Whole, Whole, Whole],
) -> None:
    """Rank the sizes of values as `exact.Samples.rank_sizes`, from the two ends of their order.

    Args:
        values: distinct ones of each sample, ascending, one sample after the other; none is 0.
        counts: how often each occurs.
        ends: shape (samples, 2): where each sample begins and ends.
        sums: to be filled: twice the rank sum of positive values, the sum of t³ - t over ties, and
            how many values are positive.
    """
    above, ties, wins = sums
    for sample in range(len(ends)):
        start, end = ends[sample, 0], ends[sample, 1]
        right = start
        while right < end and values[right] < 0:
            right += 1
        left = right - 1
        before = 0
        above[sample], ties[sample], wins[sample] = 0, 0, 0
        while left >= start or right < end:
            below = -values[left] if left >= start else np.inf
            over = values[right] if right < end else np.inf
            won, tied = 0, 0
            if over <= below:
                won = counts[right]
                right += 1
            if below <= over:
                tied = counts[left]
                left -= 1
            tied += won
            above[sample] += won * (2 * before + tied + 1)
            ties[sample] += tied * (tied * tied - 1)
            wins[sample] += won
            before += tied


_CUTS = 64
"""Cuts of one sample that are remembered: the later ones are nearer to what is looked for."""


class _Values(NamedTuple):
    """Distinct values, ascending, how often each occurs, and how many come before it."""

    values: NDArray[np.float64]
    counts: Whole
    before: Whole


class _Cuts(NamedTuple):
    """For each limit tried: sums up to it, the largest of them, and the smallest above it."""

    totals: Whole
    below: NDArray[np.float64]
    above: NDArray[np.float64]


@_compile
def _cut_sums(own: _Values, limit: float) -> tuple[int, float, float]:
    """How many sums of two values are up to a limit, the largest of them, and the next larger."""
    values, counts, before = own
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
def _search_sum(own: _Values, place: int, cuts: _Cuts, tried: int) -> tuple[float, int]:
    """The sum of two values at a place, and how many cuts are remembered now."""
    low, high = 2 * own.values[0], 2 * own.values[-1]
    size = own.before[-1]
    least, most = 0, size * (size + 1) // 2
    for cut in range(tried):
        if cuts.totals[cut] < place and cuts.above[cut] >= low:
            low, least = cuts.above[cut], cuts.totals[cut]
        elif cuts.totals[cut] >= place and cuts.below[cut] <= high:
            high, most = cuts.below[cut], cuts.totals[cut]
    step = 0
    while low < high:
        # Where it is if sums lie evenly; every third time in the middle, if they do not
        share = 0.5 if step % 3 == 2 else (place - least) / (most - least)  # noqa: PLR2004 - third
        limit = low + (high - low) * share
        if limit >= high:
            limit = low + (high - low) / 2
        if limit >= high:
            limit = low
        total, below, above = _cut_sums(own, limit)
        step += 1
        if tried < len(cuts.totals):
            cuts.totals[tried], cuts.below[tried], cuts.above[tried] = total, below, above
            tried += 1
        if total < place:
            low, least = above, total
        else:
            high, most = below, total
    return high, tried


@_compile
def find_averages(
    values: NDArray[np.float64],
    counts: Whole,
    ends: NDArray[np.intp],
    places: Whole,
    averages: NDArray[np.float64],
) -> None:
    """Averages of two values at some places in order, as `rank_tests.WalshAverages`, not rounded.

    Args:
        values: distinct ones of each sample, ascending, one sample after the other.
        counts: how often each occurs.
        ends: shape (samples, 2): where each sample begins and ends.
        places: shape (samples, wanted), from 1; 0 for none, which leaves the average as it is.
        averages: same shape, to be filled.
    """
    cuts = _Cuts(np.empty(_CUTS, np.int64), np.empty(_CUTS), np.empty(_CUTS))
    for sample in range(len(ends)):
        part = slice(ends[sample, 0], ends[sample, 1])
        before = np.zeros(ends[sample, 1] - ends[sample, 0] + 1, np.int64)
        before[1:] = np.cumsum(counts[part])
        own = _Values(values[part], counts[part], before)
        tried = 0
        for wanted in range(places.shape[1]):
            if places[sample, wanted] > 0:
                found, tried = _search_sum(own, places[sample, wanted], cuts, tried)
                averages[sample, wanted] = found / 2
