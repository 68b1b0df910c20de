"""Every pair of systems at once: tests in both halves of many splits.

What a loop over pairs, splits and tests does one call at a time is done here with what pairs and
splits have in common: queries are sorted once for a pair and ranked in all splits side by side,
and histograms of a system's scores serve all of its pairs. The p-values are those of `tests`.

Rank sums: equal values share their mean rank. Sums of ranks are doubled, so all figures are whole
numbers.

Histograms: two samples' ranks and a sample's median follow from how often each value occurs, and
sums over all pairs of histograms are matrix products. Counts are whole numbers below 2^53, so
products of float64 are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.stats import batches
from heldout.stats.exact import DECIMALS, ValueScale, load_compiled, scale_of

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histograms:
    """Counts of values.

    Attributes:
        codes: int32, shape (systems, queries): place of each score among the values.
        counts: int32, shape (2, systems, values, splits): of the first half, then of the second.
    """

    codes: NDArray[np.int32]
    counts: NDArray[np.int32]

    def rank_sums(
        self, a: NDArray[np.intp], b: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Twice the sums of B's ranks among the scores of A and B, and the sums of t³ - t.

        Args:
            a: places of the systems A.
            b: places of the systems B.

        Returns:
            Shape (2, pairs, splits) each.
        """
        systems_a, row = np.unique(a, return_inverse=True)
        systems_b, column = np.unique(b, return_inverse=True)
        ours, theirs = self._of(systems_a), self._of(systems_b).swapaxes(2, 3)
        below = 2 * np.cumsum(ours, axis=3) - ours  # twice those of A below a value, ties half
        size = ours[:, :, :1].sum(axis=3)
        cubes = (ours**3).sum(axis=3)[:, :, row] + (theirs**3).sum(axis=2)[:, :, column]
        mixed = (ours * ours) @ theirs + ours @ (theirs * theirs)
        return (
            _whole((below @ theirs)[:, :, row, column] + size * (size + 1)),
            _whole(cubes + 3 * mixed[:, :, row, column] - 2 * size),
        )

    def medians(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The median of each system, shape (2, systems, splits).

        Args:
            values: what the codes stand for, ascending.
        """
        below = np.cumsum(self.counts, axis=2)
        size = below[:, :, -1:]
        low, high = (
            values[(below <= position).sum(axis=2)] for position in ((size - 1) // 2, size // 2)
        )
        middle: NDArray[np.float64] = (low + high) / 2
        return middle

    def _of(self, systems: NDArray[np.intp]) -> NDArray[np.float64]:
        """Counts of some systems, shape (2, splits, systems, values)."""
        chosen = self.counts[:, systems].transpose(0, 3, 1, 2)
        return np.ascontiguousarray(chosen, dtype=np.float64)


def count_values(codes: NDArray[np.int32], member: NDArray[np.uint8]) -> Histograms:
    """Count the values of every system.

    Args:
        codes: shape (systems, queries), from 0.
        member: shape (queries, splits): 1 where a query is in the first half, else 0.
    """
    counts = np.zeros((2, len(codes), int(codes.max()) + 1, member.shape[1]), np.int32)
    for system, row in enumerate(codes):
        totals = np.bincount(row, minlength=counts.shape[2])
        present = np.flatnonzero(totals)
        begins = (np.cumsum(totals) - totals)[present]
        rows = member[np.argsort(row, kind="stable")]
        counts[0, system, present] = np.add.reduceat(rows, begins, axis=0, dtype=np.int32)
        counts[1, system] = totals[:, None] - counts[0, system]
    return Histograms(codes=codes, counts=counts)


def _whole(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """As whole numbers, the splits last."""
    return np.rint(numbers).astype(np.int64).swapaxes(1, 2)


class SignedSums(NamedTuple):
    """Whole numbers, int64 of shape (2, pairs, splits): of the first half, then of the second.

    Attributes:
        doubled: twice the sum of the mean ranks of positive differences, by their size.
        ties: sum of t³ - t over groups of t equal sizes.
        wins: positive differences.
        losses: negative differences.
    """

    doubled: NDArray[np.int64]
    ties: NDArray[np.int64]
    wins: NDArray[np.int64]
    losses: NDArray[np.int64]


_DIGITS = 2


def sum_signed_ranks(
    differences: NDArray[np.float64], keys: NDArray[np.generic], member: NDArray[np.uint8]
) -> SignedSums:
    """Rank the sizes of differences that are not 0, in both halves of every split.

    Args:
        differences: shape (pairs, queries).
        keys: same shape, ascending with the size, equal where sizes are, and least for 0.
        member: shape (queries, splits): 1 where a query is in the first half, else 0.
    """
    shape = (2, len(differences), member.shape[1])
    sums = SignedSums(*(np.zeros(shape, np.int64) for _ in SignedSums._fields))
    # 16 bits are sorted by their digits
    orders = np.argsort(keys, axis=1, kind="stable" if keys.itemsize <= _DIGITS else None)
    if loops := load_compiled():
        loops.sum_signed_ranks(differences, keys, orders, member, tuple(sums))
        return sums
    inside = np.ascontiguousarray(member.T, dtype=np.float64)
    for pair, (own, order) in enumerate(zip(differences, orders, strict=True)):
        queries = order[np.count_nonzero(own == 0) :]
        if len(queries):
            for into, found in zip(
                sums,
                _sum_ranks(own[queries] > 0, keys[pair, queries], queries, inside),
                strict=True,
            ):
                into[:, pair] = found
    return sums


def _sum_ranks(
    label: NDArray[np.bool_], keys: NDArray[np.generic], queries: Indices, inside: Floats
) -> tuple[tuple[Floats, Floats], ...]:
    """As `SignedSums`, of the queries of one pair in order of their keys."""
    begins = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    sizes = np.diff(begins, append=len(queries)).astype(np.float64)
    marks = np.add.reduceat(label, begins, dtype=np.float64)
    if len(begins) == len(queries):
        tied = inside.take(queries, axis=1)
        ours = tied * marks
    else:
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

        # A sparse product gathers and adds in one go
        cells = (queries, np.append(begins, len(queries)))
        shape = (len(begins), inside.shape[1])
        tied = (csr_array((np.ones(len(queries)), *cells), shape=shape) @ inside.T).T
        ours = (csr_array((label.astype(np.float64), *cells), shape=shape) @ inside.T).T
    ranks, whole = np.cumsum(tied, axis=1), np.cumsum(sizes)
    total, wins = ranks[:, -1].copy(), ours.sum(axis=1)
    # Twice the mean rank of a group, less 1
    ranks *= 2
    ranks -= tied
    whole = 2 * whole - sizes
    above = np.einsum("sg,sg->s", ours, ranks)
    rest = marks @ whole - ranks @ marks - ours @ whole + above
    ties, others = np.zeros((2, len(total)))
    if len(begins) < len(queries):
        ties = np.einsum("sg,sg,sg->s", tied, tied, tied) - total
        np.subtract(sizes, tied, out=tied)
        others = np.einsum("sg,sg,sg->s", tied, tied, tied) - (len(queries) - total)
    won = float(marks.sum())
    return (
        (above + wins, rest + won - wins),
        (ties, others),
        (wins, won - wins),
        (total - wins, len(queries) - total - won + wins),
    )


PairedTest = Literal["sign", "rank-sum", "signed-rank", "t"]
"""The tests that are made of every pair, by their names in `heldout.stats.tests.TESTS`."""

_UNSURE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Halves:
    """Scores of systems, and the splits of the queries in two.

    Attributes:
        values: shape (systems, queries).
        member: uint8, shape (queries, splits): 1 where a query is in the first half, else 0.
        scale: of the values, where they are few and exact.
        histograms: with a scale, how often each system has each value in each half.
        order: without one, the queries by rising score for each system; else empty.
        ordered: likewise the scores in that order, rounded to 1e-12.
    """

    values: Floats
    member: NDArray[np.uint8]
    scale: ValueScale | None
    histograms: Histograms | None
    order: NDArray[np.intp]
    ordered: Floats

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Queries in each half of each split, shape (2, splits)."""
        first = self.member.sum(axis=0, dtype=np.int64)
        return np.stack((first, len(self.member) - first))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfTests:
    """Pairs of systems A and B in both halves of every split, shape (2, pairs, splits) each.

    Attributes:
        means: mean difference B - A, rounded to 1e-12.
        p: two-sided p-values by test; NaN where undefined.
    """

    means: Floats
    p: Mapping[PairedTest, Floats] = field(default_factory=dict)


def tile_pairs(systems: int, *, size: int = 12) -> list[tuple[Indices, Indices]]:
    """Every two of so many systems, in tiles of few systems each.

    Args:
        systems: how many there are.
        size: most systems on a side of a tile.

    Returns:
        For each tile the places of the systems A and B, A before B.
    """
    a, b = np.triu_indices(systems, 1)
    tile = (a // size) * systems + b // size
    order = np.argsort(tile, kind="stable")
    cuts = np.flatnonzero(np.diff(tile[order])) + 1
    if not len(order):
        return []
    return list(zip(np.split(a[order], cuts), np.split(b[order], cuts), strict=True))


def split_scores(values: ArrayLike, first: ArrayLike) -> Halves:
    """Prepare scores for `compare_pairs`.

    Args:
        values: finite scores, shape (systems, queries).
        first: bool, shape (splits, queries): whether a query is in the first half. Each half
            has two queries or more.
    """
    scores = np.asarray(values, np.float64)
    member = np.ascontiguousarray(np.asarray(first, np.bool_).T).astype(np.uint8)
    if not 2 <= member.sum(axis=0).min() <= member.sum(axis=0).max() <= len(member) - 2:  # noqa: PLR2004 - a variance needs two
        raise ValueError("a half has fewer than two queries")
    scale = scale_of(scores)
    histograms = None if scale is None else count_values(scale.codes(scores), member)
    rounded = np.round(scores if scale is None else scores[:0], DECIMALS) + 0.0
    order = np.argsort(rounded, axis=1)
    return Halves(
        values=scores,
        member=member,
        scale=scale,
        histograms=histograms,
        order=order,
        ordered=np.take_along_axis(rounded, order, axis=1),
    )


def compare_pairs(
    halves: Halves, a: Indices, b: Indices, *, near: float | None = None
) -> HalfTests:
    """Test some pairs in both halves of every split, two-sided.

    Memory grows with pairs × (queries + splits): some hundred pairs at a time are best.

    Args:
        halves: from `split_scores`.
        a: places of the systems A.
        b: places of the systems B.
        near: a level that p-values are compared with, where no more is asked; see `batches.t_p`.
    """
    differences, keys = _subtract(halves, a, b)
    signed = sum_signed_ranks(differences, keys, halves.member)
    sizes = halves.sizes[:, None, :]
    wins, losses = signed.wins, signed.losses
    mean, squares = _sum_moments(differences, halves.member, sizes, moved=wins + losses)
    doubled, ties = _rank_scores(halves, a, b)
    return HalfTests(
        means=np.round(mean, DECIMALS),
        p={
            "sign": batches.sign_p(wins, losses),
            "rank-sum": batches.rank_sum_p(doubled, ties, size=sizes),
            "signed-rank": batches.signed_rank_p(
                signed.doubled, signed.ties, wins=wins, losses=losses
            ),
            "t": batches.t_p(mean, squares, size=sizes, near=near),
        },
    )


def find_medians(halves: Halves) -> Floats:
    """The median of every system in both halves, rounded to 1e-12: shape (2, systems, splits)."""
    if halves.scale is not None and halves.histograms is not None:
        return np.round(halves.histograms.medians(halves.scale.values), DECIMALS)
    inside = halves.member.T.astype(np.bool_)
    medians = [
        [np.median(halves.values[:, half], axis=1) for half in sides] for sides in (inside, ~inside)
    ]
    return np.round(np.moveaxis(np.array(medians), 1, 2), DECIMALS)


def _subtract(halves: Halves, a: Indices, b: Indices) -> tuple[Floats, NDArray[np.generic]]:
    """Differences B - A, and keys that order their sizes with the right ties."""
    scale = halves.scale
    if scale is None or halves.histograms is None:
        differences = np.round(halves.values[b] - halves.values[a], DECIMALS) + 0.0
        return differences, np.abs(differences)
    codes = halves.histograms.codes
    # numpy sorts 16 bits by their digits, which is much faster
    small = len(scale.gaps) <= np.iinfo(np.uint16).max
    classes = scale.classes.astype(np.uint16) if small else scale.classes
    gaps = scale.gaps[scale.classes]
    signed = np.triu(gaps) - np.tril(gaps)
    both = codes[a] * len(scale.values) + codes[b]
    return signed.take(both), classes.take(both)


def _sum_moments(
    differences: Floats,
    member: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    *,
    moved: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """Means of both halves, and sums of squared distances: 0 where all differences are the same."""
    inside = member.astype(np.float64)
    _, sums = _sum_halves(differences, inside)
    total, second = _sum_halves(differences * differences, inside)
    mean = np.where(moved > 0, sums / sizes, 0.0)
    squares = np.where(moved > 0, second - sums * mean, 0.0)
    # What is left of a difference of nearly equal sums has lost its digits
    unsure = ((moved > 0) & (squares <= _UNSURE * total)).any(axis=(0, 2))
    for pair in np.flatnonzero(unsure):
        squares[:, pair] = _squares_of(differences[pair], member.astype(np.bool_), mean[:, pair])
    return mean, squares


def _sum_halves(values: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """Sums of all, shape (pairs, 1), and of both halves."""
    total = values.sum(axis=1)[:, None]
    first = values @ inside
    return total, np.stack((first, total - first))


def _squares_of(difference: Floats, member: NDArray[np.bool_], mean: Floats) -> Floats:
    """Sums of squared distances of one pair, each term by itself."""
    rows = []
    for half, of_half in zip((member, ~member), mean, strict=True):
        apart = (difference[:, None] - of_half) * half
        highest = np.where(half, difference[:, None], -np.inf).max(axis=0)
        lowest = np.where(half, difference[:, None], np.inf).min(axis=0)
        rows.append(np.where(highest > lowest, (apart * apart).sum(axis=0), 0.0))
    return np.stack(rows)


def _rank_scores(
    halves: Halves, a: Indices, b: Indices
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Twice the rank sums of B's scores among those of both, and their ties."""
    if halves.histograms is not None:
        return halves.histograms.rank_sums(a, b)
    doubled, ties = np.empty((2, 2, len(a), halves.member.shape[1]), np.int64)
    systems = sorted({*a.tolist(), *b.tolist()})
    inside = {system: _turn(halves, system) for system in systems}
    below = {system: np.cumsum(inside[system], axis=1) for system in systems}
    if loops := load_compiled():
        turned = {system: np.ascontiguousarray(one.T) for system, one in below.items()}
        for pair, both in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            scores = tuple(halves.ordered[system] for system in both)
            counts = tuple(turned[system] for system in both)
            loops.rank_scores(scores, counts, doubled[:, pair], ties[:, pair])
        doubled += (halves.sizes * (halves.sizes + 1))[:, None]
        return doubled, ties
    for pair, (one, other) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        doubled[:, pair] = _rank_both(halves, one, other, inside[other], below[one])
        ties[:, pair] = _tie_both(halves, one, other, below)
    return doubled, ties


def _turn(halves: Halves, system: int) -> NDArray[np.signedinteger]:
    """Nobody, then whether each query is in the first half, by rising score: (splits, 1 + queries).

    In 32 bits where twice a rank sum fits into them.
    """
    count, splits = halves.member.shape
    inside = np.zeros((splits, count + 1), np.int32 if count <= _FIT else np.int64)
    inside[:, 1:] = halves.member[halves.order[system]].T
    return inside


_FIT = 1 << 15


def _rank_both(
    halves: Halves,
    a: int,
    b: int,
    inside: NDArray[np.signedinteger],
    below: NDArray[np.signedinteger],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Twice the rank sums of B: what is below in A and what is equal, and the ranks in B itself."""
    low, high = (halves.ordered[a].searchsorted(halves.ordered[b], side) for side in _SIDES)
    lower = below.take(low, axis=1)
    lower += lower if np.array_equal(low, high) else below.take(high, axis=1)
    both = np.einsum("sq,sq->s", inside[:, 1:], lower)
    whole = (low + high).astype(inside.dtype)
    rest = whole.sum() - inside[:, 1:] @ whole - lower.sum(axis=1) + both
    first, second = halves.sizes
    return both + first * (first + 1), rest + second * (second + 1)


def _tie_both(
    halves: Halves, a: int, b: int, below: Mapping[int, NDArray[np.signedinteger]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sum of t³ - t over the scores that occur several times among those of A and B."""
    scores = np.sort(np.concatenate((halves.ordered[a], halves.ordered[b])), kind="stable")
    several = np.unique(scores[1:][scores[1:] == scores[:-1]])
    first = np.zeros((halves.member.shape[1], len(several)), np.int64)
    whole = np.zeros(len(several), np.int64)
    for system in (a, b):
        low, high = (halves.ordered[system].searchsorted(several, side) for side in _SIDES)
        first += below[system].take(high, axis=1) - below[system].take(low, axis=1)
        whole += high - low
    one, other = ((t**3 - t).sum(axis=1) for t in (first, whole - first))
    return one, other


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
