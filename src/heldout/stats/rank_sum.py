"""The rank-sum test of two samples: Mann-Whitney's, or without its corrections."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from heldout.stats.ranking import midranks
from heldout.stats.result import Ask, Found, normal_p
from heldout.stats.student import welch_freedom

__all__ = ["Corrections", "rank_sum_test"]

Corrections = Literal["mann-whitney", "ranksums"]
Scores = NDArray[np.float64]


def rank_sum_test(a: Scores, b: Scores, ask: Ask, *, kind: Corrections) -> Found:
    """Does a score of B exceed one of A as often as the other way round?

    Args:
        a: scores of A.
        b: scores of B, not necessarily on the same queries.
        ask: direction and level.
        kind: `mann-whitney` corrects for ties and continuity, `ranksums` for neither.

    Returns:
        The difference is P(B > A) - P(A > B), its interval by the variance of placements
        (Brunner and Munzel), which takes the samples as independent.
    """
    used = len(a) + len(b)
    pooled = np.concatenate((a, b))
    if np.ptp(pooled) == 0:
        return Found(used=used, difference=0.0, why="all scores are the same")
    ranks = midranks(pooled)
    mean = len(a) * len(b) / 2
    above = float(ranks[len(a) :].sum()) - len(b) * (len(b) + 1) / 2
    corrected = kind == "mann-whitney"
    placed = _place(a, b, ranks, ask.level)
    return Found(
        used=used,
        difference=(above - mean) / mean,
        low=placed.low,
        high=placed.high,
        statistic=above,
        p=normal_p(
            above - mean,
            error=_error(pooled, len(a), ties=corrected),
            continuity=corrected,
            alternative=ask.alternative,
        ),
        why=placed.why,
    )


def _error(pooled: Scores, size: int, *, ties: bool) -> float:
    """Standard deviation of the statistic under the null."""
    total = len(pooled)
    spread = total + 1.0
    if ties:
        counts = np.unique(pooled, return_counts=True)[1].astype(np.float64)
        spread -= float(np.sum(counts**3 - counts)) / (total * (total - 1))
    return math.sqrt(size * (total - size) / 12 * spread)


class _Placed(NamedTuple):
    low: float | None
    high: float | None
    why: str | None


def _place(a: Scores, b: Scores, ranks: Scores, level: float) -> _Placed:
    """The interval of P(B > A) - P(A > B)."""
    if min(len(a), len(b)) < 2:  # noqa: PLR2004 - a variance needs two
        return _Placed(None, None, "a system has a single score")
    # The share of the other sample that each score exceeds, ties counting half
    of_a = (ranks[: len(a)] - midranks(a)) / len(b)
    of_b = (ranks[len(a) :] - midranks(b)) / len(a)
    parts = [float(np.var(of, ddof=1)) / len(of) for of in (of_a, of_b)]
    if not sum(parts):
        return _Placed(None, None, "the samples do not overlap: no interval")
    freedom = welch_freedom(parts, (len(a), len(b)))
    # The shares differ by twice what the placements do
    half = 2 * float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(sum(parts))
    centre = float(np.mean(of_b)) - float(np.mean(of_a))
    return _Placed(max(-1.0, centre - half), min(1.0, centre + half), None)
