"""duoT5: which of two documents answers the query better, asked for all ordered pairs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from heldout.ids import Digest
from heldout.rankers.cross_encoder import CrossEncoder, MonoT5Settings, load_cross_encoder
from heldout.rankers.pairs import TextPair

__all__ = ["DuoT5", "DuoT5Settings", "load_duo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuoT5Settings(MonoT5Settings):
    """Which duoT5, and how it is run; k documents take k (k - 1) questions, so 10 to 50 of them."""

    model: str = "duot5"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuoT5:
    """A loaded duoT5.

    Attributes:
        encoder: the T5 below, which answers.
    """

    encoder: CrossEncoder

    @property
    def digest(self) -> Digest:
        """SHA-256 of the weights and of what else scores depend on."""
        return Digest(hashlib.sha256(f"duo {self.encoder.digest}".encode()).hexdigest())

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """Scores of documents against the others of the same query in the same call.

        Args:
            pairs: any number; those of one query are compared with each other, so scores of two
                calls do not compare.

        Returns:
            float64, shape (pairs,): the sum, over the other documents of the query, of the
            probability that this one is the more relevant, asked both ways round: p of this one
            first and 1 - p of the other first; 0 where there is no other.

        Raises:
            InputError: code `model-scores`.

        Source: Pradeep, Nogueira and Lin, arXiv:2101.05667, 2021, section 3.3 (SYM-SUM).
        """
        queries: dict[str, list[int]] = {}
        for row, pair in enumerate(pairs):
            queries.setdefault(pair.query, []).append(row)
        ordered = [pair for rows in queries.values() for pair in permutations(rows, 2)]
        sums = np.zeros(len(pairs))
        preferences = self._preferences(pairs, ordered)
        for (row, other), preference in zip(ordered, preferences, strict=True):
            sums[row] += preference
            sums[other] += 1 - preference
        return sums

    def _preferences(
        self, pairs: Sequence[TextPair], ordered: Sequence[tuple[int, int]]
    ) -> NDArray[np.float64]:
        """Probability for each ordered pair that its first is the more relevant."""
        prompts = [
            (
                f"Query: {pairs[one].query}",
                f"Document0: {pairs[one].document}",
                f"Document1: {pairs[other].document}",
            )
            for one, other in ordered
        ]
        odds = self.encoder.score_prompts(prompts)
        return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


def load_duo(settings: DuoT5Settings) -> DuoT5:
    """Load a duoT5.

    Raises:
        InputError: code `model-checkpoint`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    return DuoT5(encoder=load_cross_encoder(settings))
