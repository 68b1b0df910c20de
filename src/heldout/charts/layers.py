"""The layers of a chart as Vega-Lite dicts: lines, marks and texts inside a frame.

Nothing is left to the drawing program that depends on a machine: ticks and sizes are in the dict.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heldout.charts.labels import Label
from heldout.charts.ticks import Tick

__all__ = [
    "INK",
    "MUTED",
    "RECORD",
    "SIZE",
    "Canvas",
    "Frame",
    "Layer",
    "Style",
    "draw_dots",
    "draw_line",
    "draw_strokes",
    "draw_texts",
    "join_layers",
]

SIZE = 13
INK, MUTED, _RULE, _HAIR, _LINK, RECORD, _PAPER = (f"#00000{n}" for n in range(1, 8))
_DOT, _MARK = 32, 96
Layer = dict[str, Any]

Style = Literal["circle", "disc", "square", "open diamond", "diamond"]
"""How a mark looks: a disc is a filled circle; diamonds are large, and filled unless open."""

_STYLES: Mapping[Style, tuple[str, str, str]] = {
    "circle": ("circle", _PAPER, MUTED),
    "disc": ("circle", RECORD, RECORD),
    "square": ("square", INK, _PAPER),
    "open diamond": ("diamond", _PAPER, RECORD),
    "diamond": ("diamond", RECORD, RECORD),
}


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
class Frame:
    """A canvas with its scales; `place` is what the drawing program does with them."""

    canvas: Canvas
    x: tuple[float, float]
    y: tuple[float, float]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a value lies, in pixels from the upper left corner of the plot's inside."""
        right = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return right * self.canvas.width, (1 - up) * self.canvas.height


def draw_line(
    corners: Sequence[tuple[float, float]],
    frame: Frame,
    colour: str,
    *,
    dash: Sequence[int] = (),
) -> Layer:
    """A line through corners, in values of the axes; thin where it is dashed."""
    mark = {"type": "line", "aria": False, "stroke": colour, "strokeWidth": 1 if dash else 2}
    values = [{"x": x, "y": y, "n": n} for n, (x, y) in enumerate(corners)]
    return {
        "data": {"values": values},
        "mark": mark | ({"strokeDash": list(dash)} if dash else {"strokeJoin": "round"}),
        "encoding": _axes(frame) | {"order": {"field": "n"}},
    }


def draw_strokes(places: Sequence[tuple[float, str]], frame: Frame, colour: str) -> Layer:
    """Thin upright strokes over the whole height with their tooltips: (x, label)."""
    low, high = frame.y
    values = [{"x": x, "y": low, "y2": high, "label": label} for x, label in places]
    more = {"y2": {"field": "y2"}, "description": {"field": "label"}}
    return {
        "data": {"values": values},
        "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1},
        "encoding": _axes(frame) | more,
    }


def draw_dots(spots: Sequence[tuple[float, float, str]], frame: Frame, style: Style) -> Layer:
    """Marks of one style with their tooltips: (x, y, label), in values of the axes."""
    shape, fill, stroke = _STYLES[style]
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


def draw_texts(labels: Sequence[Label], colour: str) -> list[Layer]:
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
                "fontSize": SIZE,
                "fill": colour,
                "stroke": _PAPER,
                "strokeWidth": 4,
            },
            "encoding": {"text": {"field": "text"}},
        }
        for label in labels
    ]


def _axes(frame: Frame) -> dict[str, Any]:
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
            "labelColor": MUTED,
            "labelFontSize": SIZE,
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


def join_layers(frame: Frame, layers: Sequence[Layer]) -> dict[str, Any]:
    """The whole chart; a layer without data is left out."""
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
