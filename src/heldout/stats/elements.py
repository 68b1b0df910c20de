"""What is handed between `midranks` and the compiled walk: elements in order, and sums of ranks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MidrankSums", "Sorted"]


class Sorted(NamedTuple):
    """Elements of several pairs in ascending order of their keys, shape (pairs, elements) each.

    Attributes:
        order: the query that an element belongs to.
        labels: whether its rank is added.
        starts: whether its key differs from that of the element before.
        skip: shape (pairs,): how many elements at the front do not take part.
    """

    order: NDArray[np.intp]
    labels: NDArray[np.bool_]
    starts: NDArray[np.bool_]
    skip: NDArray[np.intp]


class MidrankSums(NamedTuple):
    """Whole numbers, int64 of shape (2, pairs, splits): of the first half, then of the second.

    Attributes:
        doubled: twice the sum of the mean ranks of labelled elements.
        ties: sum of t³ - t over groups of t equal keys.
        labelled: labelled elements.
        others: elements without a label.
    """

    doubled: NDArray[np.int64]
    ties: NDArray[np.int64]
    labelled: NDArray[np.int64]
    others: NDArray[np.int64]
