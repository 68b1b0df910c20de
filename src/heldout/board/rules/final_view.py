"""A final: who wins it, and how much of the winner's score may be luck.

The queries of a final view were never used before, so nobody can have fitted a run to them, and
each finalist is scored on them once. What is left is the luck of the best of several: a fixed
number of finalists that are named before bounds it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from statistics import median

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.board.rules.release import CLEARLY, standard_error

MOST_FINALISTS = 10
"""The most finalists that a view may have."""

LEADS = (1.0, 2.0, 3.0, 4.5)
"""Leads of a finalist, in u, for which `share_of_wins` is shown."""

INDEPENDENT = (
    "This takes queries as independent: where they come in clusters, such as paraphrases or "
    "conversations, the luck is larger."
)
"""What holds of the printed luck, and of `share_of_wins`."""

_TIE = 1e-9
_STEP = 1 / 32
_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalOutcome:
    """What the scores of a final say; finalists are numbered in the order of receipt.

    Attributes:
        means: of each finalist.
        best: the finalist with the highest mean, of equal ones the earliest.
        below: those that are clearly below the best.
        winner: the earliest that is not clearly below the best.
        luck: how far the highest mean lies above its worth on average, if all finalists are
            equally good; in units of the measure. `None` for one finalist, who has none.
    """

    means: tuple[float, ...]
    best: int
    below: tuple[int, ...]
    winner: int
    luck: float | None


def decide_final(scores: Sequence[ArrayLike]) -> FinalOutcome:
    """Decide a final from the scores by query.

    A finalist is clearly below the best if mean(d) > 2 sd(d)/sqrt(n), with d the best's scores less
    its own, query by query, and sd with n - 1. The earliest of the others wins: whoever copies a
    good run, or sends many that are about as good, comes later.

    The luck is E[max of F standard normal draws] * u/sqrt(2), with u the median over all pairs of
    finalists of sd(a - b)/sqrt(n). Reason: let F equally good finalists have scores that scatter
    by s around one common value, independently beside what they have in common. Two of them then
    differ by u = s sqrt(2), and the highest lies E[max] * s above the common value. In the game of
    `heldout redteam`, where every run is one of two systems query by query, a run scatters by half
    of the two systems' u, so that the luck is .5 * E[max] of that u (docs/explanation/redteam.md).

    Args:
        scores: of each finalist, in the order of receipt; each over the same queries in the same
            order, at least two, finite.

    Raises:
        ValueError: there is no finalist, or the scores are not of that kind.
    """
    rows = [np.asarray(row, np.float64) for row in scores]
    if not rows or any(row.ndim != 1 or row.shape != rows[0].shape for row in rows):
        raise ValueError("finalists have scores for the same queries, and there is at least one")
    if rows[0].size < 2 or not all(np.isfinite(row).all() for row in rows):  # noqa: PLR2004 - one query has no deviation
        raise ValueError("a final has two queries or more, and finite scores")
    means = tuple(math.fsum(row.tolist()) / row.size for row in rows)
    # Means that differ by rounding alone are equal: the earlier one is the best.
    best = next(i for i, mean in enumerate(means) if mean >= max(means) - _TIE)
    below = tuple(i for i, row in enumerate(rows) if _is_clearly_above(rows[best], row))
    winner = next(i for i in range(len(rows)) if i not in below)
    return FinalOutcome(means=means, best=best, below=below, winner=winner, luck=_find_luck(rows))


@cache
def expected_maximum(count: int) -> float:
    """The expected value of the highest of some independent standard normal draws.

    By the trapezoid rule, which is exact to rounding for such a function.

    Args:
        count: how many, at least 1.
    """
    if count < 1:
        raise ValueError(count)
    points = [i * _STEP for i in range(round(-_WIDTH / _STEP), round(_WIDTH / _STEP) + 1)]
    return _STEP * math.fsum(x * count * _density(x) * _share(x) ** (count - 1) for x in points)


def share_of_wins(finalists: int, lead: float) -> float:
    """Compute how often a finalist wins that is better than all others, which are equally good.

    In normal approximation: scores scatter independently by u/sqrt(2), so that two finalists
    differ by u, and the order of receipt is random. It wins where it is the best or not clearly
    below a later one, and all earlier ones are clearly below the best.

    Args:
        finalists: how many there are with it, at least 1.
        lead: its worth less that of the others, in u.
    """
    root = math.sqrt(2)
    total = 0.0
    for step in range(round(-_WIDTH / _STEP), round(_WIDTH / _STEP) + 1):
        best = step * _STEP  # the highest score, in u
        below, level = _share((best - CLEARLY) * root), _share(best * root)
        own = root * _density((best - lead) * root)
        near = _share((best - lead) * root) - _share((best - lead - CLEARLY) * root)
        other = root * _density(best * root) * near
        for later in range(finalists):
            ahead = own * level**later + later * other * level ** max(later - 1, 0)
            total += below ** (finalists - 1 - later) * ahead
    return _STEP * total / finalists


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _share(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _find_luck(rows: Sequence[NDArray[np.float64]]) -> float | None:
    if len(rows) == 1:
        return None
    error = median(standard_error(a - b) for a, b in combinations(rows, 2))
    return expected_maximum(len(rows)) * error / math.sqrt(2)


def _is_clearly_above(best: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    rise = best - other
    mean = math.fsum(rise.tolist()) / rise.size
    return mean > _TIE and mean > CLEARLY * standard_error(rise) * (1 + _TIE)
