"""The charts of a board: points in, Vega-Lite dicts out.

Two charts: scores over time with the line of records, and the official score against dev. Nothing
is left to the drawing program that depends on a machine: ticks, sizes and places of labels are all
in the dict.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from heldout.site.labels import Box, Label, Line, Spot, box_of, cut, place_labels, text_width
from heldout.site.ticks import Tick, day_ticks, milliseconds, score_span, score_ticks

__all__ = ["Canvas", "Names", "Point", "progress_spec", "scatter_spec"]

_SIZE = 13
_INK, _MUTED, _RULE, _HAIR, _LINK, _RECORD, _PAPER = (f"#00000{n}" for n in range(1, 8))
_DOT, _MARK = 32, 96
_Layer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """Size of the plot's inside, the space around it, and of its labels, in CSS pixels."""

    width: int
    height: int
    left: int = 48
    right: int = 14
    top: int = 28
    bottom: int = 28
    label: int = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An entry or a baseline in a chart.

    Attributes:
        label: what it is called; its tooltip.
        day: day of submission.
        score: the score that ranks.
        other: the dev score, `None` where it has none.
        record: whether it was best when it came and above every baseline.
        baseline: an organiser's baseline.
    """

    label: str
    day: date
    score: float
    other: float | None = None
    record: bool = False
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What is written at the ends of the axes; "" where time needs no name."""

    y: str
    x: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A canvas with its scales; `place` is what the drawing program does with them."""

    canvas: Canvas
    x: tuple[float, float]
    y: tuple[float, float]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    def place(self, x: float, y: float) -> tuple[float, float]:
        right = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return right * self.canvas.width, (1 - up) * self.canvas.height


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
    taken = [*(box_of(label, _SIZE) for label in axes), *_under_line(line, frame)]
    named = _place(marks, [*taken, *_across(levels, frame)], frame)
    taken += [box_of(label, _SIZE) for label in named]
    below = _place([*levels, *(replace(s, text="") for s in marks)], taken, frame)
    return _chart(
        frame,
        [
            *(
                _line([(frame.x[0], b.score), (frame.x[1], b.score)], frame, _MUTED, dash=[4, 4])
                for b in baselines
            ),
            _line(line, frame, _RECORD),
            _dots([(milliseconds(p.day), p.score, p.label) for p in others], frame, "circle"),
            _dots([(milliseconds(p.day), p.score, p.label) for p in records], frame, "diamond"),
            *_texts([*below, *axes], _MUTED),
            *_texts(named, _INK),
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
    frame = _Frame(
        canvas=canvas,
        x=x,
        y=y,
        x_ticks=score_ticks(x, most=canvas.width // 56),
        y_ticks=score_ticks(y, most=canvas.height // 40),
    )
    layers = [] if ratio is None else [_line(_along(ratio, frame), frame, _MUTED, dash=[4, 4])]
    for shape in ("circle", "square", "diamond"):
        spots = [(other, p.score, p.label) for p, other in both if _shape(p) == shape]
        layers.append(_dots(spots, frame, shape))
    layers += _texts(_name_axes(names, frame), _MUTED)
    return _chart(frame, layers)


def _shape(point: Point) -> str:
    if point.baseline:
        return "square"
    return "diamond" if point.record else "circle"


def _time_frame(points: Sequence[Point], canvas: Canvas, until: date) -> _Frame:
    days = [p.day for p in points if not p.baseline] or [until - timedelta(days=30)]
    start, end = min(days), max(until, *days)
    edge = max((end - start) * 0.02, timedelta(days=1))
    y = score_span([p.score for p in points])
    x = (milliseconds(start - edge), milliseconds(end + edge))
    return _Frame(
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
        half = text_width(tick.label, _SIZE) / 2
        return -canvas.left <= middle - half and middle + half <= canvas.width + canvas.right

    return tuple(tick for tick in ticks if fits(tick))


def _steps(records: Sequence[Point], end: float) -> list[tuple[float, float]]:
    """The corners of the line: each record holds until the next, the last one until today."""
    corners: list[tuple[float, float]] = []
    for point in records:
        day = float(milliseconds(point.day))
        if corners:
            corners.append((day, corners[-1][1]))
        corners.append((day, point.score))
    return [*corners, (end, corners[-1][1])] if corners else []


def _along(ratio: float, frame: _Frame) -> list[tuple[float, float]]:
    """The part of y = ratio * x that lies inside the frame."""
    low = max(frame.x[0], frame.y[0] / ratio)
    high = min(frame.x[1], frame.y[1] / ratio)
    return [(low, low * ratio), (high, high * ratio)] if low < high else []


def _name_axes(names: Names, frame: _Frame) -> list[Label]:
    canvas = frame.canvas
    up = Label(x=-canvas.left, y=-18, text=names.y, align="left")
    right = Label(x=canvas.width, y=canvas.height - 12, text=names.x, align="right")
    return [label for label in (up, right) if label.text]


def _spots(points: Sequence[Point], frame: _Frame) -> list[Spot]:
    """The marks in the order in which records get names: the best of each day, then the others.

    The newest and the best come first among both.
    """
    best = {p.day: p for p in sorted(points, key=lambda p: p.score)}
    newest = sorted(points, key=lambda p: (p is best[p.day], p.day, p.score), reverse=True)
    places = [(p, frame.place(milliseconds(p.day), p.score)) for p in newest]
    return [Spot(x=x, y=y, text=_short(p, frame)) for p, (x, y) in places]


def _short(point: Point, frame: _Frame) -> str:
    return cut(point.label, frame.canvas.label)


def _place(wanted: Sequence[Spot | Line], taken: Sequence[Box], frame: _Frame) -> tuple[Label, ...]:
    canvas = frame.canvas
    area = Box(left=0, top=-canvas.top, right=canvas.width, bottom=canvas.height)
    return place_labels(wanted, taken, size=_SIZE, area=area)


def _under_line(corners: Sequence[tuple[float, float]], frame: _Frame) -> list[Box]:
    """What the line of records takes."""
    places = [frame.place(x, y) for x, y in corners]
    return [
        Box(left=x0 - 1, top=min(y0, y1) - 1, right=x1 + 1, bottom=max(y0, y1) + 1)
        for (x0, y0), (x1, y1) in pairwise(places)
    ]


def _across(levels: Sequence[Line], frame: _Frame) -> list[Box]:
    """What the baselines' lines take."""
    return [Box(left=0, top=v.y - 1, right=frame.canvas.width, bottom=v.y + 1) for v in levels]


