"""Pseudomedians of many samples, with the intervals of the signed-rank test.

Whole numbers, such as differences of ranks, have few different Walsh averages: a histogram folded
with itself counts them for all samples at once. Of small samples all averages are laid out, and in
large ones they are looked for (`walsh`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.stats.samples import Samples
from heldout.stats.signed_rank import EXACT_AT_MOST, place_of_end
from heldout.stats.walsh import WalshAverages, fold_histograms, sort_averages

__all__ = ["Pseudomedians", "estimate_pseudomedians"]

_SPAN = 4096

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Pseudomedians(NamedTuple):
    """Centres of samples, and the ends of their intervals.

    Attributes:
        centre: `None` where a sample is empty.
        low: `None` where it is too small for an interval.
        high: likewise.
    """

    centre: list[float | None]
    low: list[float | None]
    high: list[float | None]


def estimate_pseudomedians(samples: Samples, *, level: float) -> Pseudomedians:
    """Estimate the centre of each sample.

    Args:
        samples: some may be empty.
        level: of the intervals, between 0 and 1.
    """
    none: list[float | None] = [None] * len(samples.sizes)
    found = Pseudomedians(none, none.copy(), none.copy())
    whole = _has_whole_numbers(samples)
    reached = _fold(samples) if whole else None
    for size in np.unique(samples.sizes[samples.sizes > 0]).tolist():
        rows = np.flatnonzero(samples.sizes == size)
        count = size * (size + 1) // 2
        place = max(0, place_of_end(size, (1 - level) / 2))
        places = [(count + 1) // 2, count // 2 + 1]
        places += [place, count + 1 - place] if place else []
        if reached is not None:
            least = float(samples.values.min())
            averages = _look_up(reached[rows], places) / 2 + least
        elif size <= EXACT_AT_MOST:
            averages = _lay_out(samples, rows, size)[:, np.array(places) - 1]
        else:
            averages = _look_for(samples, rows, places)
        _keep(found, rows, averages)
    return found


def _has_whole_numbers(samples: Samples) -> bool:
    """Whether all values are whole numbers that lie close together."""
    if not len(samples.values):
        return False
    close = samples.values.max() - samples.values.min() < _SPAN
    return bool(close and np.array_equal(samples.values, np.rint(samples.values)))


def _fold(samples: Samples) -> NDArray[np.int64]:
    """How many averages of each sample are up to each half of a whole number."""
    places = (samples.values - samples.values.min()).astype(np.int64)
    span = int(places.max()) + 1
    cells = len(samples.sizes) * span
    histograms = np.bincount(samples.owners * span + places, samples.counts, cells)
    return fold_histograms(histograms.reshape(-1, span))


def _look_up(reached: NDArray[np.int64], places: list[int]) -> Floats:
    columns = [(reached < place).sum(axis=1) for place in places]
    return np.stack(columns, axis=1).astype(np.float64)


def _lay_out(samples: Samples, rows: Indices, size: int) -> Floats:
    inside = (samples.sizes == size)[samples.owners]
    values = np.repeat(samples.values[inside], samples.counts[inside])
    return sort_averages(values.reshape(len(rows), size))


def _look_for(samples: Samples, rows: Indices, places: list[int]) -> Floats:
    ends = np.searchsorted(samples.owners, [rows, rows + 1]).T.tolist()
    found = []
    for start, end in ends:
        averages = WalshAverages(samples.values[start:end], samples.counts[start:end])
        found.append([averages.find(place) for place in places])
    return np.array(found)


def _keep(found: Pseudomedians, rows: Indices, averages: Floats) -> None:
    """Take the centre, between the two averages in the middle, and the ends where there are."""
    first, second = averages[:, 0], averages[:, 1]
    centres = np.where(first == second, first, (first + second) / 2)
    for into, column in zip(found, (centres, *averages.T[2:]), strict=False):
        for row, value in zip(rows.tolist(), column.tolist(), strict=True):
            into[row] = value
