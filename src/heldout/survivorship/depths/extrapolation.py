"""What a deeper annotation of the same queries might show: a model of two lines, and its error.

Annotators go down a list until they find an answer, and some queries are left when the list ends.
That is survival analysis in discrete time: the hazard of a place is the share of the queries
without an answer so far that have one there. Two lines in the logarithm of the place are fitted:

- the logit of the hazard: how many queries each further place would add;
- what a place adds to the sum of a system's scores, per query that it adds.

Both are carried on beyond the last place. An interval holds three things: the lines' error, from
queries drawn again with all that happened to them, so that the depths of one query stay together;
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

from heldout.survivorship.depths.scores import DepthScores

_BLOCK = 50
"""Draws at once: of 60,000 queries that takes 25 MB."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Added:
    """What each place adds, as observed and in draws of queries.

    Attributes:
        annotated: queries, discarded ones too.
        new: queries, float64, shape (draws, places); the first row is as observed.
        sums: to the sum of scores of each system, shape (draws, places) each; the same.
        spread: standard deviation of each system's scores; 0 where all are the same.
        largest: score there is; `None` where there is no end.
    """

    annotated: int
    new: Floats
    sums: tuple[Floats, ...]
    spread: tuple[float, ...]
    largest: float | None

    @property
    def ranks(self) -> int:
        """How many there are."""
        return len(self.new[0])

    def until(self, ranks: int) -> "Added":
        """The first places alone."""
        return replace(
            self, new=self.new[:, :ranks], sums=tuple(one[:, :ranks] for one in self.sums)
        )


class Streams(NamedTuple):
    """Where draws come from: one stream for the queries, one for each system by its name.

    What is said of a system depends on no other one.
    """

    queries: Generator
    systems: tuple[Generator, ...]


def add_up(scores: DepthScores, streams: Streams, *, discarded: int, trials: int) -> Added:
    """Sums over the queries, and over queries drawn with replacement, discarded ones too.

    First is drawn how many queries have their first label at each place, then for each system
    what these score.

    Args:
        scores: at each depth from 1 on.
        streams: of the draws.
        discarded: queries that were annotated and have no label.
        trials: how many draws.
    """
    annotated, ranks = len(scores.queries) + discarded, len(scores.depths)
    first = scores.known.argmax(axis=1)
    counts = np.bincount(first, minlength=ranks)
    chances = np.append(counts, discarded) / annotated
    drawn = streams.queries.multinomial(annotated, chances, size=trials)[:, :-1]
    new = np.concatenate([counts[np.newaxis], drawn])
    # Each in one order in memory: sums of floats would else depend on the other systems
    systems = [np.ascontiguousarray(values) for values in scores.values]
    return Added(
        annotated=annotated,
        new=new.astype(np.float64),
        sums=tuple(
            _draw_sums(values, first, new, rng)
            for values, rng in zip(systems, streams.systems, strict=True)
        ),
        spread=tuple(_spread(values[:, -1]) for values in systems),
        largest=scores.measure.largest,
    )


def _draw_sums(
    values: Floats, first: NDArray[np.int64], new: NDArray[np.int64], rng: Generator
) -> Floats:
    """Return what each place adds to one system's sum of scores, shape (draws, places).

    Queries to which the same happened are drawn together: so many that their number has the
    same distribution.

    Args:
        values: of the system, shape (queries, places).
        first: place of each query's first label, counted from 0.
        new: queries by that place, as observed and in draws.
        rng: of this system.
    """
    gains = np.diff(values, axis=1, prepend=0.0)
    sums = np.zeros(new.shape)
    sums[0] = gains.sum(axis=0)
    for rank in np.unique(first).tolist():
        kinds, counts = np.unique(gains[first == rank], axis=0, return_counts=True)
        for start in range(1, len(new), _BLOCK):
            block = slice(start, start + _BLOCK)
            drawn = rng.multinomial(new[block, rank], counts / counts.sum())
            sums[block] += drawn @ kinds
    return sums


