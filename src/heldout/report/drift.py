"""Drift between official and dev scores as tables, pictures and JSON."""

from typing import Any, Literal

from heldout.analyses.drift import Drift, Trend
from heldout.answers.table import Cell, Column, Table
from heldout.charts.layers import Canvas
from heldout.charts.plots import Names, Point, progress_spec, scatter_spec
from heldout.errors import plural

__all__ = ["Plot", "facts", "say_verdict", "spec", "tables", "title", "value"]

Plot = Literal["time", "dev"]
"""`time`: official - dev over time. `dev`: official against dev."""

_OVER_TIME = Canvas(width=930, height=340, left=58)
_AGAINST = Canvas(width=520, height=420, left=52)


def say_verdict(result: Drift) -> str:
    """The verdict in words: what is not found may be there."""
    words = {"no drift": "no drift found", "undefined": "no verdict"}
    return words.get(result.verdict, result.verdict)


def facts(result: Drift) -> tuple[tuple[str, str], ...]:
    """The answer in a line: the verdict, and how large a trend may be."""
    told = [say_verdict(result)]
    if result.verdict == "undefined":
        told.append(result.why)
    trend = result.difference
    if trend is not None and trend.low is not None and trend.high is not None:
        told.append(
            f"the difference changes by {trend.per_year:+.4f} a year, {result.level:.0%} interval "
            f"{trend.low:+.4f} to {trend.high:+.4f}"
        )
    if result.ratio is not None:
        told.append(f"{result.official} is {result.ratio:.3f} of {result.dev} in the median")
    return (("drift", "; ".join(told)),)


def tables(result: Drift) -> tuple[Table, ...]:
    """One table: the difference, the ratio, and what the ratio leaves, with their trends."""
    share = f"{result.level:.0%}"
    names = f"{result.official} - {result.dev}"
    left = f"{result.official} - ratio × {result.dev}"
    rows: tuple[tuple[Cell, ...], ...] = (
        (names, result.gap, result.scatter, *_trend(result.difference)),
        (f"{result.official} / {result.dev}", result.ratio, None, *_trend(result.ratio_trend)),
        (left, None, result.scatter_left, *_trend(result.remainder)),
    )
    return (
        Table(
            title=f"{result.official} against {result.dev}, {result.measure}",
            columns=(
                Column(name="", form="text"),
                Column(name="median", form="difference"),
                Column(name="typical distance", form="score"),
                Column(name="per year", form="difference"),
                Column(name=f"{share} from", form="difference"),
                Column(name="to", form="difference"),
            ),
            rows=rows,
            notes=(
                f"{plural(len(result.points), 'entry', 'entries')} with both scores; no baselines.",
                (
                    "Per year: the median slope between all pairs of entries. Typical distance: "
                    "the median distance from the median, or the median size of what is left."
                ),
                _say_intervals(result),
                f"{say_verdict(result).capitalize()}: {result.why}.",
            ),
        ),
    )


def title(result: Drift, plot: Plot) -> str:
    """What a picture shows."""
    if plot == "dev":
        return f"{result.board}: {result.official} against {result.dev} {result.measure}"
    return f"{result.board}: {result.official} less {result.dev} {result.measure} over time"


def spec(result: Drift, plot: Plot) -> dict[str, Any]:
    """The picture of one of the two panels of fostering-coopetition, Figure 3.

    Args:
        result: with at least one point.
        plot: which panel.
    """
    if plot == "dev":
        points = [
            Point(label=p.entry.name, day=p.entry.day, score=p.official, other=p.dev)
            for p in result.points
        ]
        names = Names(
            y=f"{result.official} {result.measure}",
            x=f"{result.dev} {result.measure}",
            key="" if result.ratio is None else f"dashed: {result.ratio:.3f} × {result.dev}",
        )
        return scatter_spec(points, _AGAINST, ratio=result.ratio, names=names)
    gaps = [Point(label=p.entry.name, day=p.entry.day, score=p.difference) for p in result.points]
    until = result.points[-1].entry.day
    equal = f"{result.official} = {result.dev}"
    names = Names(y=f"{result.official} − {result.dev} {result.measure}")
    level = Point(label=equal, day=until, score=0.0, baseline=True)
    return progress_spec([*gaps, level], _OVER_TIME, until=until, names=names)


def value(result: Drift) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "board": result.board,
        "official": result.official,
        "dev": result.dev,
        "measure": result.measure,
        "entries": len(result.points),
        "ratio": result.ratio,
        "gap": result.gap,
        "scatter": result.scatter,
        "scatter_left": result.scatter_left,
        "per_year": {
            "difference": _trend_value(result.difference),
            "remainder": _trend_value(result.remainder),
            "ratio": _trend_value(result.ratio_trend),
        },
        "verdict": result.verdict,
        "why": result.why,
        "level": result.level,
        "trials": result.trials,
        "points": [
            {
                "id": point.entry.id,
                "date": point.entry.day.isoformat(),
                "official": point.official,
                "dev": point.dev,
                "difference": point.difference,
                "ratio": point.ratio,
            }
            for point in result.points
        ],
        "digests": list(result.digests),
    }


def _trend(trend: Trend | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if trend is None else (trend.per_year, trend.low, trend.high)


def _trend_value(trend: Trend | None) -> dict[str, float | None] | None:
    if trend is None:
        return None
    return {"slope": trend.per_year, "low": trend.low, "high": trend.high}


def _say_intervals(result: Drift) -> str:
    if result.trials:
        return (
            f"Intervals by {plural(result.trials, 'draw')} of the queries of both sets, each alone."
        )
    return "Means alone are known: the trends are a description, without intervals or a verdict."
