"""Every pair of systems at once: tests in both halves of many splits.

What a loop over pairs, splits and tests does one call at a time is done here with what pairs and
splits have in common: queries are sorted once for a pair and ranked in all splits side by side,
and histograms of a system's scores serve all of its pairs. The p-values are those of `tests`.

Rank sums: elements stand in order of a key, equal keys share their mean rank, and the ranks of
labelled elements are added. For the signed-rank test elements are the differences that are not
zero, in order of size, labelled where they are positive; for the rank-sum test they are the scores
of both systems, labelled where they are the second's. Sums of ranks are doubled, so all figures are
whole numbers.

Histograms: two samples' ranks and a sample's median follow from how often each value occurs, and
sums over all pairs of histograms are matrix products. Counts are whole numbers below 2^53, so
products of float64 are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.stats.batches import rank_sum_p, sign_p, signed_rank_p, t_p
from heldout.stats.exact import DECIMALS, ValueScale, load_compiled, scale_of
from heldout.stats.rank_correlation import MidrankSums, Sorted
from heldout.stats.rank_tests import Corrections, Zeros


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
        low, high = (values[(below <= place).sum(axis=2)] for place in ((size - 1) // 2, size // 2))
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


_DIGITS = 2


def sort_elements(
    keys: NDArray[np.generic],
    labels: NDArray[np.bool_],
    *,
    queries: NDArray[np.intp] | None = None,
    skip: NDArray[np.intp],
) -> Sorted:
    """Put the elements of each pair in order.

    Args:
        keys: shape (pairs, elements), equal where elements are tied.
        labels: same shape.
        queries: that elements belong to, same shape; `None`: their places.
        skip: how many of the smallest keys do not take part, shape (pairs,).
    """
    # 16 bits are sorted by their digits, and two runs in order are merged, but only where the
    # order of equal keys is to be kept
    stable = keys.itemsize <= _DIGITS or queries is not None
    places = np.argsort(keys, axis=1, kind="stable" if stable else None)
    flat = places + np.arange(len(keys))[:, None] * keys.shape[1]
    ordered = keys.take(flat)
    starts = np.ones(keys.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=starts[:, 1:])
    return Sorted(
        order=places if queries is None else queries.take(flat),
        labels=labels.take(flat),
        starts=starts,
        skip=skip,
    )


def sum_midranks(
    elements: Sorted, member: NDArray[np.uint8], *, compiled: bool = True
) -> MidrankSums:
    """Add up the mean ranks of labelled elements, in both halves of every split.

    Args:
        elements: in order.
        member: shape (queries, splits): 1 where a query is in the first half, else 0.
        compiled: whether numba may be used where it is installed; the answer is the same.
    """
    shape = (2, len(elements.order), member.shape[1])
    sums = MidrankSums(*(np.zeros(shape, np.int64) for _ in MidrankSums._fields))
    loops = load_compiled() if compiled else None
    walk = walk_plain if loops is None else loops.walk
    walk(elements, member, sums)
    return sums


def walk_plain(elements: Sorted, member: NDArray[np.uint8], sums: MidrankSums) -> None:
    """Add to sums of 0 what the elements give; `compiled.walk` does the same."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    inside = member.astype(np.float64)
    for pair, first in enumerate(elements.skip.tolist()):
        queries = elements.order[pair, first:]
        if not len(queries):
            continue
        label = elements.labels[pair, first:]
        begins = np.flatnonzero(elements.starts[pair, first:])
        sizes = np.diff(begins, append=len(queries))[:, None]
        marks = np.add.reduceat(label, begins, dtype=np.int64)[:, None]
        # A sparse product gathers and adds in one go
        ends = np.append(begins, len(queries))
        shape = (len(begins), len(member))
        tied = csr_array((np.ones(len(queries)), queries, ends), shape=shape) @ inside
        ours = csr_array((label.astype(np.float64), queries, ends), shape=shape) @ inside
        for half, (groups, mine) in enumerate(((tied, ours), (sizes - tied, marks - ours))):
            ranks = np.cumsum(groups, axis=0)
            total, labelled = ranks[-1].copy(), mine.sum(axis=0)
            ranks *= 2
            ranks -= groups
            sums.doubled[half, pair] = np.einsum("gs,gs->s", mine, ranks) + labelled
            sums.ties[half, pair] = np.einsum("gs,gs,gs->s", groups, groups, groups) - total
            sums.labelled[half, pair] = labelled
            sums.others[half, pair] = total - labelled