def _spread(scores: Floats) -> float:
    """Their standard deviation: 0 for the same number many times, which rounding would hide."""
    return float(scores.std()) if np.ptp(scores) > 0 else 0.0


FARTHEST = 2
"""A depth is predicted up to this many times the last one that was seen."""

_LEAST_RANKS = 4
_LEAST_QUERIES = 10
_NO_LINE = "some draws of these queries have labels at one place alone: a line needs two"


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

    predicted: tuple[Extrapolation, ...] = ()
    backtest: Backtest | None = None
    why: str = ""
    backtest_why: str = ""


class _FittedLine(NamedTuple):
    """A line in the logarithm of the place for each draw, shape (draws,), with scatter."""

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
        rng: where draws come from. Each system has a stream of its own, by its name: what is said
            of one does not depend on the others.
        discarded: queries that were annotated and have no label; `None` where nobody knows.
        to: depths beyond the last, at least one, none beyond `FARTHEST` times the last: the work
            grows with the deepest, and so does what nobody has seen.
        trials: draws of queries.
        level: of the intervals.
    """
    last = len(scores.depths) - scores.open_ended
    why = _why(scores, last, discarded)
    if discarded is None or why:
        return Outlook(why=why, backtest_why=why)
    base = int(rng.integers(2**63))
    streams = Streams(
        queries=np.random.default_rng([base]),
        systems=tuple(np.random.default_rng([base, *name.encode()]) for name in scores.systems),
    )
    added = add_up(scores, streams, discarded=discarded, trials=trials)
    if why := _why_no_line(added, last):
        return Outlook(why=why, backtest_why=why)
    predicted = _predict(added, streams, fitted=last, to=to, level=level)
    half = (last + 1) // 2
    why = _why(scores, half, added.annotated) or _why_no_line(added, half)
    return Outlook(
        predicted=predicted,
        backtest=None
        if why
        else _look_back(scores, added, streams, half=half, last=last, level=level),
        backtest_why=why,
    )


def _look_back(
    scores: DepthScores, added: Added, streams: Streams, *, half: int, last: int, level: float
) -> Backtest:
    """Fit the first half of the places, and say what is at the last: it is known."""
    (predicted,) = _predict(added.until(half), streams, fitted=half, to=[last], level=level)
    means = [float(scores.scores(one, last - 1).mean()) for one in range(len(scores.systems))]
    return Backtest(
        fitted=half, predicted=predicted, queries=scores.counts[last - 1], scores=tuple(means)
    )


def _why(scores: DepthScores, fitted: int, discarded: int | None) -> str:
    if discarded is None:
        return "the source leaves out discarded queries: nobody knows how many are still to come"
    if not discarded:
        return "every query has a label: none is left that a deeper annotation could add"
    if fitted < _LEAST_RANKS:
        return f"a line through {fitted} places says nothing: at least {_LEAST_RANKS} are needed"
    if scores.counts[fitted - 1] < _LEAST_QUERIES:
        return f"fewer than {_LEAST_QUERIES} queries have a label"
    adding = np.count_nonzero(np.diff((0, *scores.counts[:fitted])))
    if adding < _LEAST_RANKS:
        return (
            f"of {fitted} places {adding} add queries: at least {_LEAST_RANKS} are needed for a "
            "line of what a place adds"
        )
    return ""


def _why_no_line(added: Added, fitted: int) -> str:
    """Return why a draw has no line: one place alone adds queries there.

    Such a draw is not left out: the others alone would make the intervals too narrow.
    """
    ranks = np.count_nonzero(added.new[:, :fitted], axis=1)
    return "" if (ranks > 1).all() else _NO_LINE


def _predict(
    added: Added, streams: Streams, *, fitted: int, to: Sequence[int], level: float
) -> tuple[Extrapolation, ...]:
    ranks = np.arange(added.ranks + 1, max(to) + 1)
    # Every row goes on from what was observed: these queries, annotated deeper
    queries = _queries_ahead(added, fitted, ranks, streams.queries)
    new = np.diff(queries, axis=1, prepend=added.new[0].sum())
    means = [
        _sums_ahead(added, system, fitted, new, rng) / queries
        for system, rng in enumerate(streams.systems)
    ]
    return tuple(
        Extrapolation(
            depth=depth,
            queries=_interval(queries[:, at], level),
            scores=tuple(
                _interval(np.clip(one[:, at], 0.0, added.largest), level) if spread else None
                for one, spread in zip(means, added.spread, strict=True)
            ),
        )
        for depth, at in zip(to, np.searchsorted(ranks, to).tolist(), strict=True)
    )


def _queries_ahead(added: Added, fitted: int, ranks: NDArray[np.int64], rng: Generator) -> Floats:
    """Return how many queries have a label at each further place, shape (draws, further places).

    The lines of the rows but the first are moved by what the places scatter.
    """
    seen = added.new[:, :fitted]
    left = np.maximum(added.annotated - np.cumsum(seen, axis=1) + seen, seen)
    some, others = seen + 0.5, left - seen + 0.5
    line = _regress(np.log(some / others), 1 / (1 / some + 1 / others), rng)
    queries = np.full(len(seen), added.new[0].sum())
    reached = np.zeros((len(seen), len(ranks)))
    for at, rank in enumerate(ranks.tolist()):
        chance = expit(line.at_one + line.slope * np.log(rank))
        remaining = added.annotated - queries
        new = rng.binomial(np.round(remaining).astype(np.int64), chance).astype(np.float64)
        new[0] = remaining[0] * chance[0]
        queries = reached[:, at] = queries + new
    return reached


def _sums_ahead(added: Added, system: int, fitted: int, new: Floats, rng: Generator) -> Floats:
    """A system's sum of scores at each further place, shape (draws, further places)."""
    seen, sums = added.new[:, :fitted], added.sums[system]
    spread = added.spread[system]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(seen > 0, sums[:, :fitted] / seen, 0.0)
    line = _regress(each, seen / spread**2 if spread else seen, rng)
    noise = rng.standard_normal(new.shape) * spread * np.sqrt(new)
    noise[0] = 0.0
    ranks = np.arange(added.ranks + 1, added.ranks + 1 + new.shape[1])
    gains = line.at_one[:, np.newaxis] + np.outer(line.slope, np.log(ranks))
    ahead: Floats = sums[0].sum() + np.cumsum(gains * new + noise, axis=1)
    return ahead


