"""Plots of a board's scores: points in, Vega-Lite dicts out.

Scores over time with the line of records, the official score against dev, and the score against a
cost with its Pareto front. Nothing is left to the drawing program that depends on a machine: ticks,
sizes and places of labels are all in the dict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from math import log10
from typing import Any

from heldout.charts.axes import Tick, day_ticks, log_ticks, milliseconds, score_span, score_ticks
from heldout.charts.labels import Box, Label, Line, Spot, box_of, cut, place_labels, text_width
from heldout.charts.svg import (
    INK,
    MUTED,
    RECORD,
    SIZE,
    Canvas,
    Frame,
    Layer,
    Style,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An entry or a baseline in a chart.

    Attributes:
        label: what it is called; its tooltip.
        day: day of submission.
        score: the score that ranks.
        other: the dev score, or the cost; `None` where it has none.
        record: whether it was best when it came and above every baseline; where there is a cost,
            whether it is on the Pareto front.
        baseline: an organiser's baseline.
        match: whether it is one of those that the chart shows apart, which are filled; `None`
            where the chart shows none apart.
    """

    label: str
    day: date
    score: float
    other: float | None = None
    record: bool = False
    baseline: bool = False
    match: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What is written at the ends of the axes; "" where time needs no name.

    Attributes:
        y, x: of the axes.
        key: what the marks mean, above the plot's right end; "" where it stands elsewhere.
    """

    y: str
    x: str = ""
    key: str = ""


def progress_spec(
    points: Sequence[Point], canvas: Canvas, *, until: date, names: Names
) -> dict[str, Any]:
    """Score over date: entries, the stepped line of records, baselines as dashed lines.

    Args:
        points: at least one.
        canvas: how large.
        until: where the line of records ends, the day of the page.
        names: of the vertical axis.
    """
    frame = _time_frame(points, canvas, until)
    baselines = sorted((p for p in points if p.baseline), key=lambda p: -p.score)
    records = sorted((p for p in points if p.record), key=lambda p: (p.day, p.score))
    others = [p for p in points if not p.record and not p.baseline]
    line = _steps(records, milliseconds(until))
    axes = _name_axes(names, frame)
    levels = [Line(y=frame.place(0, b.score)[1], text=_short(b, frame)) for b in baselines]
    marks = [*_spots(records, frame), *(replace(s, text="") for s in _spots(others, frame))]
    taken = [*(box_of(label, SIZE) for label in axes), *_under_line(line, frame)]
    named = _place(marks, [*taken, *_across(levels, frame)], frame)
    taken += [box_of(label, SIZE) for label in named]
    below = _place([*levels, *(replace(s, text="") for s in marks)], taken, frame)
    return join_layers(
        frame,
        [
            *(
                draw_line([(frame.x[0], b.score), (frame.x[1], b.score)], frame, MUTED, dash=[4, 4])
                for b in baselines
            ),
            draw_line(line, frame, RECORD),
            *_marks([(milliseconds(p.day), p.score, p) for p in (*others, *records)], frame),
            *draw_texts([*below, *axes], MUTED),
            *draw_texts(named, INK),
        ],
    )


def scatter_spec(
    points: Sequence[Point], canvas: Canvas, *, ratio: float | None, names: Names
) -> dict[str, Any]:
    """Official score over dev score, with the line of the median ratio.

    Args:
        points: at least one with a dev score; those without are left out.
        canvas: how large.
        ratio: official / dev along the line; `None` for no line.
        names: of both axes.
    """
    both = [(p, p.other) for p in points if p.other is not None]
    x = score_span([other for _, other in both])
    y = score_span([p.score for p, _ in both])
    frame = Frame(
        canvas=canvas,
        x=x,
        y=y,
        x_ticks=score_ticks(x, most=canvas.width // 56),
        y_ticks=score_ticks(y, most=canvas.height // 40),
    )
    layers = [] if ratio is None else [draw_line(_along(ratio, frame), frame, MUTED, dash=[4, 4])]
    layers += _marks([(other, p.score, p) for p, other in both], frame)
    layers += draw_texts(_name_axes(names, frame), MUTED)
    return join_layers(frame, layers)


def cost_spec(points: Sequence[Point], canvas: Canvas, *, names: Names) -> dict[str, Any]:
    """Score over the logarithm of a cost, with the stepped line of the Pareto front.

    Args:
        points: at least one with a cost; those without are left out. A cost is above 0.
        canvas: how large.
        names: of both axes.
    """
    logs = [(p, log10(p.other)) for p in points if p.other]
    x = score_span([log for _, log in logs])
    y = score_span([p.score for p, _ in logs])
    frame = Frame(
        canvas=canvas,
        x=x,
        y=y,
        x_ticks=_fitting(log_ticks(x, most=max(2, canvas.width // 84)), x, canvas),
        y_ticks=score_ticks(y, most=canvas.height // 40),
    )
    front = sorted(((log, p.score, p.label) for p, log in logs if p.record), reverse=True)
    others = [(log, p.score, p.label) for p, log in logs if not p.record]
    line = _stairs([(log, score) for log, score, _ in reversed(front)], frame.x[1])
    axes = _name_axes(names, frame)
    marks = [
        Spot(x=at[0], y=at[1], text=cut(label, canvas.label) if named else "")
        for spots, named in ((front, True), (others, False))
        for log, score, label in spots
        for at in (frame.place(log, score),)
    ]
    taken = [*(box_of(label, SIZE) for label in axes), *_under_line(line, frame)]
    return join_layers(
        frame,
        [
            draw_line(line, frame, RECORD),
            draw_dots(others, frame, "circle"),
            draw_dots(front, frame, "diamond"),
            *draw_texts(axes, MUTED),
            *draw_texts(_place(marks, taken, frame), INK),
        ],
    )


def _marks(spots: Sequence[tuple[float, float, Point]], frame: Frame) -> list[Layer]:
    """The points at their places, those that stand out on top."""
    return [
        draw_dots([(x, y, p.label) for x, y, p in spots if _style(p) == style], frame, style)
        for style in ("circle", "disc", "square", "open diamond", "diamond")
    ]


def _style(point: Point) -> Style:
    if point.baseline:
        return "square"
    if point.record:
        return "open diamond" if point.match is False else "diamond"
    return "disc" if point.match else "circle"


def _time_frame(points: Sequence[Point], canvas: Canvas, until: date) -> Frame:
    days = [p.day for p in points if not p.baseline] or [until - timedelta(days=30)]
    start, end = min(days), max(until, *days)
    edge = max((end - start) * 0.02, timedelta(days=1))
    y = score_span([p.score for p in points])
    x = (milliseconds(start - edge), milliseconds(end + edge))
    return Frame(
        canvas=canvas,
        x=x,
        y=y,
        x_ticks=_fitting(day_ticks(start, end, most=max(2, canvas.width // 84)), x, canvas),
        y_ticks=score_ticks(y, most=canvas.height // 40),
    )


def _fitting(ticks: Sequence[Tick], span: tuple[float, float], canvas: Canvas) -> tuple[Tick, ...]:
    """The ticks whose labels, centred below them, stay inside the picture."""

    def fits(tick: Tick) -> bool:
        middle = (tick.at - span[0]) / (span[1] - span[0]) * canvas.width
        half = text_width(tick.label, SIZE) / 2
        return -canvas.left <= middle - half and middle + half <= canvas.width + canvas.right

    return tuple(tick for tick in ticks if fits(tick))


def _steps(records: Sequence[Point], end: float) -> list[tuple[float, float]]:
    """The corners of the line: each record holds until the next, the last one until today."""
    return _stairs([(float(milliseconds(p.day)), p.score) for p in records], end)


def _stairs(steps: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """The corners of a line on which each step holds until the next, the last one to the end."""
    corners: list[tuple[float, float]] = []
    for place, score in steps:
        if corners:
            corners.append((place, corners[-1][1]))
        corners.append((place, score))
    return [*corners, (end, corners[-1][1])] if corners else []


def _along(ratio: float, frame: Frame) -> list[tuple[float, float]]:
    """The part of y = ratio * x that lies inside the frame."""
    low = max(frame.x[0], frame.y[0] / ratio)
    high = min(frame.x[1], frame.y[1] / ratio)
    return [(low, low * ratio), (high, high * ratio)] if low < high else []


def _name_axes(names: Names, frame: Frame) -> list[Label]:
    canvas = frame.canvas
    up = Label(x=-canvas.left, y=-18, text=names.y, align="left")
    right = Label(x=canvas.width, y=canvas.height - 12, text=names.x, align="right")
    key = Label(x=canvas.width + canvas.right, y=-18, text=names.key, align="right")
    return [label for label in (up, right, key) if label.text]


def _spots(points: Sequence[Point], frame: Frame) -> list[Spot]:
    """The marks in the order in which records get names: the best of each day, then the others.

    The newest and the best come first among both.
    """
    best = {p.day: p for p in sorted(points, key=lambda p: p.score)}
    newest = sorted(points, key=lambda p: (p is best[p.day], p.day, p.score), reverse=True)
    places = [(p, frame.place(milliseconds(p.day), p.score)) for p in newest]
    return [Spot(x=x, y=y, text=_short(p, frame)) for p, (x, y) in places]


def _short(point: Point, frame: Frame) -> str:
    return cut(point.label, frame.canvas.label)


def _place(wanted: Sequence[Spot | Line], taken: Sequence[Box], frame: Frame) -> tuple[Label, ...]:
    canvas = frame.canvas
    area = Box(left=0, top=-canvas.top, right=canvas.width, bottom=canvas.height)
    return place_labels(wanted, taken, size=SIZE, area=area)


def _under_line(corners: Sequence[tuple[float, float]], frame: Frame) -> list[Box]:
    """What the line of records takes."""
    places = [frame.place(x, y) for x, y in corners]
    return [
        Box(left=x0 - 1, top=min(y0, y1) - 1, right=x1 + 1, bottom=max(y0, y1) + 1)
        for (x0, y0), (x1, y1) in pairwise(places)
    ]


def _across(levels: Sequence[Line], frame: Frame) -> list[Box]:
    """What the baselines' lines take."""
    return [Box(left=0, top=v.y - 1, right=frame.canvas.width, bottom=v.y + 1) for v in levels]