def _line(
    corners: Sequence[tuple[float, float]],
    frame: _Frame,
    colour: str,
    *,
    dash: Sequence[int] = (),
) -> _Layer:
    mark = {"type": "line", "aria": False, "stroke": colour, "strokeWidth": 1 if dash else 2}
    values = [{"x": x, "y": y, "n": n} for n, (x, y) in enumerate(corners)]
    return {
        "data": {"values": values},
        "mark": mark | ({"strokeDash": list(dash)} if dash else {"strokeJoin": "round"}),
        "encoding": _axes(frame) | {"order": {"field": "n"}},
    }


def _dots(spots: Sequence[tuple[float, float, str]], frame: _Frame, shape: str) -> _Layer:
    fill, stroke = {
        "circle": (_PAPER, _MUTED),
        "square": (_INK, _PAPER),
        "diamond": (_RECORD, _PAPER),
    }[shape]
    return {
        "data": {"values": [{"x": x, "y": y, "label": label} for x, y, label in spots]},
        "mark": {
            "type": "point",
            "shape": shape,
            "filled": False,
            "fill": fill,
            "stroke": stroke,
            "strokeWidth": 1.5,
            "opacity": 1,
            "size": _MARK if shape == "diamond" else _DOT,
        },
        "encoding": _axes(frame) | {"description": {"field": "label"}},
    }


def _texts(labels: Sequence[Label], colour: str) -> list[_Layer]:
    """Text at pixels, with an edge in the colour of the page so that no line runs through it."""
    return [
        {
            "data": {"values": [{"text": label.text}]},
            "mark": {
                "type": "text",
                "aria": False,
                "x": label.x,
                "y": label.y,
                "align": label.align,
                "baseline": "middle",
                "fontSize": _SIZE,
                "fill": colour,
                "stroke": _PAPER,
                "strokeWidth": 4,
            },
            "encoding": {"text": {"field": "text"}},
        }
        for label in labels
    ]


def _axes(frame: _Frame) -> dict[str, Any]:
    return {
        "x": _axis("x", frame.x, frame.x_ticks) | {"field": "x"},
        "y": _axis("y", frame.y, frame.y_ticks) | {"field": "y"},
    }


def _axis(field: str, domain: tuple[float, float], ticks: Sequence[Tick]) -> dict[str, Any]:
    names = json.dumps([t.label for t in ticks])
    upright = field == "y"
    return {
        "type": "quantitative",
        "title": None,
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {
            "values": [t.at for t in ticks],
            "labelExpr": f"{names}[round(datum.index * {len(ticks) - 1})]",
            "labelOverlap": False,
            "labelBound": False,
            "labelFlush": False,
            "labelColor": _MUTED,
            "labelFontSize": _SIZE,
            "labelPadding": 8,
            "grid": upright,
            "gridColor": _HAIR,
            "domain": not upright,
            "domainColor": _RULE,
            "ticks": not upright,
            "tickColor": _RULE,
            "tickSize": 4,
        },
    }


def _chart(frame: _Frame, layers: Sequence[_Layer]) -> dict[str, Any]:
    canvas = frame.canvas
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": canvas.width,
        "height": canvas.height,
        "autosize": {"type": "none"},
        "padding": {
            "left": canvas.left,
            "right": canvas.right,
            "top": canvas.top,
            "bottom": canvas.bottom,
        },
        "background": None,
        "config": {"view": {"stroke": None, "fill": None}},
        "layer": [layer for layer in layers if layer["data"]["values"]],
    }
