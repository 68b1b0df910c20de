"""Whether the official score falls behind the dev score as time goes on.

Everybody has the dev labels, nobody the official ones, so a growing gap may be overfitting to dev.
But a constant factor between the two looks like drift while scores rise: queries in the official
mean that score nothing would give one, and so would a harder set. Ratio and difference are both
reported, with the trend of what is left of the difference once the ratio is taken out.

Sources: Lin et al. 2022, §4 and Figure 3. A trend is the median of the slopes between
all pairs of entries of different days (Theil 1950, Sen 1968), so that a few odd entries do not make
it; its interval resamples queries, since entries share them.
"""

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import compress
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses import analysis, entries
from heldout.analyses.views import ViewPair, pair_views
from heldout.answers import texts
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.charts.plot import Plot
from heldout.charts.scores import ChartEntry, gap_chart, scatter_chart
from heldout.ids import Digest
from heldout.options import Opt
from heldout.stats.resampling import percentile_interval

Verdict = Literal["no drift", "mask or difficulty", "not explained", "undefined"]
"""`no drift`: none is found, for neither the difference nor what the ratio leaves of it has a trend
that stands out. That is no evidence of none: the interval says how large it may be. `mask or
difficulty`: the difference has one, and the ratio explains it. `not explained`: it does not.
`undefined`: there are too few entries, or no intervals, as where means alone are known: entries
share their queries, so a trend of means is there on nearly every board without drift."""

Panel = Literal["time", "dev"]
"""`time`: official - dev over time. `dev`: official against dev."""

