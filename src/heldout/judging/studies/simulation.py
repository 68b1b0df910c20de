"""Judges made up, of known strength: one prefers i to j with chance s(theta_i - theta_j)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy.random import Generator
from scipy.special import expit

SPREAD = 0.8
"""Standard deviation of strengths; a vote on two random passages is right 69% of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJudge:
    """A judge who prefers the stronger passage, more often the more it is stronger.

    Attributes:
        strengths: (query, document) -> strength in logits.
        rng: where answers come from.
        careless: share of answers that look at neither passage.
        left: logits by which the left passage is preferred for being on the left.
    """

    strengths: Mapping[tuple[str, str], float]
    rng: Generator = field(compare=False)
    careless: float = 0.0
    left: float = 0.0

    def choose(self, query: str, left: str, right: str) -> str:
        """The preferred one of two documents of a query.

        Raises:
            KeyError: the strength of one is not known.
        """
        ahead = self.strengths[query, left] - self.strengths[query, right]
        if self.rng.random() < self.careless:
            ahead = 0.0
        return left if self.rng.random() < expit(ahead + self.left) else right
