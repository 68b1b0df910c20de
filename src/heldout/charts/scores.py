"""Scores of a board as charts: over time, against dev scores, and against a cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from math import inf
from statistics import quantiles

from heldout.charts.axes import day_axis, log_axis, score_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import MUTED, RECORD, Style
from heldout.errors import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartEntry:
    """An entry or a baseline in a chart.

    Attributes:
        label: what it is called; its tooltip.
        day: day of submission.
        score: the score that ranks.
        other: the dev score, or the cost; `None` where it has none.
        record: whether it was best when it came and above every baseline; where there is a cost,
            whether it is on the Pareto front.
        baseline: an organiser's baseline.
        match: whether it is one of those that the chart shows apart, in blue.
        key: by which the script of a page finds its mark; "" where there is no such script.
    """

    label: str
    day: date
    score: float
    other: float | None = None
    record: bool = False
    baseline: bool = False
    match: bool = False
    key: str = ""


def progress_chart(entries: Sequence[ChartEntry], *, until: date, head: str) -> Plot:
    """Score over date: entries, the stepped line of records, baselines as dashed lines.

    Args:
        entries: at least one.
        until: where the line of records ends, the day of the page.
        head: name of the vertical axis.
    """
    days = [one.day for one in entries if not one.baseline] or [until - timedelta(days=30)]
    axis = day_axis(min(days), max(until, *days))
    plot = Plot(x=axis, y=score_axis([one.score for one in entries]), head=head)
    for one in sorted((one for one in entries if one.baseline), key=lambda one: -one.score):
        plot.level(one.score, one.label)
    records = [one for one in entries if one.record]
    others = [one for one in entries if not one.record and not one.baseline]
    steps = sorted((one.day.toordinal(), one.score) for one in records)
    plot.stairs(steps, until.toordinal(), RECORD)
    _mark(plot, [*others, *records], lambda one: one.day.toordinal())
    for number, one in enumerate(_by_step(records)):
        plot.name(one.day.toordinal(), one.score, one.label, must=number < _MUST)
    return plot


_MUST = 2
"""Names that stand there in any case: the record of today, and the largest step."""


def _by_step(records: Sequence[ChartEntry]) -> list[ChartEntry]:
    """The record of today, then those of the largest steps; a day's others last."""
    ordered = sorted(records, key=lambda one: (one.day, one.score))
    best = [*{one.day: one for one in ordered}.values()]
    steps = {one: abs(one.score - before.score) for before, one in pairwise(best)}
    by_size = sorted(best, key=lambda one: (-steps.get(one, 0.0), -one.day.toordinal()))
    return [
        *best[-1:],
        *(one for one in by_size if one is not best[-1]),
        *(one for one in reversed(ordered) if one not in best),
    ]


_FAR = 3.0
"""Interquartile ranges beyond a quartile, from where on a difference is far off (Tukey 1977)."""


def gap_chart(gaps: Sequence[ChartEntry], *, until: date, head: str, equal: str) -> Plot:
    """Differences over time; what is far off stands at the edge, so that the others can be seen.

    Args:
        gaps: at least one; `score` is the difference.
        until: the day of the page.
        head: name of the vertical axis.
        equal: name of the line of no difference.
    """
    low, high = _usual([one.score for one in gaps])
    near = [one for one in gaps if low <= one.score <= high]
    y = score_axis([0.0, *(one.score for one in near)])
    days = [one.day for one in gaps]
    plot = Plot(x=day_axis(min(days), max(until, *days)), y=y, head=head)
    plot.level(0.0, equal)
    _mark(plot, near, lambda one: one.day.toordinal())
    edge = 0.03 * (y.high - y.low)
    beyond: tuple[tuple[Style, float, list[ChartEntry]], ...] = (
        ("below", y.low + edge, [one for one in gaps if one.score < low]),
        ("above", y.high - edge, [one for one in gaps if one.score > high]),
    )
    for style, at, far in beyond:
        keys = [one.key for one in far] if all(one.key for one in far) else []
        spots = []
        for one in far:
            value = f"{one.score:.3f}".replace("-", "\u2212")
            spots.append((one.day.toordinal(), at, f"{one.label}: {value}"))
            plot.name(one.day.toordinal(), at, value)
        plot.dots(spots, style, keys)
        if far:
            plot.key(style, f"{plural(len(far), 'entry', 'entries')} {style} the axis")
    return plot


def _usual(values: Sequence[float]) -> tuple[float, float]:
    """From where to where differences are not far off."""
    first, _, third = quantiles(values, method="inclusive") if len(values) > 1 else [0.0] * 3
    room = _FAR * (third - first) or inf
    return first - room, third + room


def scatter_chart(
    entries: Sequence[ChartEntry], *, ratio: float | None, head: str, foot: str
) -> Plot:
    """Official score over dev score, with the line of the median ratio.

    Args:
        entries: at least one with a dev score; those without are left out.
        ratio: official / dev along the line; `None` for no line.
        head: name of the vertical axis.
        foot: name of the horizontal axis.
    """
    both = {one: one.other for one in entries if one.other is not None}
    x, y = score_axis(both.values()), score_axis([one.score for one in both])
    plot = Plot(x=x, y=y, head=head, foot=foot)
    if ratio is not None:
        low, high = max(x.low, y.low / ratio), min(x.high, y.high / ratio)
        if low < high:
            plot.line([(low, low * ratio), (high, high * ratio)], MUTED, dash=True)
    _mark(plot, [*both], both.__getitem__)
    return plot


def cost_chart(entries: Sequence[ChartEntry], *, head: str, foot: str) -> Plot:
    """Score over the logarithm of a cost, with the stepped line of the Pareto front.

    Args:
        entries: at least one with a cost above 0; those without are left out.
        head: name of the vertical axis.
        foot: name of the horizontal axis.
    """
    costs = {one: one.other for one in entries if one.other}
    x = log_axis(costs.values())
    plot = Plot(x=x, y=score_axis([one.score for one in costs]), head=head, foot=foot)
    front = sorted((cost, one.score, one.label) for one, cost in costs.items() if one.record)
    others = [(cost, one.score, one.label) for one, cost in costs.items() if not one.record]
    plot.stairs([(cost, score) for cost, score, _ in front], x.high, RECORD)
    plot.dots(others, "circle")
    plot.dots(front, "diamond")
    for spot in reversed(front):
        plot.name(*spot)
    return plot


def _mark(plot: Plot, entries: Sequence[ChartEntry], across: Callable[[ChartEntry], float]) -> None:
    """The entries at their positions, those that stand out on top."""
    styles: list[Style] = ["circle", "square", "match", "diamond", "match diamond"]
    found: dict[Style, list[ChartEntry]] = {style: [] for style in styles}
    for one in entries:
        found[_style(one)].append(one)
    for style, those in found.items():
        keys = [one.key for one in those] if all(one.key for one in those) else []
        plot.dots([(across(one), one.score, one.label) for one in those], style, keys)


def _style(entry: ChartEntry) -> Style:
    if entry.baseline:
        return "square"
    if entry.record:
        return "match diamond" if entry.match else "diamond"
    return "match" if entry.match else "circle"
