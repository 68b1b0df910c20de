"""Do two views, or two collections, rank the same systems alike?

Kendall's tau and AP correlation between every two columns of a table of means. A low tau between
views of few queries may be noise and no difference between them: `validity.views` shows how far
ranks move within each.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from heldout.ids import Digest
from heldout.scores import ScoreTable
from heldout.stats.rank_correlation import kendall, tau_ap_b
from heldout.stats.resampling import DIGITS

__all__ = ["Transfer", "ViewAgreement", "compare_rankings"]

_LEAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAgreement:
    """How alike two views rank the systems that have a score on both.

    Attributes:
        first, second: the views.
        systems: how many have both scores.
        tau: Kendall's tau-b over all of them; `None` with fewer than two, or where a view ties all.
        tau_ap: AP correlation, tau_AP,b: the top counts most; `None` likewise.
        tau_first_top: tau-b over the top systems of the first view; `None` likewise.
        tau_second_top: over those of the second view.
        shared_top: how many systems are among the top ones of both.
        first_top, second_top: how many the tops have: more than asked for where the last ones
            tie, fewer where there are no more.
        why: why `tau` is undefined, else `None`.
    """

    first: str
    second: str
    systems: int
    tau: float | None
    tau_ap: float | None
    tau_first_top: float | None
    tau_second_top: float | None
    shared_top: int
    first_top: int
    second_top: int
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Agreement between all views.

    Attributes:
        views: names.
        scored: how many systems each has a score of.
        systems: how many have a score on any.
        top: how many systems the tops are asked to have.
        pairs: every two views, in the order of `views`.
        digest: of the table of means.
    """

    views: tuple[str, ...]
    scored: tuple[int, ...]
    systems: int
    top: int
    pairs: tuple[ViewAgreement, ...]
    digest: Digest


def compare_rankings(means: ScoreTable, *, top: int = 10) -> Transfer:
    """Agreement between every two columns of a table of means.

    Args:
        means: of systems (rows) by views (its queries), higher is better; one that is missing
            leaves its system out of the pairs with that view. Means are rounded to 12 digits, so
            that ties are ties.
        top: how many of the best systems of a view the tau of the top is taken over, >= 2.

    Source: msmarco-benchmarking, section 3.2, for the views; the coefficients are a choice of ours.
    """
    values = np.round(means.values, DIGITS)
    pairs = tuple(
        _compare((means.queries[i], means.queries[j]), values[both][:, [i, j]], top)
        for i, j in combinations(range(len(means.queries)), 2)
        for both in (means.known[:, i] & means.known[:, j],)
    )
    return Transfer(
        views=means.queries,
        scored=tuple(means.known.sum(axis=0).tolist()),
        systems=len(means.systems),
        top=top,
        pairs=pairs,
        digest=means.digest,
    )


def _compare(names: tuple[str, str], scores: NDArray[np.float64], top: int) -> ViewAgreement:
    first, second = scores[:, 0], scores[:, 1]
    best_first, best_second = _find_top(first, top), _find_top(second, top)
    return ViewAgreement(
        first=names[0],
        second=names[1],
        systems=len(scores),
        tau=kendall(first, second),
        tau_ap=tau_ap_b(first, second),
        tau_first_top=kendall(first[best_first], second[best_first]),
        tau_second_top=kendall(first[best_second], second[best_second]),
        shared_top=int(np.sum(best_first & best_second)),
        first_top=int(best_first.sum()),
        second_top=int(best_second.sum()),
        why=_say_why(names, scores),
    )


def _find_top(scores: NDArray[np.float64], top: int) -> NDArray[np.bool_]:
    """The best systems and all that tie with the last of them."""
    if len(scores) <= top:
        return np.ones(len(scores), np.bool_)
    return np.asarray(scores >= np.sort(scores)[-top], np.bool_)


def _say_why(names: tuple[str, str], scores: NDArray[np.float64]) -> str | None:
    if len(scores) < _LEAST:
        return "fewer than two systems have both scores"
    tied = [name for name, view in zip(names, scores.T, strict=True) if not np.ptp(view)]
    return f"all systems have the same score on {' and '.join(tied)}" if tied else None
