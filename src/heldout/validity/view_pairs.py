"""Two views of the same entries side by side, and both resampled together.

Queries that both views average over are drawn once for both; the others are drawn for each alone.
So a difference between the views has the spread that new queries would give it.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.resampling import bootstrap_means
from heldout.validity.entries import BoardEntry, BoardScores, ViewScores

__all__ = ["ViewPair", "pair_views"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewPair:
    """Entries with a score on both of two views, in the order they came.

    Attributes:
        entries: baselines too.
        first, second: the views.
        first_means, second_means: score of each entry.
        resampled: whether both views have scores by query, so that they can be resampled.
    """

    entries: tuple[BoardEntry, ...]
    first: ViewScores
    second: ViewScores
    first_means: NDArray[np.float64]
    second_means: NDArray[np.float64]
    resampled: bool

    def resample(
        self, rng: Generator, *, trials: int, executor: Executor | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means over queries drawn with replacement, as many of each kind as there are.

        Args:
            rng: where draws come from.
            trials: how many, at least 1.
            executor: where to compute; `None` for here.

        Returns:
            Means on the first and on the second view, each of shape (trials, entries).

        Raises:
            ValueError: a view has no scores by query.
        """
        first, second = self.first.rows(self.entries), self.second.rows(self.entries)
        if first is None or second is None:
            raise ValueError(self.first.view, self.second.view)
        count = len(self.entries)
        totals = np.zeros((trials, 2 * count))
        for stratum in _stratify(self.first, self.second, first, second):
            means = bootstrap_means(stratum, rng, trials=trials, executor=executor)
            totals += means * stratum.shape[1]
        return totals[:, :count] / first.shape[1], totals[:, count:] / second.shape[1]


def pair_views(board: BoardScores, first: ViewScores, second: ViewScores) -> ViewPair:
    """The entries that have a score on both views.

    Args:
        board: whose entries.
        first: a view of it.
        second: another.
    """
    entries = board.scored(first, second)
    return ViewPair(
        entries=entries,
        first=first,
        second=second,
        first_means=_means(first, entries),
        second_means=_means(second, entries),
        resampled=first.table is not None and second.table is not None,
    )


def _means(view: ViewScores, entries: Sequence[BoardEntry]) -> NDArray[np.float64]:
    return np.array([view.means[entry.id] for entry in entries], np.float64)


def _stratify(
    one: ViewScores,
    other: ViewScores,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Queries of both views, of the first alone, of the second alone; 0 where one has no score."""
    names = [() if view.table is None else view.table.queries for view in (one, other)]
    left = {query: n for n, query in enumerate(names[0])}
    right = {query: n for n, query in enumerate(names[1])}
    shared = [query for query in left if query in right] if one.queries == other.queries else []
    both = np.concatenate(
        [first[:, [left[q] for q in shared]], second[:, [right[q] for q in shared]]]
    )
    alone = np.delete(first, [left[q] for q in shared], axis=1)
    rest = np.delete(second, [right[q] for q in shared], axis=1)
    strata = [
        both,
        np.concatenate([alone, np.zeros_like(alone)]),
        np.concatenate([np.zeros_like(rest), rest]),
    ]
    return [stratum for stratum in strata if stratum.shape[1]]
