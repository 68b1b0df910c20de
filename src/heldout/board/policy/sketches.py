"""Sketches of runs: 16 bits for each of the first ten documents, to look up what may be alike.

Comparing a new run with each earlier one takes every signature: 160 kB for 200 queries. A sketch
takes 4 kB, and all of them pass in a tenth of a second at 10,000 runs. What a sketch says is a
bound: equal documents have equal sketches, and two unequal ones seldom have. So no run that
`similarity` calls a variant is missed, and those that a sketch wrongly lets pass are dropped by
the full comparison.

The sketches of a board are multiplied by a secret odd number first, so nobody outside the vault
can make documents whose sketches meet.

Among many runs at once, `propose_pairs` finds those that may be alike by sparse products.

For fusions a sketch says which runs rank what is not yet explained highest: `Sample.propose`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heldout.board.policy import similarity
from heldout.trec.scans import Signature

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BITS = 16
"""Bits of a document in a sketch."""

_LOSS = 1e-9
"""What a sum may lack by rounding. Two top 10 that differ lack 0.004 or more."""

_BLOCK = 1 << 19
"""Documents that are looked at in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketches:
    """The sketches of earlier runs of one query set.

    Attributes:
        names: of the runs, in the order in which they came.
        queries: id of each column.
        key: what documents are multiplied by, odd, below 2**64.
        tops: of the runs, shape (names, queries, TOP).
    """

    names: Sequence[str]
    queries: Sequence[str]
    key: int
    tops: NDArray[np.uint16]


def sketch(signature: Signature, columns: Mapping[str, int], key: int) -> NDArray[np.uint16]:
    """The sketch of a run.

    Args:
        signature: of the run.
        columns: query -> its column, from 0 without a gap; other queries are left out.
        key: as in `Sketches`.

    Returns:
        uint16, shape (columns, TOP): 0 where there is no document, and nowhere else.
    """
    tops = np.zeros((len(columns), similarity.TOP), np.uint16)
    indices = np.array([columns.get(query, -1) for query in signature.queries], np.int64)
    first = signature.documents[indices >= 0, : similarity.TOP]
    tops[indices[indices >= 0], : first.shape[1]] = shorten(first, key)
    return tops


def sketch_all(runs: Mapping[str, Signature], key: int) -> Sketches:
    """The sketches of runs that are in memory.

    Args:
        runs: name -> signature, in the order in which they came.
        key: as in `Sketches`.
    """
    queries = sorted({query for run in runs.values() for query in run.queries})
    columns = {query: column for column, query in enumerate(queries)}
    tops = np.zeros((len(runs), len(queries), similarity.TOP), np.uint16)
    for row, run in zip(tops, runs.values(), strict=True):
        row[:] = sketch(run, columns, key)
    return Sketches(names=tuple(runs), queries=queries, key=key, tops=tops)


def shorten(documents: NDArray[np.uint64], key: int) -> NDArray[np.uint16]:
    """Hashes of documents as 16 bits each, of which 0 stands for 0 alone."""
    short = (documents * np.uint64(key) >> np.uint64(64 - BITS)).astype(np.uint16)
    return np.where(documents == 0, np.uint16(0), np.maximum(short, 1))


