"""How alike two runs are: common documents and rank-biased overlap of their first documents.

Two runs of one system that differ by a seed or a parameter have nearly the same top 10; two
systems that share a first stage have nearly the same documents and another top 10. So the top 10
decides what is called a variant, and the first 100 documents are told beside it. detection.md
shows both on real runs, and where the threshold comes from. Sources: Lin et al. 2022,
§§2.2 and 3.3 (2); Webber, Moffat & Zobel, "A similarity measure for indefinite rankings",
ACM TOIS 28(4), 2010.

Whether runs that are given as seeds of one system can be: alike, and none a copy of another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.ids import query_set_of, seed_of
from heldout.trec.scans import Signature

Verdict = Literal["identical", "variant", "none"]
"""`identical`: the same first documents in the same order in all queries. `variant`: the top 10
are nearly the same in most queries, or the very same in some, or the first three are the same in
half, or those of one lie in the top 10 of the other, in the same order in most or in any order in
nearly all. `none`: neither."""

TOP = 10
"""Documents of a query that decide."""

DEPTH = 100
"""Documents of a query that are compared at all."""

PERSISTENCE = 0.9
"""The p of rank-biased overlap: the first ten ranks have 86% of the weight."""

VARIANT = 0.7
"""Least mean rank-biased overlap of the top 10 that makes a variant. Of 11,143 pairs of real runs
the nearest of different teams have 0.67."""

COPIED = 0.2
"""Least share of queries with the very same top 10 that makes a variant, whatever the others are:
a copy that hides behind changed queries. Real runs of different teams share one query at most."""

HEAD = 3
"""Documents of a query that most of a reciprocal rank hangs on."""

SAME_HEADS = 0.5
"""Least share of queries with the same first three documents, in any order, that makes a variant:
a copy that hides behind made-up documents further down. Real runs of different teams have up to
0.32."""

INTERLEAVED = 0.6
"""Least share of queries in which the first three documents of one run lie in the top 10 of the
other in the same order that makes a variant: a copy that hides between made-up documents. Real
runs of different teams have up to 0.44."""

CONTAINED = 0.9
"""Least share of queries in which the first three documents of one run lie in the top 10 of the
other in any order that makes a variant: such a copy that also changes their order. Real runs of
different teams have up to 0.80."""

SHARED = 0.5
"""Least share of all queries that both runs must answer for a verdict. A copy that leaves out
some queries is still seen; two runs with one query in common say nothing of each other."""

_COLUMN_BITS = np.uint64(7)
_COLUMNS = np.uint64((1 << 7) - 1)
_BLOCK = 1 << 10
_VERDICTS: tuple[Verdict, ...] = ("none", "variant", "identical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike two runs are, over the queries that both answer.

    Rank-biased overlap weighs the depth d by p^d and goes on beyond the last document as if
    agreement stayed what it is there; lists of uneven length as in equation 32 of Webber et al.
    (2010).

    Attributes:
        queries: how many both answer, at least 1.
        only_first, only_second: how many only one of them answers.
        rbo: mean rank-biased overlap of the first `TOP` documents, extrapolated, 0 to 1.
        same: share of queries with the same first `TOP` documents in the same order.
        heads: share of queries with the same first `HEAD` documents, in any order; of those with
            fewer documents none counts.
        interleaved: share of queries in which the first `HEAD` documents of one run are among the
            first `TOP` of the other in the same order; the greater of both directions.
        contained: the same in any order.
        deep: `rbo` of the first `DEPTH` documents; `None` of unlike runs where it was not asked.
        equal: whether the first `DEPTH` documents are the same in the same order in all queries.
    """

    queries: int
    only_first: int
    only_second: int
    rbo: float
    same: float
    heads: float
    interleaved: float
    contained: float
    deep: float | None
    equal: bool

    @property
    def answered(self) -> float:
        """Share of all queries that both answer."""
        return self.queries / (self.queries + self.only_first + self.only_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An earlier run that is like the new one.

    Attributes:
        id: of the earlier run, as given.
        verdict: what it is to the new one.
        likeness: the figures; the new run is the first.
    """

    id: str
    verdict: Verdict
    likeness: Likeness


def compare(first: Signature, second: Signature, *, deep: bool = True) -> Likeness | None:
    """Compare how alike two runs are; their order changes only which is called first.

    Args:
        first: a run.
        second: another.
        deep: whether to look at more than the first `TOP` documents though they are not alike.

    Returns:
        The figures, or `None` where no query is answered by both.
    """
    left, right = _widen(first.documents[:, :DEPTH], second.documents[:, :DEPTH])
    if first.queries != second.queries:
        _, ours, theirs = np.intersect1d(
            first.queries, second.queries, assume_unique=True, return_indices=True
        )
        left, right = left[ours], right[theirs]
    both = (left[:, 0] != 0) & (right[:, 0] != 0)  # a row without documents is no answer
    if not both.any():
        return None
    left, right = left[both], right[both]
    one, other = left[:, :TOP], right[:, :TOP]
    contained = zip(_share_contained(one, other), _share_contained(other, one), strict=True)
    in_order, in_any = map(max, contained)
    found = Likeness(
        queries=len(left),
        only_first=int(np.count_nonzero(first.documents[:, 0])) - len(left),
        only_second=int(np.count_nonzero(second.documents[:, 0])) - len(left),
        rbo=float(rank_biased_overlap(one, other).mean()),
        same=float((one == other).all(axis=1).mean()),
        heads=_share_heads(left, right),
        interleaved=in_order,
        contained=in_any,
        deep=None,
        equal=bool((left == right).all()),
    )
    if deep or classify(found) != "none":
        return replace(found, deep=float(rank_biased_overlap(left, right).mean()))
    return found


def classify(likeness: Likeness) -> Verdict:
    """Return what two runs are to each other, by the constants of this module."""
    alike = (
        likeness.rbo >= VARIANT
        or likeness.same >= COPIED
        or likeness.heads >= SAME_HEADS
        or likeness.interleaved >= INTERLEAVED
        or likeness.contained >= CONTAINED
    )
    if likeness.answered < SHARED or not alike:
        return "none"
    return "identical" if likeness.answered == 1 and likeness.equal else "variant"


def list_alike(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> tuple[Neighbour, ...]:
    """All earlier runs that are identical to a new one or variants of it.

    The top 10 are compared with those of every earlier run: they alone say what is a variant. More
    of the first 100 documents is computed only for what is found. However many there are, none is
    left out: an own variant must not hide behind the runs of others. One earlier run is held at a
    time.

    Args:
        new: the new run.
        earlier: id and signature of each earlier run.

    Returns:
        Identical ones first, then variants; within these by mean rank-biased overlap of the top
        10 times the share of queries that both answer; of equals the first that came.
    """
    found = (find_neighbour(new, name, signature) for name, signature in earlier)
    return order_neighbours([one for one in found if one is not None])


def find_neighbour(new: Signature, name: str, earlier: Signature) -> Neighbour | None:
    """Return what an earlier run is to a new one; `None` for one that is no variant."""
    likeness = compare(new, earlier, deep=False)
    verdict = "none" if likeness is None else classify(likeness)
    if likeness is None or verdict == "none":
        return None
    return Neighbour(id=name, verdict=verdict, likeness=likeness)


def order_neighbours(found: Sequence[Neighbour]) -> tuple[Neighbour, ...]:
    """Neighbours in the order of `list_alike`."""

    def key(one: Neighbour) -> tuple[int, float]:
        return _VERDICTS.index(one.verdict), one.likeness.answered * one.likeness.rbo

    return tuple(sorted(found, key=key, reverse=True))


def rank_biased_overlap(
    first: NDArray[np.uint64], second: NDArray[np.uint64], *, p: float = PERSISTENCE
) -> NDArray[np.float64]:
    """Extrapolated rank-biased overlap of two rankings of each query, without ties.

    Args:
        first: uint64, shape (queries, depth), depth at most 128: hashes of documents from the
            best down, each once in its row; 0 behind the last.
        second: likewise of the same queries, of any depth. A query has documents in one of the
            two at least.
        p: persistence, above 0 and below 1.

    Returns:
        float64, shape (queries,), 0 to 1. Source: Webber et al. (2010), equations 30 and 32.
    """
    first, second = _widen(first, second)
    lengths = np.count_nonzero(first, axis=1), np.count_nonzero(second, axis=1)
    shorter, longer = np.minimum(*lengths), np.maximum(*lengths)
    # A document that both have adds to the agreement of all depths from the lower of its two ranks
    # on, so the sum over depths is a sum over common documents.
    rows, ranks = _find_common(first, second)
    ends = np.where(ranks <= shorter[rows], shorter[rows], longer[rows])
    weights = weigh(first.shape[1], p)[ranks, ends]
    return np.minimum(np.bincount(rows, weights, minlength=len(first)), 1.0)


def _share_heads(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """Share of queries with the same first documents, in any order."""
    if first.shape[1] < HEAD:
        return 0.0
    one, other = (np.sort(side[:, :HEAD], axis=1) for side in (first, second))
    return float(((one == other).all(axis=1) & (one[:, 0] != 0)).mean())


def _share_contained(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> tuple[float, float]:
    """Shares of queries in which the first `HEAD` documents of one lie in the other: in order, any.

    The second share counts those in order too.
    """
    if first.shape[1] < HEAD:
        return 0.0, 0.0
    heads = first[:, :HEAD]
    met = (heads[:, :, None] == second[:, None, :]) & (heads[:, :, None] != 0)
    ranks = met.argmax(axis=2)
    contained = met.any(axis=2).all(axis=1)
    ordered = contained & (np.diff(ranks, axis=1) > 0).all(axis=1)
    return float(ordered.mean()), float(contained.mean())


def _widen(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Both with as many columns as the wider one has."""
    width = max(first.shape[1], second.shape[1])
    if first.shape[1] == second.shape[1]:
        return first, second
    first, second = (np.pad(a, ((0, 0), (0, width - a.shape[1]))) for a in (first, second))
    return first, second


def _find_common(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and lower rank, from 1, of each document that both have in a row.

    A hash gives up its highest 7 bits to its place in the row: sorted, the two places of a
    common document are neighbours. In 57 bits 10^11 pairs of other documents meet by chance
    with a probability of a millionth.
    """
    indices = np.arange(first.shape[1], dtype=np.uint64)
    rows, ranks = [], []
    for start in range(0, len(first), _BLOCK):
        block = slice(start, start + _BLOCK)
        pair = [side[block] << _COLUMN_BITS | indices for side in (first, second)]
        keys = np.sort(np.concatenate(pair, axis=1), axis=1)
        documents = keys >> _COLUMN_BITS
        twice = (documents[:, 1:] == documents[:, :-1]) & (documents[:, 1:] != 0)
        row, column = np.divmod(np.flatnonzero(twice), twice.shape[1])
        lower = np.maximum(keys[row, column] & _COLUMNS, keys[row, column + 1] & _COLUMNS)
        rows.append(row + start)
        ranks.append(lower.astype(np.int64) + 1)
    return np.concatenate(rows), np.concatenate(ranks)


@cache
def weigh(depth: int, p: float) -> NDArray[np.float64]:
    """Return what a common document adds to the extrapolated overlap: [its lower rank, end].

    The end is the length of the shorter list where both ranks are within it, else that of the
    longer one: equation 32 rearranged. For lists of one length it is equation 30.
    """
    ranks = np.arange(1, depth + 1)
    sums = np.concatenate([[0.0], np.cumsum((1 - p) / p * p**ranks / ranks)])
    tails = np.concatenate([[0.0], p**ranks / ranks])
    weights = np.zeros((depth + 1, depth + 1))
    for rank in range(1, depth + 1):
        weights[rank, rank:] = sums[rank:] - sums[rank - 1] + tails[rank:]
    return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedFault:
    """Two runs of one query set that cannot differ by their seed alone.

    Attributes:
        first, second: their names, `SET`, `SET~2` and so on.
        copied: whether both have the same first 100 documents in the same order in all queries;
            else they are so unlike that runs of two submissions would not be called variants.
        likeness: how alike they are; `None` for a copy, and where both answer no common query.
    """

    first: str
    second: str
    copied: bool
    likeness: Likeness | None = None


def compare_seeds(signatures: Mapping[str, Signature]) -> tuple[SeedFault, ...]:
    """Hold every seed against the first of its query set, and look for copies among all of them.

    Args:
        signatures: run -> its tops; of all query sets.
    """
    names = sorted(signatures, key=lambda name: (query_set_of(name), seed_of(name)))
    faults = [
        _compare(first, second, signatures)
        for first, second in combinations(names, 2)
        if query_set_of(first) == query_set_of(second)
    ]
    return tuple(fault for fault in faults if fault is not None)


def say_fault(fault: SeedFault) -> str:
    """Return what is wrong with two seeds, in a sentence."""
    if fault.copied:
        same = f"{fault.second} has the same documents in the same order as {fault.first}"
        return f"{same}, in all queries"
    if fault.likeness is None:
        return f"{fault.second} answers no query that {fault.first} answers"
    found = fault.likeness
    return (
        f"{fault.second} against {fault.first}: rank-biased overlap {found.rbo:.2f} of the top "
        f"{TOP}, the same top {TOP} in {found.same:.0%} of {found.queries:,} queries"
    )


def _compare(first: str, second: str, signatures: Mapping[str, Signature]) -> SeedFault | None:
    one, other = signatures[first], signatures[second]
    if one.queries == other.queries and np.array_equal(one.documents, other.documents):
        return SeedFault(first=first, second=second, copied=True)
    if seed_of(first) != 1:
        return None
    likeness = compare(one, other, deep=False)
    if likeness is not None and classify(likeness) != "none":
        return None
    return SeedFault(first=first, second=second, copied=False, likeness=likeness)
