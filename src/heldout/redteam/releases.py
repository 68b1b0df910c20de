"""Two systems that nobody can tell apart: whatever is gained by choosing between them is luck.

Two real runs have scores per query. For each game a fair coin per query decides which of the two
is called first. A run of the attacker says for every query "first" or "second", or spoils it.
Before the coins fall every run that spoils nothing has the same expected score, the mean of both
systems. So the truth is known without labels of another query set: no run is better than that, and
a score above it is fitted to the labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Run = NDArray[np.int8]
"""What answers each query: 1 the first system, -1 the second, 0 documents that are beside it."""

Scores = NDArray[np.float64]
"""A score for every query."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GameLabels:
    """The held-out labels of one game, seen through the two systems.

    Attributes:
        first, second: scores per query of what is called first and second in this game.
    """

    first: Scores
    second: Scores

    def score(self, run: Run) -> Scores:
        """The scores per query of a run.

        Args:
            run: what answers each query.
            baseline: per-query scores of the best baseline, where a run may copy it.
        """
        return np.where(run == 0, 0.0, np.where(run > 0, self.first, self.second))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exchange:
    """Two systems before the coins fall.

    Attributes:
        a, b: their scores per query.
    """

    a: Scores
    b: Scores

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.a)

    @property
    def truth(self) -> float:
        """The expected score of every run that spoils nothing, in units of the measure."""
        return float(self.a.mean() + self.b.mean()) / 2

    @property
    def unit(self) -> float:
        """u, the standard error of A - B over the queries, in units of the measure.

        After the exchange the expected difference is 0, so it is the root of the mean square of
        the differences over the root of their number.
        """
        return float(np.sqrt(np.mean((self.a - self.b) ** 2) / self.queries))

    @property
    def middle(self) -> Scores:
        """The expected score of every query before the coins fall."""
        return np.asarray((self.a + self.b) / 2, np.float64)

    def toss(self, rng: np.random.Generator) -> GameLabels:
        """Throw the coins of one game."""
        heads = coins(rng, self.queries)
        return GameLabels(
            first=np.where(heads, self.a, self.b), second=np.where(heads, self.b, self.a)
        )


def coins(rng: np.random.Generator, count: int) -> NDArray[np.bool_]:
    """Fair coins."""
    return rng.integers(0, 2, count, dtype=np.bool_)


def guess(rng: np.random.Generator, count: int) -> Run:
    """A run that chooses by coins."""
    return np.where(coins(rng, count), np.int8(1), np.int8(-1))


def exchange(a: ArrayLike, b: ArrayLike) -> Exchange:
    """Two systems from their scores on the same queries.

    Raises:
        ValueError: not two rows of finite scores of equal length, or they never differ.
    """
    one, other = np.array(a, np.float64), np.array(b, np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError("not scores of the same queries")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ValueError("a score is not finite")
    if (one == other).all():
        raise ValueError("the systems never differ")
    return Exchange(a=one, b=other)


def newcomer(pair: Exchange, rng: np.random.Generator) -> Scores:
    """Scores of an independent system, as good as the two, before anything is added to them.

    Its paired standard error against a run of coins is u: a quarter of the variance of A - B is
    that run's, three quarters are its own.
    """
    sides = np.where(coins(rng, pair.queries), 1.0, -1.0)
    return np.asarray(pair.middle + sides * np.sqrt(3) / 2 * (pair.a - pair.b), np.float64)


def weaken(
    pair: Exchange, values: Scores, weak: Scores, loss: float, *, rng: np.random.Generator
) -> Scores:
    """A baseline: the scores of a run, on some queries those of a weak system.

    Args:
        pair: the systems that the run chooses from.
        values: the run's scores.
        weak: a weak system's; where it is not weak enough 0 takes its place.
        loss: how far the baseline shall lie below, in the expected mean; at least 0.
        rng: draws the queries.

    Raises:
        ValueError: not even a run that finds nothing lies so far below.
    """
    if loss <= 0:
        return values
    if loss > pair.truth:
        raise ValueError(f"a score of {pair.truth:.4f} has no room for a baseline {loss:.4f} below")
    lost = float((pair.middle - weak).mean())
    if lost < loss:
        share = (loss - lost) / (pair.truth - lost)
        return np.where(rng.random(pair.queries) < share, 0.0, weak)
    return np.where(rng.random(pair.queries) < loss / lost, weak, values)