_YEAR = 365.25
_FEWEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPoint:
    """An entry with both scores.

    Attributes:
        entry: what it is.
        official, dev: its scores.
        difference: official - dev.
        ratio: official / dev.
    """

    entry: entries.BoardEntry
    official: float
    dev: float
    difference: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Change per year.

    Attributes:
        per_year: the median slope.
        low, high: its interval; `None` where only means are known, and where all draws give the
            same. A draw in which an entry has a dev score of 0 leaves that entry out of the ratio.
    """

    per_year: float
    low: float | None
    high: float | None

    @property
    def beyond_zero(self) -> bool | None:
        """Whether the interval leaves out 0; `None` without one."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Official against dev scores over time.

    Attributes:
        board, official, dev, measure: what was looked at; views by name.
        points: the entries with both scores in the order they came; no baselines, and none whose
            dev score is 0.
        ratio: median of official / dev; `None` where undefined.
        gap: median of official - dev.
        scatter: median distance of the differences from their median.
        scatter_left: median size of official - ratio x dev: what the ratio does not explain.
        difference: trend of official - dev; `None` where undefined.
        remainder: trend of official - ratio x dev.
        ratio_trend: trend of the ratio.
        verdict: see `Verdict`.
        why: the reason, in words.
        level, trials: of the intervals; no trials where only means are known.
        digests: of the official and the dev scores by query.
    """

    board: str
    official: str
    dev: str
    measure: str
    points: tuple[DriftPoint, ...]
    ratio: float | None
    gap: float | None
    scatter: float | None
    scatter_left: float | None
    difference: Trend | None
    remainder: Trend | None
    ratio_trend: Trend | None
    verdict: Verdict
    why: str
    level: float
    trials: int
    digests: tuple[Digest, ...]


def find_drift(
    given: entries.Dated,
    rng: Generator,
    *,
    trials: int = 1000,
    level: float = 0.95,
    executor: Executor | None = None,
) -> Drift:
    """Official against dev scores over time, with trends per year.

    With scores by query: `mask or difficulty` where the interval of the difference's trend leaves
    out 0 and that of the remainder's does not. Means alone have trends and no verdict.

    Args:
        given: on the view with held-out labels, and on dev, whose labels everybody has; baselines
            and entries whose dev score is 0 say nothing of drift.
        rng: where draws come from.
        trials: draws of queries, at least 1.
        level: of the intervals, in (0, 1).
        executor: where to compute; `None` for here.

    Raises:
        InputError: code `missing-scores`.
    """
    official, dev = given.views
    pair = _usable_entries(pair_views(given.board, official, dev))
    eval_means, dev_means = pair.first_means, pair.second_means
    points = _points(pair)
    years = _years(pair)
    defined = len(points) >= _FEWEST and len(set(years.tolist())) > 1
    draws = None
    if defined and pair.resampled:
        draws = pair.resample(rng, trials=trials, executor=executor)
    trends = _trends(pair, years, draws, level) if defined else None
    verdict, why = _judge(trends, level, resampled=draws is not None)
    difference, remainder, ratio_trend = trends or (None, None, None)
    ratio = float(np.median(eval_means / dev_means)) if points else None
    gaps = eval_means - dev_means
    tables = [view.table for view in (official, dev) if view.table is not None]
    return Drift(
        board=given.board.board,
        official=official.view,
        dev=dev.view,
        measure=official.measure,
        points=points,
        ratio=ratio,
        gap=_median(gaps),
        scatter=_median(np.abs(gaps - np.median(gaps))) if points else None,
        scatter_left=None if ratio is None else _median(np.abs(eval_means - ratio * dev_means)),
        difference=difference,
        remainder=remainder,
        ratio_trend=ratio_trend,
        verdict=verdict,
        why=why,
        level=level,
        trials=0 if draws is None else trials,
        digests=tuple(table.digest for table in tables),
    )


def _usable_entries(pair: ViewPair) -> ViewPair:
    """Without baselines, and without entries that have no ratio."""
    usable = [
        not entry.baseline and mean > 0
        for entry, mean in zip(pair.entries, pair.second_means, strict=True)
    ]
    return replace(
        pair,
        entries=tuple(compress(pair.entries, usable)),
        first_means=pair.first_means[usable],
        second_means=pair.second_means[usable],
    )


def _points(pair: ViewPair) -> tuple[DriftPoint, ...]:
    means = zip(pair.entries, pair.first_means.tolist(), pair.second_means.tolist(), strict=True)
    return tuple(
        DriftPoint(
            entry=entry,
            official=official,
            dev=dev,
            difference=official - dev,
            ratio=official / dev,
        )
        for entry, official, dev in means
    )


def _years(pair: ViewPair) -> NDArray[np.float64]:
    """Days since the first entry, in years."""
    days = [(entry.day - pair.entries[0].day).days for entry in pair.entries]
    return np.array(days, np.float64) / _YEAR


def _trends(
    pair: ViewPair,
    years: NDArray[np.float64],
    draws: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    level: float,
) -> tuple[Trend, Trend, Trend]:
    """Of the difference, of what the ratio leaves of it, and of the ratio."""
    now = _slopes(pair.first_means[np.newaxis], pair.second_means[np.newaxis], years)
    drawn = None if draws is None else _slopes(*draws, years)
    intervals = [
        (None, None) if drawn is None else percentile_interval(drawn[:, n], level=level)
        for n in range(now.shape[1])
    ]
    difference, remainder, ratio = (
        Trend(per_year=float(slope), low=low, high=high)
        for slope, (low, high) in zip(now[0], intervals, strict=True)
    )
    return difference, remainder, ratio


def _slopes(
    official: NDArray[np.float64], dev: NDArray[np.float64], years: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Trends of difference, remainder and ratio of each draw, shape (draws, 3).

    An entry whose dev score is 0 in a draw has no ratio there. Where too few have one the trend of
    the ratio is NaN, and where none has one that of the remainder too.
    """
    ratios = np.divide(official, dev, out=np.full(dev.shape, np.nan), where=dev > 0)
    typical = np.array([_median_known(row) for row in ratios])[:, np.newaxis]
    series = (official - dev, official - typical * dev, ratios)
    # What is left of an exact ratio is 0, and no rounding error with a trend of its own.
    return np.stack([median_slopes(values.round(12), years) for values in series], axis=1)