class Screen:
    """Which earlier runs may be variants of a new one: all that are, and hardly any other.

    Args:
        own: the new run's sketch.
        queries: how many it answers, those without a column too.
    """

    def __init__(self, own: NDArray[np.uint16], queries: int) -> None:
        self._own = own
        self._queries = queries
        self._answered = own[:, 0] != 0
        self._lengths = np.count_nonzero(own, axis=1).astype(np.uint8)

    def admit(self, block: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """For each of some sketches, shape (runs, queries, TOP): whether it may be a variant's."""
        parts = [self._admit(block[part]) for part in _parts(block)]
        return np.concatenate([np.zeros(0, bool), *parts])

    def _admit(self, block: NDArray[np.uint16]) -> NDArray[np.bool_]:
        theirs = block[:, :, 0] != 0
        both = theirs & self._answered
        shared = both.sum(axis=1)
        every = theirs.sum(axis=1) + self._queries - shared
        overlap, heads, interleaved = self._bound(block)
        with np.errstate(
            invalid="ignore", divide="ignore"
        ):  # nothing shared: no number reaches a threshold
            mean = np.where(both, overlap, 0).sum(axis=1) / shared
            same = (both & (overlap >= 1 - _LOSS)).sum(axis=1) / shared
            alike = (mean >= similarity.VARIANT - _LOSS) | (same >= similarity.COPIED - _LOSS)
            alike |= (both & heads).sum(axis=1) / shared >= similarity.SAME_HEADS - _LOSS
            for each in interleaved:
                alike |= (both & each).sum(axis=1) / shared >= similarity.INTERLEAVED - _LOSS
        admitted: NDArray[np.bool_] = (
            alike & (shared > 0) & (shared >= (similarity.SHARED - _LOSS) * every)
        )
        return admitted

    def _bound(
        self, block: NDArray[np.uint16]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], Sequence[NDArray[np.bool_]]]:
        """At least the rank-biased overlap of each query, and whether the heads may be the same.

        Also whether each run may have the first documents of the other, in whatever order.
        """
        near = find_near(self._own, block)
        ours = near > similarity.TOP - similarity.HEAD
        heads: NDArray[np.bool_] = np.all(ours[:, :, : similarity.HEAD], axis=2)
        theirs: NDArray[np.bool_] = np.all(near[:, :, : similarity.HEAD] > 0, axis=2)
        interleaved = (ours.sum(axis=2) >= similarity.HEAD, theirs)
        shorter = np.minimum(np.count_nonzero(block, axis=2).astype(np.uint8), self._lengths)
        return weigh_near(near, shorter), heads, interleaved