def _regress(y: Floats, weights: Floats, rng: Generator) -> _FittedLine:
    """Weighted least squares on the logarithm of the place.

    Args:
        y: shape (draws, places).
        weights: inverse variances of `y`, same shape.
        rng: for the scatter that weights do not explain.
    """
    x = np.log(np.arange(1, y.shape[-1] + 1))
    total = weights.sum(axis=-1)
    centre = (weights * x).sum(axis=-1) / total
    level = (weights * y).sum(axis=-1) / total
    across = x - centre[:, np.newaxis]
    squares = (weights * across**2).sum(axis=-1)
    slope = (weights * across * (y - level[:, np.newaxis])).sum(axis=-1) / squares
    rest = y[0] - level[0] - slope[0] * across[0]
    freedom = y.shape[-1] - 2
    excess = np.maximum((weights[0] * rest**2).sum(axis=-1) / freedom - 1, 0.0)
    # Student's t, since the scatter is itself known from few places
    heavy = np.sqrt(excess * freedom / rng.chisquare(freedom, size=slope.shape))
    heavy[0] = 0.0
    level = level + heavy * rng.standard_normal(slope.shape) / np.sqrt(total)
    slope = slope + heavy * rng.standard_normal(slope.shape) / np.sqrt(squares)
    return _FittedLine(at_one=level - slope * centre, slope=slope)


def _interval(values: Floats, level: float) -> Predicted:
    """Of draws; it holds the value, which is a mean where the draws are whole queries."""
    value = float(values[0])
    low, high = np.quantile(values[1:], ((1 - level) / 2, (1 + level) / 2)).tolist()
    return Predicted(value=value, low=min(low, value), high=max(high, value))