PairedTest = Literal["sign", "rank-sum", "signed-rank", "t"]
"""The tests that are made of every pair, by their names in `heldout.stats.tests.TESTS`."""

_UNSURE = 1e-3
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """What the tests leave open. All are two-sided.

    Attributes:
        rank_sum: `mann-whitney` corrects for ties and continuity, `ranksums` for neither.
        zeros: of signed-rank: `wilcox` drops differences of 0 before ranking, `pratt` after it,
            `zsplit` gives half of their ranks to each side.
        continuity: of signed-rank, which goes by the normal approximation however few the
            differences are.
    """

    rank_sum: Corrections = "mann-whitney"
    zeros: Zeros = "wilcox"
    continuity: bool = True


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
        compiled: whether numba may be used.
    """

    values: Floats
    member: NDArray[np.uint8]
    scale: ValueScale | None
    histograms: Histograms | None
    order: NDArray[np.intp]
    ordered: Floats
    compiled: bool

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Queries in each half of each split, shape (2, splits)."""
        first = self.member.sum(axis=0, dtype=np.int64)
        return np.stack((first, len(self.member) - first))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairTests:
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


def split_scores(values: ArrayLike, first: ArrayLike, *, compiled: bool = True) -> Halves:
    """Prepare scores for `compare_pairs`.

    Args:
        values: finite scores, shape (systems, queries).
        first: bool, shape (splits, queries): whether a query is in the first half. Each half
            has two queries or more.
        compiled: whether numba may be used where it is installed; answers are the same.
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
        compiled=compiled,
    )


def compare_pairs(
    halves: Halves, a: Indices, b: Indices, options: PairOptions, *, near: float | None = None
) -> PairTests:
    """Test some pairs in both halves of every split.

    Memory grows with pairs × (queries + splits): some hundred pairs at a time are best.

    Args:
        halves: from `split_scores`.
        a: places of the systems A.
        b: places of the systems B.
        options: of the tests.
        near: a level that p-values are compared with, where no more is asked; see `batches.t_p`.
    """
    differences, keys = _subtract(halves, a, b)
    signed = sum_midranks(
        _sort_sizes(differences, keys, compiled=halves.compiled),
        halves.member,
        compiled=halves.compiled,
    )
    sizes = halves.sizes[:, None, :]
    mean, squares = _sum_moments(
        differences, halves.member, sizes, moved=signed.labelled + signed.others
    )
    wins, losses = signed.labelled, signed.others
    doubled, ties = _rank_scores(halves, a, b)
    return PairTests(
        means=np.round(mean, DECIMALS),
        p={
            "sign": sign_p(wins, losses),
            "rank-sum": rank_sum_p(doubled, ties, size=sizes, kind=options.rank_sum),
            "signed-rank": signed_rank_p(
                signed.doubled,
                signed.ties,
                wins=signed.labelled,
                losses=signed.others,
                size=sizes,
                zeros=options.zeros,
                continuity=options.continuity,
            ),
            "t": t_p(mean, squares, size=sizes, near=near),
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
    loops = load_compiled() if halves.compiled else None
    if loops is not None:
        doubled, ties = np.empty((2, 2, len(a), halves.member.shape[1]), np.int64)
        loops.rank_scores((halves.order, halves.ordered), (a, b), halves.member, (doubled, ties))
        return doubled, ties
    sums = sum_midranks(_merge_scores(halves, a, b), halves.member, compiled=False)
    return sums.doubled, sums.ties


def _merge_scores(halves: Halves, a: Indices, b: Indices) -> Sorted:
    """The scores of A and B of each pair in one order, those of B labelled."""
    queries = np.concatenate((halves.order[a], halves.order[b]), axis=1)
    both = np.concatenate((halves.ordered[a], halves.ordered[b]), axis=1)
    labels = np.zeros(both.shape, np.bool_)
    labels[:, len(halves.member) :] = True
    return sort_elements(both, labels, queries=queries, skip=np.zeros(len(a), np.intp))


def _sort_sizes(differences: Floats, keys: NDArray[np.generic], *, compiled: bool) -> Sorted:
    """The differences of each pair by their size, those of 0 left out."""
    loops = load_compiled() if compiled else None
    if loops is None:
        return sort_elements(keys, differences > 0, skip=(differences == 0).sum(axis=1))
    found = Sorted(
        order=np.empty(differences.shape, np.intp),
        labels=np.empty(differences.shape, np.bool_),
        starts=np.empty(differences.shape, np.bool_),
        skip=np.empty(len(differences), np.intp),
    )
    loops.sort_sizes(differences, found)
    return found
