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
        size = int(self._before[-1])
        self.count = size * (size + 1) // 2

    def find(self, place: int) -> float:
        """The average at a place in ascending order, rounded to 1e-12.

        Args:
            place: 1 to `count`.
        """
        low, high = self._ends
        if self._between(low, high).sum() > _LAID_OUT:
            for limit in self._guess(place):
                low, high = self._narrow(low, high, limit, place)
        while (lengths := self._between(low, high)).sum() > _LAID_OUT:
            middle = (low.limit + high.limit) / 2
            if not low.limit < middle < high.limit:
                return _round(high.limit)
            low, high = self._narrow(low, high, middle, place)
        return _round(self._lay_out(low, high, lengths, place))

    def median(self) -> float:
        """The pseudomedian: the Hodges-Lehmann estimate of the values' centre."""
        lower, upper = (self.count + 1) // 2, self.count // 2 + 1
        first = self.find(lower)
        return first if lower == upper else (first + self.find(upper)) / 2

    @cached_property
    def _ends(self) -> tuple[_Cut, _Cut]:
        """Limits that none and that all averages reach."""
        size = len(self._values)
        first, last = float(self._values[0]), float(self._values[-1])
        none = _Cut(float(np.nextafter(first, -np.inf)), np.zeros(0, np.int64), 0)
        return none, _Cut(last, np.full(size, size), self.count)

    def _cut(self, limit: float) -> _Cut:
        """Each pair is counted at its smaller value, which is not above the limit."""
        own = int(self._values.searchsorted(limit, "right"))
        ends = self._values.searchsorted(2 * limit - self._values[:own], "right")
        counts = self._counts[:own]
        others = self._before[ends] - self._before[1 : own + 1]
        return _Cut(limit, ends, int(counts @ others + (counts * (counts + 1) // 2).sum()))

    def _narrow(self, low: _Cut, high: _Cut, limit: float, place: int) -> tuple[_Cut, _Cut]:
        cut = self._cut(limit)
        return (low, cut) if cut.total >= place else (cut, high)

    def _starts(self, low: _Cut, high: _Cut) -> Integers:
        """The first partner of each value that takes its average above the lower limit."""
        starts = np.arange(len(high.ends))
        starts[: len(low.ends)] = low.ends
        return starts

    def _between(self, low: _Cut, high: _Cut) -> Integers:
        """How many distinct averages each value has between the limits, as the smaller value."""
        lengths: Integers = high.ends - self._starts(low, high)
        return lengths

    def _lay_out(self, low: _Cut, high: _Cut, lengths: Integers, place: int) -> float:
        smaller = np.repeat(np.arange(len(lengths)), lengths)
        firsts = self._starts(low, high) - (np.cumsum(lengths) - lengths)
        larger = np.arange(len(smaller)) + firsts[smaller]
        sums = self._values[smaller] + self._values[larger]
        counts = self._counts[smaller] * (self._counts[larger] + (smaller == larger))
        counts[smaller == larger] //= 2
        order = np.argsort(sums)
        reached = low.total + np.cumsum(counts[order])
        return float(sums[order[reached.searchsorted(place)]]) / 2

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


def _round(value: float) -> float:
    return float(np.round(value, DECIMALS)) + 0.0
