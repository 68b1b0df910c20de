"""Every pair of systems at once: tests in both halves of many splits, and counts of outcomes.

What a loop over pairs, splits and tests does one call at a time is done here with what pairs and
splits have in common: queries are sorted once for a pair and ranked in all splits side by side,
and histograms of a system's scores serve all of its pairs. The p-values are those of `tests`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.stats.batch_p import rank_sum_p, sign_p, signed_rank_p, t_p
from heldout.stats.elements import MidrankSums
from heldout.stats.exact import DECIMALS, ValueScale, scale_of
from heldout.stats.histograms import Histograms, count_values
from heldout.stats.midranks import sort_elements, sum_midranks
from heldout.stats.rank_sum import Corrections
from heldout.stats.signed_rank import Zeros

__all__ = [
    "PAIRED_TESTS",
    "Halves",
    "OutcomeCounts",
    "PairOptions",
    "PairTests",
    "PairedTest",
    "compare_pairs",
    "count_outcomes",
    "find_medians",
    "split_scores",
    "tile_pairs",
]

PairedTest = Literal["sign", "rank-sum", "signed-rank", "t"]

PAIRED_TESTS: tuple[PairedTest, ...] = ("sign", "rank-sum", "signed-rank", "t")
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
        sign_tolerance: differences up to this size are ties for the sign test.
    """

    rank_sum: Corrections = "mann-whitney"
    zeros: Zeros = "wilcox"
    continuity: bool = True
    sign_tolerance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Halves:
    """Scores of systems, and the splits of the queries in two.

    Attributes:
        values: shape (systems, queries).
        member: uint8, shape (queries, splits): 1 where a query is in the first half, else 0.
        scale: of the values, where they are few and exact.
        histograms: with a scale, how often each system has each value in each half.
        compiled: whether numba may be used.
    """

    values: Floats
    member: NDArray[np.uint8]
    scale: ValueScale | None
    histograms: Histograms | None
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutcomeCounts:
    """Outcomes of every two systems, shape (systems, systems) each; the first index is A.

    Attributes:
        neither: queries that neither answers.
        a_only: queries that A alone answers; the transpose is of B.
        both: queries that both answer.
        ranks: of the queries that both answer, the sum of A's ranks (its search length).
        reciprocals: of the same, the sum of A's reciprocal ranks.
    """

    neither: NDArray[np.int64]
    a_only: NDArray[np.int64]
    both: NDArray[np.int64]
    ranks: NDArray[np.int64]
    reciprocals: Floats


def count_outcomes(ranks: ArrayLike) -> OutcomeCounts:
    """Count who answers what, for every two systems at once.

    Args:
        ranks: whole numbers, shape (systems, queries): rank of the first relevant document, 0
            where a system has none.
    """
    table = np.asarray(ranks)
    found = (table > 0).astype(np.float64)
    shares = np.divide(1.0, table, out=np.zeros(table.shape), where=table > 0)
    both = np.rint(found @ found.T).astype(np.int64)
    answered = np.diagonal(both)
    return OutcomeCounts(
        neither=table.shape[1] - answered[:, None] - answered + both,
        a_only=answered[:, None] - both,
        both=both,
        ranks=np.rint(table.astype(np.float64) @ found.T).astype(np.int64),
        reciprocals=shares @ found.T,
    )


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
    return Halves(
        values=scores, member=member, scale=scale, histograms=histograms, compiled=compiled
    )


def compare_pairs(halves: Halves, a: Indices, b: Indices, options: PairOptions) -> PairTests:
    """Test some pairs in both halves of every split.

    Memory grows with pairs × (queries + splits): some hundred pairs at a time are best.

    Args:
        halves: from `split_scores`.
        a: places of the systems A.
        b: places of the systems B.
        options: of the tests.
    """
    differences, keys = _subtract(halves, a, b)
    signed = sum_midranks(
        sort_elements(
            keys, differences > 0, queries=len(halves.member), skip=(differences == 0).sum(axis=1)
        ),
        halves.member,
        compiled=halves.compiled,
    )
    sizes = halves.sizes[:, None, :]
    moments = _sum_moments(differences, halves.member, sizes, moved=signed.labelled + signed.others)
    wins, losses = _count_signs(differences, halves.member, signed, options.sign_tolerance)
    doubled, ties = _rank_scores(halves, a, b)
    return PairTests(
        means=np.round(moments.mean, DECIMALS),
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
            "t": t_p(moments.mean, moments.squares, size=sizes),
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


def _count_signs(
    differences: Floats, member: NDArray[np.uint8], signed: MidrankSums, tolerance: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Differences above and below 0, those up to the tolerance left out."""
    if not tolerance:
        return signed.labelled, signed.others
    inside = member.astype(np.float64)
    above, below = (
        np.rint(_sum_halves(beyond.astype(np.float64), inside)[1]).astype(np.int64)
        for beyond in (differences > tolerance, differences < -tolerance)
    )
    return above, below


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """Means of differences, and sums of squared distances from them."""

    mean: Floats
    squares: Floats


def _sum_moments(
    differences: Floats,
    member: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    *,
    moved: NDArray[np.int64],
) -> _Moments:
    """Moments of both halves; `squares` is 0 where all differences of a half are the same."""
    inside = member.astype(np.float64)
    _, sums = _sum_halves(differences, inside)
    total, second = _sum_halves(differences * differences, inside)
    mean = np.where(moved > 0, sums / sizes, 0.0)
    squares = np.where(moved > 0, second - sums * mean, 0.0)
    # What is left of a difference of nearly equal sums has lost its digits
    unsure = ((moved > 0) & (squares <= _UNSURE * total)).any(axis=(0, 2))
    for pair in np.flatnonzero(unsure):
        squares[:, pair] = _squares_of(differences[pair], member.astype(np.bool_), mean[:, pair])
    return _Moments(mean=mean, squares=squares)


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
    both = np.round(np.concatenate((halves.values[a], halves.values[b]), axis=1), DECIMALS) + 0.0
    labels = np.zeros(both.shape, np.bool_)
    labels[:, len(halves.member) :] = True
    sums = sum_midranks(
        sort_elements(both, labels, queries=len(halves.member), skip=np.zeros(len(both), np.intp)),
        halves.member,
        compiled=halves.compiled,
    )
    return sums.doubled, sums.ties
