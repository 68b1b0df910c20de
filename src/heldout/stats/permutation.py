"""The sign-flip permutation test of two systems, and the interval that belongs to it.

Where A and B are exchangeable, each difference could as well have had the other sign. Flipping a
set of queries makes the mean at least as large as it was just where the set's own differences sum
to at most 0. So the means of all sets, in order, are the ends of the intervals that invert the
test: Hartigan's typical values. One product of sets and differences serves both.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.exact import ROUNDING, Oriented, differences, orient
from heldout.stats.results import Ask, Found

__all__ = ["ENUMERATED", "permutation_test"]

ENUMERATED = 16
"""Queries up to which every set is taken: 65,536 at most, and nothing is drawn."""

_CELLS = 1 << 22
Scores = NDArray[np.float64]


def permutation_test(a: Scores, b: Scores, ask: Ask, *, draws: int, rng: Generator) -> Found:
    """Is the mean difference larger than flipped signs make it?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
        draws: sets drawn where there are more than 16 queries, >= 1.
        rng: where they come from.

    Returns:
        p is (1 + hits) / (1 + draws), and hits / 2^n where all sets are taken.
    """
    difference = differences(a, b)
    oriented = orient(difference, ask.alternative)
    if not oriented.values.any():
        return Found(used=len(a), difference=0.0, why="every difference is 0")
    sets = _take_sets(oriented.values, draws=draws, rng=rng)
    close = ROUNDING * (len(a) + float(np.abs(oriented.values).sum()))
    all_sets = len(sets.sums) + 1  # the empty set is the data themselves, always a hit
    hits = _count_hits(sets.sums, oriented, close)
    low, high = _ends(np.sort(sets.sums / sets.sizes), ask.alpha / 2)
    low, high = oriented.turn(low, high)
    return Found(
        used=len(a),
        difference=oriented.mean,
        low=low,
        high=high,
        statistic=oriented.mean,
        p=(1 + hits) / all_sets,
        why=None if low is not None else f"too few sets of queries for an interval: {all_sets - 1}",
    )


class _Sets(NamedTuple):
    """Sets of queries that are not empty: sums of their differences, and sizes."""

    sums: Scores
    sizes: Scores


def _take_sets(values: Scores, *, draws: int, rng: Generator) -> _Sets:
    """All sets, or as many as are drawn."""
    parts = [
        (block @ values, block.sum(axis=1))
        for block in (
            _every_set(len(values))
            if len(values) <= ENUMERATED
            else _draw_sets(len(values), draws, rng)
        )
    ]
    sums, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Sets(sums[sizes > 0], sizes[sizes > 0])


def _every_set(size: int) -> Iterator[Scores]:
    members = np.arange(1 << size)[:, None] >> np.arange(size) & 1
    yield members.astype(np.float64)


def _draw_sets(size: int, draws: int, rng: Generator) -> Iterator[Scores]:
    rows = max(1, _CELLS // size)
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), size)
        yield rng.integers(0, 2, size=shape, dtype=np.int8).astype(np.float64)


def _count_hits(sums: Scores, oriented: Oriented, close: float) -> int:
    """How many flips give a mean at least as far out as it was."""
    rises = sums <= close
    if oriented.alternative == "greater":
        return int(np.sum(rises))
    if oriented.alternative == "less":
        return int(np.sum(sums >= -close))
    return int(np.sum(rises | (sums >= float(oriented.values.sum()) - close)))


def _ends(means: Scores, tail: float) -> tuple[float | None, float | None]:
    """The means that leave a tail on each side."""
    place = int(tail * (len(means) + 1) * (1 + ROUNDING))
    if place < 1:
        return None, None
    return float(means[place - 1]), float(means[-place])
