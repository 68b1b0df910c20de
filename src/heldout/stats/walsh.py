"""Walsh averages: the means of all pairs of differences, whose median is the pseudomedian."""

import numpy as np
from numpy.typing import NDArray

from heldout.stats.exact import DECIMALS

__all__ = ["WalshAverages"]

_STEPS = 200


class WalshAverages:
    """The averages (x + y) / 2 of all pairs of values, each value with itself too, in order.

    There are n (n + 1) / 2 of them. They are never laid out: one is found by counting how many
    are below a guess, n log n at a time.

    Attributes:
        count: how many there are.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        """Take the values, finite, at least one."""
        self._values, self._weights = np.unique(values, return_counts=True)
        self._below = np.concatenate(([0], np.cumsum(self._weights)))
        size = len(values)
        self.count = size * (size + 1) // 2

    def find(self, place: int) -> float:
        """The average at a place in ascending order, rounded to 1e-12.

        Args:
            place: 1 to `count`.
        """
        low, high = float(self._values[0]), float(self._values[-1])
        close = 1e-3 * 10.0**-DECIMALS
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if high - low <= close or not low < middle < high:
                break
            if self._count_to(middle) >= place:
                high = middle
            else:
                low = middle
        # Where bisection stopped, an end may be the very value that was asked for
        found = low if self._count_to(low) >= place else high
        return float(np.round(found, DECIMALS)) + 0.0

    def median(self) -> float:
        """The pseudomedian: the Hodges-Lehmann estimate of the values' centre."""
        lower, upper = (self.count + 1) // 2, self.count // 2 + 1
        first = self.find(lower)
        return first if lower == upper else (first + self.find(upper)) / 2

    def _count_to(self, limit: float) -> int:
        """How many averages are at most this."""
        partners = self._below[self._values.searchsorted(2 * limit - self._values, "right")]
        own = self._below[self._values.searchsorted(limit, "right")]
        return int(self._weights @ partners + own) // 2
