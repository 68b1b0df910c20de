"""How often systems have each of few values, in both halves of many splits.

Two samples' ranks and a sample's median follow from their histograms alone, and sums over all
pairs of histograms are matrix products. Counts are whole numbers below 2^53, so products of
float64 are exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Histograms", "count_values"]


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
