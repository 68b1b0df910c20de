"""What a deeper annotation of the same queries might show: a model of two lines, and its error.

Annotators go down a list until they find an answer, and some queries are left when the list ends.
That is survival analysis in discrete time: the hazard of a place is the share of the queries
without an answer so far that have one there. Two lines in the logarithm of the place are fitted:

- the logit of the hazard: how many queries each further place would add;
- what a place adds to the sum of a system's scores, per query that it adds.

Both are carried on beyond the last place. An interval holds three things: the lines' error, from
queries drawn anew with all that happened to them, so that the depths of one query stay together;
the error made where the places scatter about a line more than draws of queries explain (Birge's
ratio); and the chance of the queries to come. It does not hold the error of the model itself:
nothing seen says that the lines stay lines. `Backtest` shows how far they did within what was seen.

Sources: Singer and Willett 1993, "It's About Time: Using Discrete-Time Survival Analysis to Study
Duration and the Timing of Events"; Cox 1970, "Analysis of Binary Data" (empirical logits).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from heldout.survivorship.depths.depth_scores import DepthScores

__all__ = ["FARTHEST", "Backtest", "Extrapolation", "Outlook", "Predicted", "extrapolate"]

FARTHEST = 10
"""A depth is predicted up to this many times the last one that was seen."""

_LEAST_PLACES = 4
_LEAST_QUERIES = 10
_BLOCK = 50
"""Draws at once: of 60,000 queries that takes 50 MB."""

_NO_LINE = "some draws of these queries have labels at one place alone: a line needs two"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """A number that was not observed.

    Attributes:
        value: by the fitted lines.
        low, high: ends of its interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """Queries and scores at a depth beyond the last.

    Attributes:
        depth: how deep.
        queries: how many would have a label.
        scores: of each system, in the order of `DepthScores.systems`; `None` for one that has the
            same score for every query: nothing is known of how its scores vary.
    """

    depth: int
    queries: Predicted
    scores: tuple[Predicted | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The same model where the answer is known.

    Attributes:
        fitted: places that the lines were fitted to, from the first.
        predicted: at a deeper place that was observed.
        queries: as observed there.
        scores: as observed there.
    """

    fitted: int
    predicted: Extrapolation
    queries: int
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What deeper annotation might show.

    Attributes:
        predicted: one for each depth that was asked for; none where `why` is not "".
        backtest: how the same model does within what was seen; `None` with too few places.
        why: the reason why nothing is predicted, else "".
        backtest_why: the reason why there is no backtest, else "".
    """

    predicted: tuple[Extrapolation, ...]
    backtest: Backtest | None
    why: str
    backtest_why: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Added:
    """What each place adds, as observed and in draws of queries.

    Attributes:
        annotated: queries, discarded ones too.
        new: queries, float64, shape (draws, places); the first row is as observed.
        sums: to the sums of scores, shape (draws, systems, places); the same.
        spread: standard deviation of the scores of each system; 0 where all are the same.
        largest: score there is; `None` where there is no end.
    """

    annotated: int
    new: Floats
    sums: Floats
    spread: Floats
    largest: float | None

    @property
    def places(self) -> int:
        """How many there are."""
        return len(self.new[0])

    def until(self, places: int) -> "_Added":
        """The first places alone."""
        return replace(self, new=self.new[:, :places], sums=self.sums[:, :, :places])


class _Line(NamedTuple):
    """A line in the logarithm of the place for each draw, shape (draws, …), with scatter."""

    at_one: Floats
    slope: Floats


def extrapolate(
    scores: DepthScores,
    rng: Generator,
    *,
    discarded: int | None,
    to: Sequence[int],
    trials: int = 1000,
    level: float = 0.95,
) -> Outlook:
    """Queries and scores that a deeper annotation of the same queries might show.

    Args:
        scores: at each depth from 1 on. An open-ended last depth is taken for what it says, and
            left out of the fit.
        rng: where draws come from.
        discarded: queries that were annotated and have no label; `None` where nobody knows.
        to: depths beyond the last, at least one, none beyond `FARTHEST` times the last: the work
            grows with the deepest, and so does what nobody has seen.
        trials: draws of queries.
        level: of the intervals.
    """
    last = len(scores.depths) - scores.open_ended
    why = _why(scores, last, discarded)
    if discarded is None or why:
        return Outlook(predicted=(), backtest=None, why=why, backtest_why=why)
    added = _add_up(scores, rng, discarded=discarded, trials=trials)
    if why := _why_no_line(added, last):
        return Outlook(predicted=(), backtest=None, why=why, backtest_why=why)
    predicted = _predict(added, rng, fitted=last, to=to, level=level)
    half = (last + 1) // 2
    why = _why(scores, half, added.annotated) or _why_no_line(added, half)
    return Outlook(
        predicted=predicted,
        backtest=None if why else _look_back(scores, added, rng, half=half, last=last, level=level),
        why="",
        backtest_why=why,
    )


def _look_back(
    scores: DepthScores, added: _Added, rng: Generator, *, half: int, last: int, level: float
) -> Backtest:
    """Fit the first half of the places, and say what is at the last: it is known."""
    (predicted,) = _predict(added.until(half), rng, fitted=half, to=[last], level=level)
    means = [float(scores.scores(one, last - 1).mean()) for one in range(len(scores.systems))]
    return Backtest(
        fitted=half, predicted=predicted, queries=scores.counts[last - 1], scores=tuple(means)
    )


def _why(scores: DepthScores, fitted: int, discarded: int | None) -> str:
    if discarded is None:
        return "the source leaves out discarded queries: nobody knows how many are still to come"
    if not discarded:
        return "every query has a label: none is left that a deeper annotation could add"
    if fitted < _LEAST_PLACES:
        return f"a line through {fitted} places says nothing: at least {_LEAST_PLACES} are needed"
    if scores.counts[fitted - 1] < _LEAST_QUERIES:
        return f"fewer than {_LEAST_QUERIES} queries have a label"
    adding = np.count_nonzero(np.diff((0, *scores.counts[:fitted])))
    if adding < _LEAST_PLACES:
        return (
            f"of {fitted} places {adding} add queries: at least {_LEAST_PLACES} are needed for a "
            "line of what a place adds"
        )
    return ""


def _why_no_line(added: _Added, fitted: int) -> str:
    """Why a draw has no line: one place alone adds queries there.

    Such a draw is not left out: the others alone would make the intervals too narrow.
    """
    places = np.count_nonzero(added.new[:, :fitted], axis=1)
    return "" if (places > 1).all() else _NO_LINE


def _add_up(scores: DepthScores, rng: Generator, *, discarded: int, trials: int) -> _Added:
    """Sums over the queries, and over queries drawn with replacement, discarded ones too.

    Queries to which the same happened are drawn together: so many that their number has the
    same distribution.
    """
    annotated, places = len(scores.queries) + discarded, len(scores.depths)
    new = np.diff(scores.known.astype(np.float64), axis=1, prepend=0.0)
    gains = np.diff(scores.values, axis=2, prepend=0.0).transpose(1, 0, 2)
    rows = np.concatenate([new, gains.reshape(len(new), -1)], axis=1)
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    chances = np.append(counts, discarded) / annotated
    drawn = [
        rng.multinomial(annotated, chances, size=min(_BLOCK, trials - start))[:, :-1] @ kinds
        for start in range(0, trials, _BLOCK)
    ]
    sums = np.concatenate([rows.sum(axis=0)[np.newaxis], *drawn])
    last = scores.values[:, :, -1]
    return _Added(
        annotated=annotated,
        new=sums[:, :places],
        sums=sums[:, places:].reshape(len(sums), len(scores.systems), places),
        spread=np.where(np.ptp(last, axis=1) > 0, last.std(axis=1), 0.0),
        largest=scores.measure.largest,
    )


def _predict(
    added: _Added, rng: Generator, *, fitted: int, to: Sequence[int], level: float
) -> tuple[Extrapolation, ...]:
    hazard, score = _fit(added.until(fitted), rng)
    draws = len(added.new)
    # Every row goes on from what was observed: these queries, annotated deeper
    queries = np.full(draws, added.new[0].sum())
    sums = np.tile(added.sums[0].sum(axis=1), (draws, 1))
    found = {}
    for place in range(added.places + 1, max(to) + 1):
        chance = expit(hazard.at_one + hazard.slope * np.log(place))
        left = added.annotated - queries
        new = rng.binomial(np.round(left).astype(np.int64), chance).astype(np.float64)
        new[0] = left[0] * chance[0]
        noise = rng.standard_normal(sums.shape) * added.spread * np.sqrt(new)[:, np.newaxis]
        noise[0] = 0.0
        sums += (score.at_one + score.slope * np.log(place)) * new[:, np.newaxis] + noise
        queries = queries + new
        if place in to:
            means = np.clip(sums / queries[:, np.newaxis], 0.0, added.largest)
            found[place] = Extrapolation(
                depth=place,
                queries=_interval(queries, level),
                scores=tuple(
                    _interval(column, level) if spread else None
                    for column, spread in zip(means.T, added.spread.tolist(), strict=True)
                ),
            )
    return tuple(found[depth] for depth in to)


def _fit(added: _Added, rng: Generator) -> tuple[_Line, _Line]:
    """Both lines in each row; the rows but the first are moved by what the places scatter."""
    before = np.cumsum(added.new, axis=1) - added.new
    left = np.maximum(added.annotated - before, added.new)
    some, others = added.new + 0.5, left - added.new + 0.5
    hazard = _regress(np.log(some / others), 1 / (1 / some + 1 / others), rng)
    new = added.new[:, np.newaxis, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(new > 0, added.sums / new, 0.0)
        weights = np.where(added.spread > 0, 1 / added.spread**2, 1.0)[:, np.newaxis] * new
    return hazard, _regress(each, weights, rng)


def _regress(y: Floats, weights: Floats, rng: Generator) -> _Line:
    """Weighted least squares on the logarithm of the place, along the last axis.

    Args:
        y: shape (draws, …, places).
        weights: inverse variances of `y`, same shape.
        rng: for the scatter that weights do not explain.
    """
    x = np.log(np.arange(1, y.shape[-1] + 1))
    total = weights.sum(axis=-1)
    centre = (weights * x).sum(axis=-1) / total
    level = (weights * y).sum(axis=-1) / total
    across = x - centre[..., np.newaxis]
    squares = (weights * across**2).sum(axis=-1)
    slope = (weights * across * (y - level[..., np.newaxis])).sum(axis=-1) / squares
    rest = y[0] - level[0, ..., np.newaxis] - slope[0, ..., np.newaxis] * across[0]
    freedom = y.shape[-1] - 2
    excess = np.maximum((weights[0] * rest**2).sum(axis=-1) / freedom - 1, 0.0)
    # Student's t, since the scatter is itself known from few places
    heavy = np.sqrt(excess * freedom / rng.chisquare(freedom, size=slope.shape))
    heavy[0] = 0.0
    level = level + heavy * rng.standard_normal(slope.shape) / np.sqrt(total)
    slope = slope + heavy * rng.standard_normal(slope.shape) / np.sqrt(squares)
    return _Line(at_one=level - slope * centre, slope=slope)


def _interval(values: Floats, level: float) -> Predicted:
    """Of draws; it holds the value, which is a mean where the draws are whole queries."""
    value = float(values[0])
    low, high = np.quantile(values[1:], ((1 - level) / 2, (1 + level) / 2)).tolist()
    return Predicted(value=value, low=min(low, value), high=max(high, value))