def find_near(own: NDArray[np.uint16], block: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Return how near to the top the new run has each document: TOP at rank 1, 0 for nowhere.

    Args:
        own: shape (queries, TOP).
        block: shape (runs, queries, TOP).
    """
    near = np.zeros(block.shape, np.uint8)
    same, found = np.empty(block.shape, bool), np.empty(block.shape, np.uint8)
    for index in range(similarity.TOP):
        worth = np.where(own[:, index] == 0, 0, similarity.TOP - index).astype(np.uint8)
        np.equal(block, own[:, index, None], out=same)
        np.multiply(same, worth[:, None], out=found)
        np.maximum(near, found, out=near)
    return near


def weigh_near(near: NDArray[np.uint8], shorter: NDArray[np.uint8]) -> NDArray[np.float64]:
    """At least the rank-biased overlap of the top 10, shape (runs, queries).

    A document weighs by the lower of its two ranks and by the end of the lists: the more, the
    sooner they end. The end is taken to be that of the shorter list, or the document's own rank.

    Args:
        near: as `find_near` gives it.
        shorter: documents of the shorter list, shape (runs, queries).
    """
    ranks = np.arange(similarity.TOP, 0, -1, dtype=np.uint8)
    lower = np.minimum(near, ranks) + shorter[:, :, None] * np.uint8(similarity.TOP + 1)
    weights: NDArray[np.float64] = _weights()[lower].sum(axis=2)
    return weights


def _weights() -> NDArray[np.float64]:
    """By documents of the shorter list times TOP + 1, plus nearness of the lower rank."""
    exact = similarity.weigh(similarity.TOP, similarity.PERSISTENCE)
    bound = np.zeros((similarity.TOP + 1, similarity.TOP + 1))
    for end in range(similarity.TOP + 1):
        for near in range(1, similarity.TOP + 1):
            rank = similarity.TOP + 1 - near
            bound[end, near] = exact[rank, max(rank, end)]
    return bound.ravel()


def bound_overlap(
    own: NDArray[np.uint64], tops: NDArray[np.uint16], key: int
) -> NDArray[np.float64]:
    """At least the mean rank-biased overlap of the top 10 of a run and of each earlier one.

    Args:
        own: the run's documents, shape (queries, TOP).
        tops: sketches for the same queries, shape (runs, queries, TOP).
        key: as in `Sketches`.
    """
    short = shorten(own, key)
    lengths = np.count_nonzero(short, axis=1).astype(np.uint8)
    bounds = np.zeros(len(tops))
    for part in _parts(tops):
        shorter = np.minimum(np.count_nonzero(tops[part], axis=2).astype(np.uint8), lengths)
        bounds[part] = weigh_near(find_near(short, tops[part]), shorter).mean(axis=1)
    return bounds


_ROWS = 512
"""Runs whose pairs are looked at in one step."""


def propose_pairs(
    runs: Sequence[Signature],
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield which pairs of runs may be variants: all that are, and few others.

    Let both of two runs answer s queries. `similarity` calls them variants for one of four reasons,
    and each gives a sum over documents or queries that sparse products have for all pairs at once:

    - Rank-biased overlap. In lists of equal length a common document weighs what it weighs at the
      lower of its ranks: min(w(r), w(t)) <= sqrt(w(r) w(t)). In lists of other lengths the overlap
      is at most 1. So the sum of these products, and 1 for each query with other lengths, is at
      least 0.7 s.
    - The same top 10, or the same first three in any order: a number for each list and one for
      each set of three, equal where these are; at least 0.2 s and 0.5 s of them are equal.
    - The first three of one in the top 10 of the other, in the same order or in any: a number for
      each first three and for each three, whatever their order, equal where these are, in at least
      0.6 s. Common documents alone would not do: runs of one first stage have two of the three in
      most queries.

    Different documents or lists may get one number by chance. All terms are positive, so that adds
    pairs and takes none away.

    Args:
        runs: in any order.

    Yields:
        For each run its place and those of earlier ones that may be its variants, ascending.
    """
    if not runs:
        return
    tops = _stack(runs)
    answered = tops[:, :, 0] != 0
    lengths = np.count_nonzero(tops, axis=2)
    here = tops != 0
    ranks = np.broadcast_to(np.arange(similarity.TOP), tops.shape)
    weights = np.sqrt(
        similarity.weigh(similarity.TOP, similarity.PERSISTENCE)[ranks + 1, lengths[:, :, None]]
    )
    shifted = tops << np.uint64(7)  # as `similarity` compares them
    near = _make_sparse(shifted, np.where(here, weights, 0.0))
    first, within = _find_contained(tops)
    heads = np.sort(tops[:, :, : similarity.HEAD], axis=2)
    same = _make_sparse(_number(tops)[:, :, None], answered[:, :, None] * 1.0)
    threes = _make_sparse(_number(heads)[:, :, None], (heads[:, :, :1] != 0) * 1.0)
    of_length = [(lengths == one).astype(np.float64) for one in np.unique(lengths[answered])]
    both, total = answered.astype(np.float64), answered.sum(axis=1)
    for start in range(0, len(runs), _ROWS):
        stop = min(start + _ROWS, len(runs))
        rows = slice(start, stop)
        shared = both[rows] @ both[:stop].T
        equal = sum((one[rows] @ one[:stop].T for one in of_length), np.zeros_like(shared))
        least = shared * (1 - _LOSS)
        found = _meet(near[rows], near[:stop]) + shared - equal >= similarity.VARIANT * least
        found |= _meet(same[rows], same[:stop]) >= similarity.COPIED * least
        found |= _meet(threes[rows], threes[:stop]) >= similarity.SAME_HEADS * least
        for one, other in ((first, within), (within, first)):
            found |= _meet(one[rows], other[:stop]) >= similarity.INTERLEAVED * least
        every = total[rows, None] + total[:stop] - shared
        found &= (shared > 0) & (shared >= similarity.SHARED * (1 - _LOSS) * every)
        for index in range(start, stop):
            yield index, np.flatnonzero(found[index - start, :index]).tolist()


def _stack(runs: Sequence[Signature]) -> NDArray[np.uint64]:
    """The first documents of all runs, shape (runs, queries, TOP), 0 where there are none."""
    queries = sorted({query for run in runs for query in run.queries})
    columns = {query: column for column, query in enumerate(queries)}
    tops = np.zeros((len(runs), len(queries), similarity.TOP), np.uint64)
    for index, run in enumerate(runs):
        documents = run.documents[:, : similarity.TOP]
        at = [columns[query] for query in run.queries]
        tops[index, at, : documents.shape[1]] = documents
    return tops


_MIX = np.uint64(0x9E3779B97F4A7C15)
_SEEN_BITS = 24
_SEEN_SHIFT = np.uint64(64 - _SEEN_BITS)


def _number(lists: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each list along the last axis: the same for equal ones."""
    number = np.zeros(lists.shape[:2], np.uint64)
    for index in range(lists.shape[2]):
        number = (number ^ lists[:, :, index]) * _MIX
    return number


def _make_sparse(numbers: NDArray[np.uint64], values: NDArray[np.float64]) -> "csr_array":
    """Make a row for each run, a column for each number of a query that several runs have.

    Args:
        numbers: shape (runs, queries, any).
        values: of the same shape, not negative.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    where = np.flatnonzero(values)
    row, query = np.unravel_index(where, numbers.shape)[:2]
    mixed = numbers.ravel()[where] + query.astype(np.uint64) * _MIX
    _, columns, counts = np.unique(mixed, return_inverse=True, return_counts=True)
    met = counts[columns] > 1
    where, row, columns = where[met], row[met], columns[met]
    shape = len(numbers), len(counts)
    return csr_array((values.ravel()[where], (row, columns)), shape=shape)


def _find_contained(tops: NDArray[np.uint64]) -> tuple["csr_array", "csr_array"]:
    """Find, by runs and first three documents of a query, whose first these are and who has them.

    Args:
        tops: as `_stack` gives them.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    of_query = np.arange(tops.shape[1], dtype=np.uint64) * _MIX
    heads = _number(np.sort(tops[:, :, : similarity.HEAD], axis=2)) + of_query
    each = np.sort(tops, axis=2)  # so that a set has one number
    whole = tops[:, :, similarity.HEAD - 1] != 0
    known, columns = np.unique(heads[whole], return_inverse=True)
    shape = len(tops), len(known)
    first = csr_array((np.ones(len(columns)), (whole.nonzero()[0], columns)), shape=shape)
    # Most threes are nobody's first: that is seen sooner here than by a search.
    seen = np.zeros(1 << _SEEN_BITS, bool)
    seen[known >> _SEEN_SHIFT] = True
    rows, indices = [], []
    for three in combinations(range(similarity.TOP), similarity.HEAD):
        numbers = _number(each[:, :, three]) + of_query
        row, query = np.nonzero(seen[numbers >> _SEEN_SHIFT] & whole)
        found = numbers[row, query]
        index = np.searchsorted(known, found)
        met = known[np.minimum(index, len(known) - 1)] == found
        rows.append(row[met])
        indices.append(index[met])
    row, index = np.concatenate(rows), np.concatenate(indices)
    return first, csr_array((np.ones(len(row)), (row, index)), shape=shape)


def _meet(rows: "csr_array", others: "csr_array") -> NDArray[np.float64]:
    """The products of each of some runs with each of others."""
    met: NDArray[np.float64] = (rows @ others.T).toarray()
    return met


class Sample:
    """The sketches of all earlier runs for the queries that a fusion is fitted to.

    Args:
        tops: of them, shape (runs, queries, TOP).
        key: as in `Sketches`.
    """

    def __init__(self, tops: NDArray[np.uint16], key: int) -> None:
        self._key = key
        self._starts = np.arange(tops.shape[1], dtype=np.int64)[:, None] << BITS
        self._lengths = np.count_nonzero(tops, axis=2)
        seen = np.zeros(tops.shape[1] << BITS, bool)
        for part in _parts(tops):
            seen[self._starts + tops[part]] = True
        seen[self._starts] = False
        self._known = np.flatnonzero(seen)
        numbers = np.cumsum(seen, dtype=np.int32)
        self._numbers = np.zeros(tops.shape, np.int32)
        for part in _parts(tops):
            some = tops[part]
            self._numbers[part] = np.where(some == 0, 0, numbers[self._starts + some])

    def propose(
        self,
        documents: NDArray[np.uint64],
        queries: NDArray[np.int64],
        residual: NDArray[np.float64],
        values: NDArray[np.float64],
        most: int,
    ) -> NDArray[np.int64]:
        """The runs whose first documents lie nearest to what is not yet explained.

        Args:
            documents: those that have a part in it.
            queries: of which query each is, from 0.
            residual: of each, what is not yet explained.
            values: what stands for a document at each rank.
            most: how many runs at most.

        Returns:
            Their places, nearest first; of equals the first that came.
        """
        wanted = self._starts[queries, 0] + shorten(documents, self._key)
        indices = np.searchsorted(self._known, wanted)
        met = np.append(self._known, -1)[indices] == wanted
        table = np.zeros(len(self._known) + 1, np.float32)
        table[indices[met] + 1] = residual[met]
        weights = values[: similarity.TOP].astype(np.float32)
        near = np.zeros(len(self._numbers))
        for part in _parts(self._numbers):
            near[part] = (table[self._numbers[part]] @ weights).sum(axis=1)
        squares = np.concatenate([[0.0], np.cumsum(values[: similarity.TOP] ** 2)])
        near /= np.sqrt(np.maximum(squares[self._lengths].sum(axis=1), 1e-300))
        return np.argsort(-near, kind="stable")[:most]


def _parts(tops: NDArray[Any]) -> Iterator[slice]:
    """Runs in steps."""
    step = max(1, _BLOCK // max(1, tops[:1].size))
    return (slice(at, at + step) for at in range(0, len(tops), step))
