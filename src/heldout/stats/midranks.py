"""Rank sums of many samples at once, with ties, in both halves of many splits.

The signed-rank and the rank-sum test need the same figures: elements stand in order of a key,
equal keys share their mean rank, and the ranks of labelled elements are added. For the
signed-rank test elements are the differences that are not zero, in order of size, labelled where
they are positive; for the rank-sum test they are the scores of both systems, labelled where they
are the second's. All figures are whole numbers: sums of ranks are doubled.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from heldout.stats.elements import MidrankSums, Sorted

__all__ = ["has_compiled", "sort_elements", "sum_midranks", "walk_plain"]

_DIGITS = 2


def sort_elements(
    keys: NDArray[np.generic], labels: NDArray[np.bool_], *, queries: int, skip: NDArray[np.intp]
) -> Sorted:
    """Put the elements of each pair in order.

    Args:
        keys: shape (pairs, elements), equal where elements are tied.
        labels: same shape.
        queries: elements `e`, `e + queries` and so on belong to query `e`.
        skip: how many of the smallest keys do not take part, shape (pairs,).
    """
    # 16 bits are sorted by their digits, but only where the order of equal keys is to be kept
    places = np.argsort(keys, axis=1, kind="stable" if keys.itemsize <= _DIGITS else None)
    flat = places + np.arange(len(keys))[:, None] * keys.shape[1]
    ordered = keys.take(flat)
    starts = np.ones(keys.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=starts[:, 1:])
    return Sorted(
        order=places % queries,
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
    walk = (_compiled_walk() if compiled else None) or walk_plain
    walk(elements, member, sums)
    return sums


def has_compiled() -> bool:
    """Whether numba is installed and loads."""
    return _compiled_walk() is not None


@cache
def _compiled_walk() -> Callable[..., None] | None:
    try:
        from heldout.stats.compiled import walk  # noqa: PLC0415 - numba is an extra, slow to load
    except ImportError:
        return None
    return walk


def walk_plain(elements: Sorted, member: NDArray[np.uint8], sums: MidrankSums) -> None:
    """Add to sums of 0 what the elements give; `compiled.walk` does the same."""
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
