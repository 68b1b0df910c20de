"""What scores by query have to be, whoever says that they are a run's: checked before used."""

import math
from collections.abc import Iterable, Sequence

from heldout.board.rules.spec import View
from heldout.measures.spec import Measure, parse_measure
from heldout.pipeline.scoring.score import ViewScore

__all__ = ["are_equal_scores", "is_score_of"]

_CLOSE = 1e-9
_HIGHEST_GRADE = 1000


def is_score_of(view: View, score: ViewScore | None) -> bool:
    """Whether it can be a score of that view.

    It is of its measure, finite and within its range, and mean, n and seeds are those of its
    queries.
    """
    if score is None or score.measure != view.measure:
        return False
    values = [value for value in score.per_query.values() if value is not None]
    if not values or not all(map(math.isfinite, values)) or score.n < len(values):
        return False
    mean = math.fsum(values) / score.n
    sound = math.isclose(mean, score.mean, abs_tol=_CLOSE) and _are_seeds_of(score)
    return sound and _is_within(view, score, values)


def _are_seeds_of(score: ViewScore) -> bool:
    """Whether the seeds' own means have this mean; one run has none."""
    seeds = score.seeds
    if not seeds:
        return True
    finite = len(seeds) > 1 and all(map(math.isfinite, seeds))
    return finite and math.isclose(math.fsum(seeds) / len(seeds), score.mean, abs_tol=_CLOSE)


def _is_within(view: View, score: ViewScore, values: Iterable[float]) -> bool:
    """Whether every score is one that the measure can give.

    A gap between groups weighs its queries, so there only the gap itself has a range.
    """
    low, high = _range(parse_measure(view.measure))
    if view.summary == "gap":
        return -_CLOSE <= score.mean <= high - low + _CLOSE
    return all(low - _CLOSE <= value <= high + _CLOSE for value in (*values, *score.seeds))


def _range(measure: Measure) -> tuple[float, float]:
    """The lowest and the highest score of a query."""
    if measure.kind.better == "lower":  # a position, counted from 1
        return 1.0, math.inf
    graded = measure.name == "RBP" and measure.params.rel is None and measure.params.max_rel is None
    return 0.0, float(_HIGHEST_GRADE) if graded else 1.0


def are_equal_scores(one: ViewScore, other: ViewScore) -> bool:
    """Whether two are the same but for rounding: query by query, undefined where the other is."""
    return (
        one.n == other.n
        and one.per_query.keys() == other.per_query.keys()
        and _are_close([one.mean, *one.seeds], [other.mean, *other.seeds])
        and all(_is_equal(v, other.per_query[query]) for query, v in one.per_query.items())
    )


def _is_equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, abs_tol=_CLOSE)


def _are_close(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(map(_is_equal, one, other))