def median_slopes(values: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median slope of each row over time, between all pairs of different times.

    Args:
        values: shape (rows, times); NaN where undefined, and left out.
        times: at least two different ones.
    """
    first, second = np.triu_indices(len(times), k=1)
    apart = times[first] != times[second]
    first, second = first[apart], second[apart]
    spans = times[second] - times[first]
    return np.array([_median_known((row[second] - row[first]) / spans) for row in values])


def _median_known(row: NDArray[np.float64]) -> float:
    """The median of the numbers in a row that has NaN for what is undefined; NaN without any."""
    known = row[~np.isnan(row)]
    return float(np.median(known)) if len(known) else np.nan


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if len(values) else None


def _judge(
    trends: tuple[Trend, Trend, Trend] | None, level: float, *, resampled: bool
) -> tuple[Verdict, str]:
    if trends is None:
        return "undefined", f"a trend needs {_FEWEST} entries with both scores, on different days"
    if not resampled:
        return "undefined", (
            "means alone do not show how much of a trend is luck; scores by query do"
        )
    moves, stays = _stands_out(trends[0]), _stands_out(trends[1])
    if moves is None or stays is None:
        return "undefined", "a trend has no interval: the draws of the queries do not vary it"
    basis = f"by intervals of {level:.0%} over queries"
    if stays:
        return "not explained", f"what the ratio leaves of the difference has a trend, {basis}"
    if moves:
        return (
            "mask or difficulty",
            f"the difference has a trend and the ratio explains it, {basis}",
        )
    return "no drift", f"neither the difference nor what the ratio leaves has a trend, {basis}"


def _stands_out(trend: Trend) -> bool | None:
    """Return whether a trend is beyond luck; one that is exactly 0 in every draw is not."""
    return False if trend.beyond_zero is None and trend.per_year == 0 else trend.beyond_zero


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftOptions:
    """Options of `heldout analyse drift`."""

    plot: Annotated[
        Panel,
        Opt("Picture: the difference over time, or official against dev."),
    ] = "time"
    trials: Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)] = 1000


def _analyse(given: entries.Dated, options: DriftOptions, draws: analysis.Draws) -> Answer:
    result = find_drift(given, draws.rng(), trials=options.trials, executor=draws.executor)
    return Answer(
        answer=headline(result),
        summary=(*summary(result), *given.facts),
        tables=tables(result),
        document=to_document(result) | given.document,
        chart=(lambda: chart(result, options.plot)) if result.points else None,
        title=title(result, options.plot),
    )


ANALYSIS = analysis.Analysis(
    name="drift",
    help="""Do official scores fall behind dev scores, and does a constant factor explain it?

    \b
    Example:
      heldout analyse drift --csv msmarco-doc-leaderboard.csv --plot dev --chart drift.svg
    """,
    source="dates-dev",
    options=DriftOptions,
    analyse=_analyse,
    chapter="Drift from dev",
)


def headline(result: Drift) -> str:
    """The verdict; what is not found may be there."""
    untested = _means_alone(result) and result.difference and result.remainder and result.ratio
    return texts.write("drift.headline", result=result, untested=untested)


def _means_alone(result: Drift) -> bool:
    return not result.trials and not result.digests


_ARTEFACT = "0.911 to 0.936"
"""What the published differences of R1 to R13 can be of those in table 1 of Lin et al. 2021, which
are without the artefact: each of these factors fits all twelve, as they are rounded."""


def _say_verdict(result: Drift) -> str:
    words = {"no drift": "no drift found", "undefined": "no verdict"}
    return words.get(result.verdict, result.verdict)


def summary(result: Drift) -> tuple[tuple[str, str], ...]:
    """Return how large a trend may be, and the usual ratio; nothing where neither is known."""
    means = _means_alone(result)
    return texts.write_facts("drift.summary", result=result, means=means, artefact=_ARTEFACT)


def tables(result: Drift) -> tuple[Table, ...]:
    """One table: the difference, the ratio, and what the ratio leaves, with their trends."""
    names = f"{result.official} - {result.dev}"
    left = f"{result.official} - ratio × {result.dev}"
    rows: tuple[tuple[Cell, ...], ...] = (
        (names, result.gap, result.scatter, *_trend(result.difference)),
        (f"{result.official} / {result.dev}", result.ratio, None, *_trend(result.ratio_trend)),
        (left, None, result.scatter_left, *_trend(result.remainder)),
    )
    verdict = _say_verdict(result).capitalize()
    return (texts.write_table("drift.trends", rows, result=result, verdict=verdict),)


def title(result: Drift, plot: Panel) -> str:
    """Return what a picture shows."""
    if plot == "dev":
        return f"{result.board}: {result.official} against {result.dev} {result.measure}"
    return f"{result.board}: {result.official} less {result.dev} {result.measure} over time"


def chart(result: Drift, plot: Panel) -> Plot:
    """The picture of one of the two panels of Lin et al. 2022, Figure 3.

    Args:
        result: with at least one point.
        plot: which panel.
    """
    if plot == "dev":
        points = [
            ChartEntry(label=p.entry.name, day=p.entry.day, score=p.official, other=p.dev)
            for p in result.points
        ]
        head, foot = (f"{name} {result.measure}" for name in (result.official, result.dev))
        drawn = scatter_chart(points, ratio=result.ratio, head=head, foot=foot)
        if result.ratio is not None:
            drawn.key("dashed", f"{result.ratio:.3f} × {result.dev}")
        return drawn
    gaps = [
        ChartEntry(label=p.entry.name, day=p.entry.day, score=p.difference) for p in result.points
    ]
    return gap_chart(
        gaps,
        until=result.points[-1].entry.day,
        head=f"{result.official} − {result.dev} {result.measure}",
        equal=f"{result.official} = {result.dev}",
    )


def _trend(trend: Trend | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if trend is None else (trend.per_year, trend.low, trend.high)
