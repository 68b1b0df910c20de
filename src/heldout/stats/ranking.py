"""Ranks of numbers, ties sharing theirs."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["midranks"]


def midranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, ascending; equal values share the mean of their places.

    Args:
        values: finite, one dimension.
    """
    _, places, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return np.asarray((ends - (sizes - 1) / 2)[places], np.float64)
