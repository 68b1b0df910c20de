"""Would the ranking look the same on other queries? How often each system gets each rank.

Every trial draws queries with replacement and ranks all systems by their mean
(msmarco-benchmarking, section 3.1, tables 1 and 2, figure 3). This describes the ranking and is no
confidence statement: percentiles of these ranks hold far less often than they say where systems
are close. For ranks that may be believed see `validity.ranges`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.ids import Digest
from heldout.scores import Better, ScoreTable
from heldout.stats.resampling import TieRule, bootstrap_ranks
from heldout.validity.score_matrix import score_matrix

__all__ = ["Stability", "bootstrap_stability"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stability:
    """Ranks under the bootstrap.

    Attributes:
        systems: names, the best first.
        means: their scores.
        rank_counts: int64, shape (systems, systems): in how many trials a system had rank
            column + 1.
        trials: how many there were.
        size: queries drawn in each.
        ties: what equal means got.
        tied_trials: trials in which some systems had equal means, so that the rule decided.
        queries: how many there are to draw from.
        better: which scores are better.
        digest: of the table of scores.
    """

    systems: tuple[str, ...]
    means: tuple[float, ...]
    rank_counts: NDArray[np.int64]
    trials: int
    size: int
    ties: TieRule
    tied_trials: int
    queries: int
    better: Better
    digest: Digest

    @property
    def rank_probability(self) -> NDArray[np.float64]:
        """Share of trials in which a system had rank column + 1; rows sum to 1."""
        return self.rank_counts / self.trials

    @property
    def expected_rank(self) -> NDArray[np.float64]:
        """Mean rank of each system over the trials, from 1."""
        ranks = np.arange(1, len(self.systems) + 1)
        return (self.rank_counts @ ranks) / self.trials


def bootstrap_stability(
    table: ScoreTable,
    rng: Generator,
    *,
    better: Better = "higher",
    trials: int = 1000,
    size: int | None = None,
    ties: TieRule = "earlier",
    executor: Executor | None = None,
) -> Stability:
    """How often each system gets each rank.

    Args:
        table: at least two systems on at least two queries, none missing; systems in the order
            of their submission, which decides ties.
        rng: where draws come from.
        better: which scores are better.
        trials: how many, >= 1.
        size: queries that a trial draws, >= 1; `None` for as many as there are.
        ties: what equal means get.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`.
    """
    matrix = score_matrix(table, better=better)
    size = len(matrix.queries) if size is None else size
    # In the order of the table: there the earlier submission stands first.
    place = {name: row for row, name in enumerate(matrix.systems)}
    rows = [place[name] for name in table.systems]
    found = bootstrap_ranks(
        matrix.values[rows], rng, trials=trials, size=size, ties=ties, executor=executor
    )
    counts = np.empty_like(found.counts)
    counts[rows] = found.counts
    return Stability(
        systems=matrix.systems,
        means=matrix.means,
        rank_counts=counts,
        trials=trials,
        size=size,
        ties=ties,
        tied_trials=found.tied,
        queries=len(matrix.queries),
        better=better,
        digest=matrix.digest,
    )
