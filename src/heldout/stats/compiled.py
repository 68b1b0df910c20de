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

from heldout.stats.rank_correlation import MidrankSums, Sorted

Whole = NDArray[np.int64]

_LANES = 64
"""Splits are padded to a multiple of so many, in which nobody is in the first half."""


class _Sums(NamedTuple):
    """What is counted of a pair in every split, in 16 bits where that is enough.

    Attributes:
        rank: elements of the first half so far.
        first: twice the rank sum in the first half grows by twice this.
        second: likewise in the second half.
        labelled: labelled elements of the first half so far.
        ours: labelled elements of the first half in a group of equal keys.
        theirs: the other ones.
    """

    rank: Any
    first: Any
    second: Any
    labelled: Any
    ours: Any
    theirs: Any


class _Totals(NamedTuple):
    """The same in 64 bits.

    Attributes:
        first: twice the rank sum in the first half.
        second: in the second half.
        ties: sum of t³ - t in the first half.
        other_ties: in the second half.
    """

    first: Whole
    second: Whole
    ties: Whole
    other_ties: Whole


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled, kept between processes where there is a folder to keep it in.

    Written out where it is called: a call for every element would take three times as long.
    """
    try:
        kept: Callable[..., Any] = numba.njit(nogil=True, inline="always", cache=True)(function)
    except RuntimeError:  # no folder can be written to
        kept = numba.njit(nogil=True, inline="always")(function)
    return kept


def pad_splits(member: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The splits, with some in which nobody is in the first half."""
    queries, splits = member.shape
    padded = np.zeros((queries, -(-splits // _LANES) * _LANES), np.uint8)
    padded[:, :splits] = member
    return padded


def _type(elements: int) -> Any:
    """A type that holds so many elements."""
    return np.uint16 if elements <= np.iinfo(np.uint16).max else np.uint32


@_compile
def _clear(sums: _Sums, totals: _Totals) -> None:
    sums.rank[:], sums.first[:], sums.second[:], sums.labelled[:] = 0, 0, 0, 0
    totals.first[:], totals.second[:], totals.ties[:], totals.other_ties[:] = 0, 0, 0, 0


@_compile
def _add_up(sums: _Sums, totals: _Totals) -> None:
    """Carry over what 16 bits may not hold with one element more."""
    for s in range(len(sums.first)):
        totals.first[s] += 2 * np.int64(sums.first[s])
        totals.second[s] += 2 * np.int64(sums.second[s])
    sums.first[:], sums.second[:] = 0, 0


@_compile
def _count_group(counts: Any, queries: NDArray[np.intp], member: NDArray[np.uint8]) -> None:
    """How many of some elements are in the first half."""
    counts[:] = 0
    for place in range(len(queries)):
        row = member[queries[place]]
        for s in range(len(row)):
            counts[s] += row[s]


def walk(elements: Sorted, member: NDArray[np.uint8], sums: MidrankSums) -> None:
    """As `all_pairs.walk_plain`."""
    padded = pad_splits(member)
    dtype = _type(elements.order.shape[1])
    _walk(elements, padded, sums, dtype, np.iinfo(dtype).max)


@_compile
def _walk(
    elements: Sorted,
    member: NDArray[np.uint8],
    found: MidrankSums,
    dtype: Any,
    most: int,
) -> None:
    lanes = member.shape[1]
    # Made here, so that the compiler knows that they lie apart
    rank, first, second = np.empty(lanes, dtype), np.empty(lanes, dtype), np.empty(lanes, dtype)
    labelled, ours, theirs = np.empty(lanes, dtype), np.empty(lanes, dtype), np.empty(lanes, dtype)
    sums = _Sums(rank, first, second, labelled, ours, theirs)
    whole = np.empty((4, lanes), np.int64)
    totals = _Totals(whole[0], whole[1], whole[2], whole[3])
    count, splits = elements.order.shape[1], found.doubled.shape[2]
    for p in range(len(elements.order)):
        order, labels, starts = elements.order[p], elements.labels[p], elements.starts[p]
        _clear(sums, totals)
        skip = elements.skip[p]
        marked, spent, start = 0, 0, skip
        while start < count:
            end = start + 1
            while end < count and not starts[end]:
                end += 1
            if end == start + 1:
                query = order[start]
                if labels[start]:
                    marked += 1
                    spent += start - skip + 1
                    if spent > most:
                        _add_up(sums, totals)
                        spent = start - skip + 1
                    above = dtype(start - skip + 1)
                    for s in range(lanes):
                        inside = dtype(member[query, s])
                        own = dtype(rank[s] + inside)
                        rank[s] = own
                        first[s] += own * inside
                        second[s] += (above - own) * (dtype(1) - inside)
                        labelled[s] += inside
                else:
                    for s in range(lanes):
                        rank[s] += member[query, s]
            else:
                _count_group(sums.theirs, order[start:end], member)
                mine = order[start:end][labels[start:end]]
                _count_group(sums.ours, mine, member)
                _add_group(sums, totals, (end - start, len(mine), start - skip))
                marked += len(mine)
            start = end
        _add_up(sums, totals)
        for s in range(splits):
            inside = np.int64(sums.labelled[s])
            found.doubled[0, p, s] = totals.first[s]
            found.doubled[1, p, s] = totals.second[s]
            found.ties[0, p, s] = totals.ties[s]
            found.ties[1, p, s] = totals.other_ties[s]
            found.labelled[0, p, s] = inside
            found.labelled[1, p, s] = marked - inside
            found.others[0, p, s] = np.int64(rank[s]) - inside
            found.others[1, p, s] = count - skip - np.int64(rank[s]) - (marked - inside)


@_compile
def _add_group(sums: _Sums, totals: _Totals, group: tuple[int, int, int]) -> None:
    """A group of equal keys: its size, how many are labelled, and how many elements come before."""
    size, marked, before = group
    for s in range(len(sums.rank)):
        mine, tied, rank = np.int64(sums.ours[s]), np.int64(sums.theirs[s]), np.int64(sums.rank[s])
        rest = size - tied
        totals.first[s] += mine * (2 * rank + tied + 1)
        totals.second[s] += (marked - mine) * (2 * (before - rank) + rest + 1)
        totals.ties[s] += tied * (tied * tied - 1)
        totals.other_ties[s] += rest * (rest * rest - 1)
        sums.labelled[s] += sums.ours[s]
        sums.rank[s] += sums.theirs[s]


@_compile
def sort_sizes(differences: NDArray[np.float64], found: Sorted) -> None:
    """Put the differences of each pair in order of their size: `all_pairs.sort_elements`.

    Each is first put into one of many drawers of equal width, which leaves little to be sorted.

    Args:
        differences: shape (pairs, elements).
        found: to be filled, but not in the places of differences of 0.
    """
    count = differences.shape[1]
    drawer, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    sizes = np.empty(count)
    for p in range(len(differences)):
        own, order = differences[p], found.order[p]
        skip = _fill_drawers(own, order, sizes, drawer, ends)
        if not _insert(order, sizes, skip):
            order[:] = np.argsort(np.abs(own))
        last = 0.0
        for at in range(skip, count):
            size = abs(own[order[at]])
            found.labels[p, at] = own[order[at]] > 0
            found.starts[p, at] = size != last
            last = size
        found.skip[p] = skip


@_compile
def _fill_drawers(
    own: NDArray[np.float64],
    order: NDArray[np.intp],
    sizes: NDArray[np.float64],
    drawer: Whole,
    ends: Whole,
) -> int:
    """Nearly sort sizes, after as many places as differences are 0; returns how many."""
    count = len(own)
    largest = np.abs(own).max()
    factor = (count - 1) / largest if largest else 0.0
    ends[:] = 0
    before = 0
    for place in range(count):
        if own[place] == 0:
            before += 1
        else:
            drawer[place] = int(abs(own[place]) * factor)
            ends[drawer[place]] += 1
    skip = before
    for at in range(count):
        before, ends[at] = before + ends[at], before
    for place in range(count):
        if own[place] != 0:
            at = ends[drawer[place]]
            ends[drawer[place]] += 1
            order[at], sizes[at] = place, abs(own[place])
    return skip


@_compile
def _insert(order: NDArray[np.intp], sizes: NDArray[np.float64], skip: int) -> bool:
    """Sort what is nearly sorted; whether it was, which it is not with most in few drawers."""
    moves = 0
    for at in range(skip + 1, len(order)):
        size, place, to = sizes[at], order[at], at
        while to > skip and sizes[to - 1] > size:
            sizes[to], order[to] = sizes[to - 1], order[to - 1]
            to -= 1
        sizes[to], order[to] = size, place
        moves += at - to
        if moves > _MOVES * len(order):
            break
    return moves <= _MOVES * len(order)


_MOVES = 16


def rank_scores(
    scores: tuple[NDArray[np.intp], NDArray[np.float64]],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    member: NDArray[np.uint8],
    found: tuple[Whole, Whole],
) -> None:
    """Rank the scores of two systems together, in both halves of every split.

    Args:
        scores: queries by rising score, shape (systems, queries), and the scores in that order.
        pairs: places of the systems A and B; fastest where those of one A follow each other.
        member: shape (queries, splits): 1 where a query is in the first half, else 0.
        found: to be filled, shape (2, pairs, splits): twice the sum of B's ranks, and the sum of
            t³ - t over ties.
    """
    padded = pad_splits(member)
    dtype = _type(len(member))
    _rank_scores(scores, pairs, padded, found, (dtype, np.iinfo(dtype).max))


@_compile
def _rank_scores(
    scores: tuple[NDArray[np.intp], NDArray[np.float64]],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    member: NDArray[np.uint8],
    found: tuple[Whole, Whole],
    kind: tuple[Any, int],
) -> None:
    orders, ordered = scores
    dtype, most = kind
    count, lanes = member.shape
    rank, first, second = np.empty(lanes, dtype), np.empty(lanes, dtype), np.empty(lanes, dtype)
    labelled, ours, theirs = np.empty(lanes, dtype), np.empty(lanes, dtype), np.empty(lanes, dtype)
    sums = _Sums(rank, first, second, labelled, ours, theirs)
    whole = np.empty((4, lanes), np.int64)
    totals = _Totals(whole[0], whole[1], whole[2], whole[3])
    # How many of the first half are among A's lowest so many
    below = np.empty((count + 1, lanes), dtype)
    # Whether A's next score is another one
    single = np.ones(count, np.bool_)
    counted = -1
    for p in range(len(pairs[0])):
        a, b = pairs[0][p], pairs[1][p]
        if a != counted:
            _count_below(below, orders[a], member)
            single[:-1] = ordered[a][:-1] != ordered[a][1:]
            counted = a
        scores_a, scores_b, order = ordered[a], ordered[b], orders[b]
        _clear(sums, totals)
        low, start, spent = 0, 0, 0
        while start < count:
            value = scores_b[start]
            while low < count and scores_a[low] < value and single[low]:
                low += 1
            if low < count and scores_a[low] < value:
                low = _pass_lower(sums, totals, below, scores_a[low:], (low, value))
            end = _end_of(scores_b, start)
            high = _end_of(scores_a, low) if low < count and scores_a[low] == value else low
            if end == start + 1 and high == low:
                spent += low
                if spent > most:
                    _add_up(sums, totals)
                    spent = low
                query, all_below = order[start], dtype(low)
                for s in range(lanes):
                    inside, own = dtype(member[query, s]), dtype(below[low, s])
                    first[s] += own * inside
                    second[s] += (all_below - own) * (dtype(1) - inside)
            else:
                _count_group(sums.ours, order[start:end], member)
                _add_ties(sums, totals, (below[low], below[high]), (low, high, end - start))
            start, low = end, high
        _pass_lower(sums, totals, below, scores_a[low:], (low, np.inf))
        _add_up(sums, totals)
        _write_ranks(found, p, totals, below[count], count)


@_compile
def _count_below(below: Any, order: NDArray[np.intp], member: NDArray[np.uint8]) -> None:
    below[0] = 0
    for place in range(len(order)):
        query = order[place]
        for s in range(member.shape[1]):
            below[place + 1, s] = below[place, s] + member[query, s]


@_compile
def _end_of(values: NDArray[np.float64], start: int) -> int:
    """Where the values that are equal to one end, in ascending order."""
    end = start + 1
    while end < len(values) and values[end] == values[start]:
        end += 1
    return end


@_compile
def _pass_lower(
    sums: _Sums,
    totals: _Totals,
    below: Any,
    scores: NDArray[np.float64],
    where: tuple[int, float],
) -> int:
    """Go on to A's first score that is not below a limit; of those below only ties count."""
    low, limit = where
    at = 0
    while at < len(scores) and scores[at] < limit:
        end = _end_of(scores, at)
        if end > at + 1:
            sums.ours[:] = 0
            _add_ties(sums, totals, (below[low + at], below[low + end]), (low + at, low + end, 0))
        at = end
    return low + at


@_compile
def _write_ranks(
    found: tuple[Whole, Whole], p: int, totals: _Totals, size: Any, count: int
) -> None:
    """Twice B's rank sums: what is below in A, and the ranks among B's own."""
    doubled, ties = found
    for s in range(doubled.shape[2]):
        inside = np.int64(size[s])
        doubled[0, p, s] = totals.first[s] + inside * (inside + 1)
        doubled[1, p, s] = totals.second[s] + (count - inside) * (count - inside + 1)
        ties[0, p, s] = totals.ties[s]
        ties[1, p, s] = totals.other_ties[s]


@_compile
def _add_ties(
    sums: _Sums, totals: _Totals, below: tuple[Any, Any], group: tuple[int, int, int]
) -> None:
    """Equal scores: of A from one place to another, and so many of B, which are in `ours`."""
    low, high, others = group
    for s in range(len(sums.ours)):
        mine, lower = np.int64(sums.ours[s]), np.int64(below[0][s])
        theirs = np.int64(below[1][s]) - lower
        rest, other = others - mine, high - low - theirs
        totals.first[s] += mine * (2 * lower + theirs)
        totals.second[s] += rest * (2 * (low - lower) + other)
        tied, untied = mine + theirs, rest + other
        totals.ties[s] += tied * (tied * tied - 1)
        totals.other_ties[s] += untied * (untied * untied - 1)


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
