"""Which ranks each system may have: ranges that hold for all systems at once.

A system's range reaches from 1 + the number of systems significantly better to n − the number
significantly worse, by paired sign-flip tests of all pairs with a max-t correction
(Mogstad, Romano, Shaikh and Wilhelm 2024). At level 95% all true ranks lie in their ranges in 95 of
100 samples of queries, near ties too, where percentiles of bootstrapped ranks do not.

That takes for granted that the sample shows how differences vary. Where runs are nearly alike but
fail rarely and badly, few queries show no failure, and no resampling of them can know of one. So
each pair that is told apart by little is asked a second time, by a test that takes no distribution
for granted but that no loss exceeds the largest difference in the table (`bounded_mean_p`).

What cannot be told apart is not transitive, so ranges make no tiers. Only the lead group is
marked: the systems whose range reaches 1.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.ids import Digest
from heldout.scoring.table import Better, ScoreTable, score_matrix
from heldout.stats.exact import gather_samples
from heldout.stats.sign_flips import max_t
from heldout.stats.student import bounded_mean_p

_LOSSES = 10
_CELLS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankRanges:
    """Simultaneous ranges of ranks.

    Attributes:
        systems: names, the best first.
        means: their scores.
        low, high: first and last rank of each system's range, from 1.
        p: float64, shape (systems, systems), corrected over all pairs and both directions:
            that the one of a pair with the better mean is not better. NaN on the diagonal and
            where two systems have equal scores on every query.
        pairs: how many pairs were tested, so 2 * pairs hypotheses form the family.
        level: chance that all ranges hold.
        flips: sign flips drawn.
        step_down: whether significant pairs leave the maximum.
        queries: how many.
        better: which scores are better.
        doubtful: pairs that are told apart, although losses too rare to be in the sample, and no
            larger than `largest`, could undo the difference of their means.
        largest: the largest difference of two systems on a query.
        digest: of the table of scores.
    """

    systems: tuple[str, ...]
    means: tuple[float, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    p: NDArray[np.float64]
    pairs: int
    level: float
    flips: int
    step_down: bool
    queries: int
    better: Better
    doubtful: int
    largest: float
    digest: Digest

    @property
    def told_apart(self) -> int:
        """How many pairs are told apart."""
        return sum(len(self.high) - high for high in self.high)

    @property
    def lead(self) -> tuple[str, ...]:
        """The lead group: those that may be first."""
        return tuple(name for name, low in zip(self.systems, self.low, strict=True) if low == 1)


def rank_ranges(
    table: ScoreTable,
    rng: Generator,
    *,
    better: Better = "higher",
    level: float = 0.95,
    flips: int = 10_000,
    step_down: bool = True,
    executor: Executor | None = None,
) -> RankRanges:
    """The ranks that each system may have.

    Args:
        table: at least two systems on at least two queries, none missing.
        rng: where signs come from.
        better: which scores are better.
        level: in (0, 1).
        flips: how many, at least 1 / (1 - level), or no pair could be told apart.
        step_down: leave those that are significant out of the maximum for those that follow.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`,
            `too-few-flips`.
    """
    alpha = round(1 - level, 12)
    if alpha * (1 + flips) < 1:
        raise InputError.of(
            "too-few-flips",
            "flips",
            f"{flips}, whose smallest p is {1 / (1 + flips):.2g}",
            f"enough for p <= {alpha:.2g}",
        )
    matrix = score_matrix(table, better=better)
    p = max_t(matrix.values, rng, flips=flips, step_down=step_down, executor=executor)
    # Rows stand in the order of their means, so of a pair the upper one is the better.
    apart = np.triu(np.nan_to_num(p, nan=1.0) <= alpha, 1)
    n = len(matrix.systems)
    largest = float((matrix.values.max(axis=0) - matrix.values.min(axis=0)).max())
    return RankRanges(
        systems=matrix.systems,
        means=matrix.means,
        low=tuple((1 + apart.sum(axis=0)).tolist()),
        high=tuple((n - apart.sum(axis=1)).tolist()),
        p=p,
        pairs=int(np.isfinite(np.triu(p, 1)[np.triu_indices(n, 1)]).sum()),
        level=level,
        flips=flips,
        step_down=step_down,
        queries=len(matrix.queries),
        better=better,
        doubtful=_count_doubtful(matrix.values, apart, largest, alpha),
        largest=largest,
        digest=matrix.digest,
    )


def _count_doubtful(
    values: NDArray[np.float64], apart: NDArray[np.bool_], largest: float, alpha: float
) -> int:
    """Return how many of the pairs that are told apart losses too rare to be seen could undo.

    Pairs whose means differ by more than ten of the largest losses are in no doubt.
    """
    queries = values.shape[1]
    means = values.mean(axis=1)
    near = apart & (means[:, np.newaxis] - means < _LOSSES * largest / queries)
    better, worse = np.nonzero(near)
    size = max(1, _CELLS // queries)
    found = 0
    for start in range(0, len(better), size):
        some = slice(start, start + size)
        losses = values[worse[some]] - values[better[some]]
        samples = gather_samples(losses, np.ones(losses.shape, np.bool_))
        found += int((bounded_mean_p(samples, null=0.0, bound=largest) > alpha).sum())
    return found
