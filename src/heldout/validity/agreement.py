"""How far judges agree: Cohen's kappa of each two, Fleiss' kappa, Krippendorff's alpha of all.

Documents of a query are judged one after the other and are easy or hard together, so intervals
draw queries and not documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.stats.agreement import (
    Agreement,
    KappaWeights,
    Scale,
    cohen_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    krippendorff_interval,
)
from heldout.validity.ratings import Ratings, RatingsKind

__all__ = ["FEWEST", "JudgeAgreement", "JudgePair", "judge_agreement"]

FEWEST = 10
"""Queries that an interval needs: of fewer, percentiles hold far too rarely."""

Floats = NDArray[np.float64]
Interval = tuple[float, float]
_PAIR = 2
_MOST_GRADES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePair:
    """Two judges on the units that both judged.

    Attributes:
        first, second: their names.
        units: how many both judged, at least 1.
        queries: of how many queries.
        same: share of them with the same grade.
        kappa: Cohen's.
        interval: of kappa, by drawing queries; `None` where undefined, and with too few queries.
        overlap: units with a grade above 0 from both, as a share of those with one from either
            (Voorhees 2000); `None` where there is none, and for preferences.
        confusion: units by the category of the first (rows) and of the second.
    """

    first: str
    second: str
    units: int
    queries: int
    same: float
    kappa: Agreement
    interval: Interval | None
    overlap: float | None
    confusion: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """How far judges agree.

    Attributes:
        judges: names.
        judged: of how many units each has a verdict.
        kind: what was judged.
        categories: all grades that occur, ascending.
        units: how many were judged by anyone.
        queries: of how many queries.
        pairs: each two judges that share a unit, in the order of `judges`.
        fleiss: Fleiss' kappa on units that all judges judged; `None` where there is none.
        fleiss_units: how many those are.
        alpha: Krippendorff's, of every judgment.
        interval: of alpha, by drawing queries; `None` where undefined, and with too few queries.
        scale: of alpha.
        weights: of Cohen's kappa.
        relevant: grades from here on became 1 and lower ones 0; `None` for grades as they were.
        level: of the intervals, each by itself.
        trials: draws of each interval.
        digest: of the ratings.
    """

    judges: tuple[str, ...]
    judged: tuple[int, ...]
    kind: RatingsKind
    categories: tuple[float, ...]
    units: int
    queries: int
    pairs: tuple[JudgePair, ...]
    fleiss: Agreement | None
    fleiss_units: int
    alpha: Agreement
    interval: Interval | None
    scale: Scale
    weights: KappaWeights
    relevant: int | None
    level: float
    trials: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    categories: tuple[float, ...]
    weights: KappaWeights
    graded: bool
    level: float
    trials: int


def judge_agreement(
    ratings: Ratings,
    rng: Generator,
    *,
    scale: Scale = "nominal",
    weights: KappaWeights = "none",
    level: float = 0.95,
    trials: int = 1000,
) -> JudgeAgreement:
    """Compare judges, each two and all together.

    Args:
        ratings: what they said.
        rng: where draws of queries come from.
        scale: what grades mean to alpha.
        weights: what it costs Cohen's kappa to differ by several grades.
        level: of the intervals, in (0, 1).
        trials: draws of each interval, >= 1.

    Raises:
        InputError: codes `bad-rating`: a grade below 0 on a ratio scale; `too-many-grades`.
    """
    rules = _Rules(
        categories=_find_categories(ratings),
        weights=weights,
        graded=ratings.kind == "documents",
        level=level,
        trials=trials,
    )
    own = np.unique(np.array(ratings.queries, dtype=object), return_inverse=True)[1]
    found = [
        _compare(ratings, pair, own, rules, rng)
        for pair in combinations(range(len(ratings.judges)), 2)
    ]
    complete = ~np.isnan(ratings.verdicts).any(axis=0)
    return JudgeAgreement(
        judges=ratings.judges,
        judged=tuple((~np.isnan(ratings.verdicts)).sum(axis=1).tolist()),
        kind=ratings.kind,
        categories=rules.categories,
        units=len(ratings.queries),
        queries=int(own.max()) + 1,
        pairs=tuple(pair for pair in found if pair is not None),
        fleiss=_fleiss(ratings.verdicts[:, complete], rules.categories),
        fleiss_units=int(complete.sum()),
        alpha=krippendorff_alpha(ratings.ratings, scale=scale),
        interval=_alpha_interval(ratings, own, rng, scale=scale, level=level, trials=trials),
        scale=scale,
        weights=weights,
        relevant=ratings.relevant,
        level=level,
        trials=trials,
        digest=ratings.digest,
    )


def _find_categories(ratings: Ratings) -> tuple[float, ...]:
    """All grades that occur: few, since every coefficient compares each with each."""
    found = np.unique(ratings.ratings[~np.isnan(ratings.ratings)]).tolist()
    if len(found) > _MOST_GRADES:
        raise InputError(
            Problem(
                code="too-many-grades",
                path="ratings",
                found=f"{len(found):,} different grades",
                expected=f"at most {_MOST_GRADES}",
                hint="is the last column the grade?",
            )
        )
    return tuple(found)


def _alpha_interval(
    ratings: Ratings,
    own: NDArray[np.int64],
    rng: Generator,
    *,
    scale: Scale,
    level: float,
    trials: int,
) -> Interval | None:
    """Of alpha; the queries that count have a unit with two judgments."""
    twice = (~np.isnan(ratings.ratings)).sum(axis=0) > 1
    if len(np.unique(own[twice])) < FEWEST:
        return None
    return krippendorff_interval(
        ratings.ratings, rng, scale=scale, groups=own, level=level, trials=trials
    )


def _compare(
    ratings: Ratings,
    pair: tuple[int, int],
    own: NDArray[np.int64],
    rules: _Rules,
    rng: Generator,
) -> JudgePair | None:
    """Two judges; `None` where no unit has a verdict of both."""
    first, second = pair
    both = ~np.isnan(ratings.verdicts[[first, second]]).any(axis=0)
    if not both.any():
        return None
    a, b = ratings.verdicts[first, both], ratings.verdicts[second, both]
    a_list, b_list, queries = a.tolist(), b.tolist(), own[both]
    return JudgePair(
        first=ratings.judges[first],
        second=ratings.judges[second],
        units=len(a),
        queries=len(np.unique(queries)),
        same=float(np.mean(a == b)),
        kappa=cohen_kappa(a_list, b_list, weights=rules.weights, categories=rules.categories),
        interval=_kappa_interval(a_list, b_list, queries, rules, rng),
        overlap=_overlap(a > 0, b > 0) if rules.graded else None,
        confusion=_confuse(a, b, rules.categories),
    )


def _kappa_interval(
    first: list[float],
    second: list[float],
    queries: NDArray[np.int64],
    rules: _Rules,
    rng: Generator,
) -> Interval | None:
    if len(np.unique(queries)) < FEWEST:
        return None
    return cohen_interval(
        first,
        second,
        rng,
        weights=rules.weights,
        categories=rules.categories,
        groups=queries,
        level=rules.level,
        trials=rules.trials,
    )


def _overlap(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float | None:
    either = int((a | b).sum())
    return int((a & b).sum()) / either if either else None


def _confuse(a: Floats, b: Floats, categories: Sequence[float]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(((a == x) & (b == y)).sum()) for y in categories) for x in categories)


def _fleiss(verdicts: Floats, categories: Sequence[float]) -> Agreement | None:
    """Of the units that all judged; `None` without one, and with a single judge."""
    if not verdicts.shape[1] or len(verdicts) < _PAIR:
        return None
    return fleiss_kappa(np.stack([(verdicts == one).sum(axis=0) for one in categories], axis=1))
