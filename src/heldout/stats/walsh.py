"""Walsh averages: the means of all pairs of differences, whose median is the pseudomedian."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.stats.exact import DECIMALS

__all__ = ["WalshAverages", "fold_histograms", "sort_averages"]

_LAID_OUT = 4096
_BINS = (64, 2048)
_MARGIN = 0.25

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class _Cut(NamedTuple):
    """Where a limit cuts the averages.

    Attributes:
        limit: averages up to this are counted.
        ends: for each of the smallest values, how many values make an average up to the limit
            with it.
        total: how many averages there are up to the limit.
    """

    limit: float
    ends: Integers
    total: int


class _Stretch(NamedTuple):
    """Averages that follow each other.

    Attributes:
        before: how many averages come before them.
        sums: twice the averages, ascending.
        reached: how many averages there are up to each.
    """

    before: int
    sums: Floats
    reached: Integers


class WalshAverages:
    """The averages (x + y) / 2 of all pairs of values, each value with itself too, in order.

    There are n (n + 1) / 2 of them. They are never all laid out: a histogram of the values,
    folded with itself, says between which limits one lies, and few lie there with it.

    Attributes:
        count: how many there are.
    """

    def __init__(self, values: Floats, counts: Integers | None = None) -> None:
        """Take the values.

        Args:
            values: finite, at least one; where there are counts, distinct and ascending.
            counts: how often each occurs; `None` where `values` has each as often.
        """
        if counts is None:
            values, counts = np.unique(values, return_counts=True)
        self._values, self._counts = values, counts
        self._before = np.concatenate(([0], np.cumsum(counts)))
        # Pairs are counted at the smaller value, a value with itself once
        twice = counts * self._before[1:] - counts * (counts + 1) // 2
        self._twice = np.concatenate(([0], np.cumsum(twice)))
        self._found = _Stretch(0, np.zeros(0), np.zeros(1, np.int64))
        size = int(self._before[-1])
        self.count = size * (size + 1) // 2

    def find(self, place: int) -> float:
        """The average at a place in ascending order, rounded to 1e-12.

        Args:
            place: 1 to `count`.
        """
        if not self._found.before < place <= self._found.reached[-1]:
            self._found = self._look_for(place)
        found = self._found.sums[self._found.reached.searchsorted(place)] / 2
        return float(np.round(found, DECIMALS)) + 0.0

    def median(self) -> float:
        """The pseudomedian: the Hodges-Lehmann estimate of the values' centre."""
        lower, upper = (self.count + 1) // 2, self.count // 2 + 1
        first = self.find(lower)
        return first if lower == upper else (first + self.find(upper)) / 2

    def _look_for(self, place: int) -> _Stretch:
        """Few averages that follow each other, among them the one at a place."""
        size = len(self._values)
        first, last = float(self._values[0]), float(self._values[-1])
        low = _Cut(float(np.nextafter(first, -np.inf)), np.zeros(0, np.int64), 0)
        high = _Cut(last, np.full(size, size), self.count)
        if size * (size + 1) // 2 > _LAID_OUT:
            for limit in self._guess(place):
                low, high = self._narrow(low, high, limit, place)
        while self._starts_and_lengths(low, high)[1].sum() > _LAID_OUT:
            middle = (low.limit + high.limit) / 2
            if not low.limit < middle < high.limit:
                return _Stretch(low.total, np.array([2 * high.limit]), np.array([high.total]))
            low, high = self._narrow(low, high, middle, place)
        return self._lay_out(low, high)

    def _narrow(self, low: _Cut, high: _Cut, limit: float, place: int) -> tuple[_Cut, _Cut]:
        cut = self._cut(limit)
        return (low, cut) if cut.total >= place else (cut, high)

    def _cut(self, limit: float) -> _Cut:
        own = int(self._values.searchsorted(limit, "right"))
        ends = self._values.searchsorted(2 * limit - self._values[:own], "right")
        pairs = self._counts[:own] @ self._before[ends]
        return _Cut(limit, ends, int(pairs - self._twice[own]))

    def _starts_and_lengths(self, low: _Cut, high: _Cut) -> tuple[Integers, Integers]:
        """For each smaller value the first partner between the limits, and how many there are."""
        starts = np.arange(len(high.ends))
        starts[: len(low.ends)] = low.ends
        return starts, high.ends - starts

    def _lay_out(self, low: _Cut, high: _Cut) -> _Stretch:
        starts, lengths = self._starts_and_lengths(low, high)
        smaller = np.repeat(np.arange(len(lengths)), lengths)
        larger = np.arange(len(smaller)) + (starts - np.cumsum(lengths) + lengths)[smaller]
        sums = self._values[smaller] + self._values[larger]
        counts = self._counts[smaller] * self._counts[larger]
        itself = smaller == larger
        counts[itself] = (counts[itself] + self._counts[smaller[itself]]) // 2
        order = np.argsort(sums)
        return _Stretch(low.total, sums[order], low.total + np.cumsum(counts[order]))

    def _guess(self, place: int) -> tuple[float, float]:
        """Limits between which an average probably lies, by a histogram of the values."""
        first, width, reached = self._folded
        at = int(reached.searchsorted(place))
        # The bins of x and y add up to that of x + y, or to the one before
        return first + (at - _MARGIN) * width / 2, first + (at + 2 + _MARGIN) * width / 2

    @cached_property
    def _folded(self) -> tuple[float, float, Integers]:
        """The smallest value, the width of a bin, and how many pairs are up to each sum of bins."""
        least, most = _BINS
        bins = min(max(least, 1 << (2 * len(self._values)).bit_length()), most)
        first, last = float(self._values[0]), float(self._values[-1])
        width = last / bins - first / bins
        places = ((self._values - first) / width).astype(np.int64).clip(max=bins - 1)
        histogram = np.bincount(places, self._counts, bins)
        return first, width, fold_histograms(histogram[np.newaxis])[0]


def fold_histograms(counts: Integers) -> Integers:
    """How many pairs of values have a sum of places up to each, each value with itself too.

    Args:
        counts: of values at each place, shape (samples, places); up to 1e7 of each sample.

    Returns:
        Shape (samples, 2 × places): column s counts the pairs with sums up to s.
    """
    size = 2 * counts.shape[1]
    # The product is exact: sums are whole numbers, and errors are far below a half
    ordered = np.fft.irfft(np.fft.rfft(counts, size) ** 2, size)
    ordered[:, ::2] += counts  # each value with itself
    return np.cumsum(np.rint(ordered).astype(np.int64), axis=1) // 2


def sort_averages(values: Floats) -> Floats:
    """All Walsh averages of small samples, in ascending order, rounded to 1e-12.

    Args:
        values: finite, shape (samples, size).

    Returns:
        Shape (samples, size (size + 1) / 2).
    """
    first, second = np.triu_indices(values.shape[1])
    averages = (values[:, first] + values[:, second]) / 2
    averages.sort(axis=1)
    return np.round(averages, DECIMALS) + 0.0
