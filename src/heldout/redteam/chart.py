"""The chart of the red team's table: the worst attack on each rule, with each baseline."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from heldout.charts.files import stand_alone
from heldout.redteam.report import Line

__all__ = ["chart_spec", "draw_chart"]

_INK, _MUTED, _HAIR, _RECORD = (f"#00000{n}" for n in (1, 2, 4, 6))
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 400, 220, 64, 8, 36
_ROW, _HEAD, _BAR, _SIZE = 18, 30, 10, 13


def draw_chart(lines: Sequence[Line]) -> str:
    """The chart as an SVG file, in the light or dark of whoever looks.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    title = "The strongest attack on each rule with each baseline, in standard errors"
    return stand_alone(chart_spec(lines), title=title)


def chart_spec(lines: Sequence[Line]) -> dict[str, Any]:
    """Bars under the name of each rule, in the order of the lines.

    A bar is the larger of what stands on the board and what the attacker's last run is worth.

    Args:
        lines: at least one; of each rule and baseline the last one is drawn.
    """
    groups: dict[str, dict[str, float]] = {}
    for line in lines:
        groups.setdefault(line.release, {})[f"{line.baseline}: {line.attack}"] = line.harm
    gains = [gain for group in groups.values() for gain in group.values()]
    low, high = min(0.0, *gains), max(1, ceil(max(gains)))
    height = sum(_HEAD + _ROW * len(group) for group in groups.values())
    span = (low, high)
    layers = [_grid(span, height)]
    top = 0
    for release, group in groups.items():
        layers.append(_text(12 - _LEFT, top + _HEAD * 0.6, release, _INK, bold=True))
        for row, (attack, gain) in enumerate(group.items()):
            middle = top + _HEAD + _ROW * (row + 0.5)
            layers += _bar(attack, gain, middle, span)
        top += _HEAD + _ROW * len(group)
    layers += [
        _text(_place(u, span), height + 16, f"{u} u", _MUTED, align="center")
        for u in range(high + 1)
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": _WIDTH,
        "height": height,
        "autosize": {"type": "none"},
        "padding": {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM},
        "background": None,
        "config": {"view": {"stroke": None, "fill": None}},
        "layer": layers,
    }


def _place(gain: float, span: tuple[float, float]) -> float:
    return (gain - span[0]) / (span[1] - span[0]) * _WIDTH


def _bar(
    attack: str, gain: float, middle: float, span: tuple[float, float]
) -> list[dict[str, Any]]:
    """A bar from zero, its attack to the left and its value at its end."""
    ends = sorted((_place(0, span), _place(gain, span)))
    return [
        _mark(
            "rect",
            {"x": ends[0], "x2": ends[1], "y": middle - _BAR / 2, "y2": middle + _BAR / 2},
            fill=_RECORD,
        ),
        _text(-8, middle, attack, _MUTED, align="right"),
        _text(ends[1] + 6, middle, f"{round(gain, 2) + 0.0:.2f}", _INK),
    ]


def _grid(span: tuple[float, float], height: float) -> dict[str, Any]:
    """A thin line at each whole u."""
    places = [{"x": _place(u, span)} for u in range(int(span[1]) + 1)]
    return {
        "data": {"values": places},
        "mark": {"type": "rule", "aria": False, "stroke": _HAIR, "y": 0, "y2": height},
        "encoding": {"x": {"field": "x", "type": "quantitative", "scale": None, "axis": None}},
    }


def _text(
    x: float, y: float, text: str, colour: str, *, align: str = "left", bold: bool = False
) -> dict[str, Any]:
    places = {"x": x, "y": y, "align": align, "baseline": "middle", "fontSize": _SIZE}
    weight = {"fontWeight": "bold"} if bold else {}
    layer = _mark("text", places | weight, fill=colour)
    layer["encoding"] = {"text": {"value": text}}
    return layer


def _mark(kind: str, places: dict[str, Any], *, fill: str) -> dict[str, Any]:
    return {
        "data": {"values": [{}]},
        "mark": {"type": kind, "aria": False, "fill": fill, **places},
    }
