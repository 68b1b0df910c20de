"""Pairs of a query and a document as text, and what scores them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.ids import Digest

__all__ = ["PairScorer", "Reranker", "TextPair"]


class TextPair(NamedTuple):
    """The texts of a query and of one document."""

    query: str
    document: str


PairScorer = Callable[[Sequence[TextPair]], NDArray[np.float64]]
"""From pairs to one score each, in their order: higher is better, all finite."""


class Reranker(Protocol):
    """A loaded model that scores pairs."""

    @property
    def digest(self) -> Digest:
        """SHA-256 of all that its scores depend on: weights and settings."""

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """One finite score per pair, higher is better: a `PairScorer`."""
