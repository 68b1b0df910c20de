"""The picture of a ranking's stability: how often each system has each rank, and its range."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.analyses.stability import Stability
from heldout.charts.labels import cut, text_width
from heldout.charts.layers import INK, MUTED, RECORD, SIZE
from heldout.errors import plural
from heldout.validity.ranges import RankRanges

__all__ = ["spec", "title"]

_RULE, _HAIR = "#000003", "#000004"
_WIDTH = 600
_LEAST_CELL, _MOST_CELL = 5, 26
_NAMED, _MOST_NAMED = 15, 60
_NAME = 28
_RANKS = 40
_BELOW = 18
_SLOPE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shade:
    """A shade of the heat map: shares from `low` to below `high`."""

    low: float
    high: float
    colour: str


_SHADES = (
    _Shade(low=0.01, high=0.05, colour=_HAIR),
    _Shade(low=0.05, high=0.2, colour=_RULE),
    _Shade(low=0.2, high=0.5, colour=MUTED),
    _Shade(low=0.5, high=2, colour=INK),
)
"""Greys of the page, which turn round in the dark; a smaller share is left empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """A system's name: the middle of its row, and where the name stands."""

    row: float
    at: float
    text: str


def title(stability: Stability) -> str:
    """What the picture shows."""
    return (
        f"How often each of {len(stability.systems):,} systems has each rank in "
        f"{plural(stability.trials, 'resampling')} of the queries, with the range of ranks of each"
    )


def spec(stability: Stability, ranges: RankRanges, *, measure: str = "") -> dict[str, Any]:
    """The heat map of figure 3 with the ranges in it.

    A row for each system, a column for each rank: the darker a cell, the more trials. The range of
    ranks that may be believed is a thin line along the row. Of more than 60 systems those of the
    lead group are named, as many as there is room for.

    Args:
        stability: ranks under the bootstrap.
        ranges: of the same table of scores.
        measure: what was measured, for the title of the axis.

    Source: msmarco-benchmarking, figure 3.
    """
    n = len(stability.systems)
    cell = min(max(_WIDTH / n, _NAMED if n <= _MOST_NAMED else _LEAST_CELL), _MOST_CELL)
    names = _names(stability, ranges, cell)
    step = next((step for step in (1, 5, 10, 20, 50) if step * cell >= 2 * SIZE), 100)
    ticks = [rank for rank in range(1, n + 1) if rank % step == 0 or rank == 1]
    key, key_width = _key(stability, ranges)
    rows = f"systems, the best {measure or 'mean'} first"
    widest = max(text_width(one.text, SIZE) for one in names)
    left = max(_RANKS + _SLOPE + widest, text_width(rows, SIZE) + 12)
    layers = [
        *(_rectangles(_cells(stability, cell, shade), shade.colour) for shade in _SHADES),
        _rectangles(_marks(ranges, cell), RECORD),
        _texts([((rank - 0.5) * cell, -12, f"{rank}") for rank in ticks], MUTED, "center"),
        _texts([(-12, (rank - 0.5) * cell, f"{rank}") for rank in ticks], MUTED, "right"),
        _slopes([one for one in names if one.at != one.row]),
        _texts([(-_RANKS - _offset(one), one.at, one.text) for one in names], INK, "right"),
        _texts([(-12, -12, rows)], MUTED, "right"),
        _texts([(0, n * cell + _BELOW, "rank in resamplings of the queries")], MUTED, "left"),
        *key,
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": max(n * cell, key_width),
        "height": n * cell,
        "autosize": {"type": "none"},
        "padding": {"left": left, "right": 14, "top": 60, "bottom": 2 * _BELOW},
        "background": None,
        "config": {"view": {"stroke": None, "fill": None}},
        "layer": [layer for layer in layers if layer["data"]["values"]],
    }


def _names(stability: Stability, ranges: RankRanges, cell: float) -> list[_Name]:
    """All names where rows are high enough; else the lead group, one below the other."""
    if cell >= _NAMED:
        return [
            _Name(row=(row + 0.5) * cell, at=(row + 0.5) * cell, text=cut(name, _NAME))
            for row, name in enumerate(stability.systems)
        ]
    names: list[_Name] = []
    for row, (name, low) in enumerate(zip(stability.systems, ranges.low, strict=True)):
        at = max((row + 0.5) * cell, names[-1].at + _NAMED if names else 0.0)
        if low == 1 and at <= len(stability.systems) * cell:
            names.append(_Name(row=(row + 0.5) * cell, at=at, text=cut(name, _NAME)))
    return names


def _offset(one: _Name) -> float:
    return 0.0 if one.at == one.row else float(_SLOPE)


def _slopes(names: Sequence[_Name]) -> dict[str, Any]:
    """A line from a name that had to move to its row."""
    return {
        "data": {
            "values": [_box(-_RANKS - _SLOPE + 4, one.at, -_RANKS + 4, one.row) for one in names]
        },
        "mark": {"type": "rule", "aria": False, "stroke": _RULE, "strokeWidth": 1},
        "encoding": _corners(),
    }


def _key(stability: Stability, ranges: RankRanges) -> tuple[list[dict[str, Any]], float]:
    """What shades and lines mean, above the ranks; and how wide that is."""
    layers: list[dict[str, Any]] = []
    x = 0.0
    for shade in reversed(_SHADES):
        words = f"from {shade.low:.0%}"
        text = words if layers else f"{words} of {plural(stability.trials, 'resampling')}"
        layers.append(_rectangles([_box(x, -50, x + 12, -38)], shade.colour))
        layers.append(_texts([(x + 17, -44, text)], INK, "left"))
        x += 30 + text_width(text, SIZE)
    layers.append(_rectangles([_box(x, -45, x + 20, -43)], RECORD))
    text = f"range, {ranges.level:.0%} for all at once"
    layers.append(_texts([(x + 25, -44, text)], INK, "left"))
    return layers, x + 25 + text_width(text, SIZE)


def _marks(ranges: RankRanges, cell: float) -> list[dict[str, float]]:
    """The ranges: a line along the lower edge of each row."""
    thick = max(1.0, cell / 10)
    return [
        _box((low - 1) * cell, row * cell - thick, high * cell, row * cell)
        for row, (low, high) in enumerate(zip(ranges.low, ranges.high, strict=True), start=1)
    ]


def _cells(stability: Stability, cell: float, shade: _Shade) -> list[dict[str, float]]:
    """The cells of one shade, a little apart from those of the next row."""
    shares = stability.rank_probability
    places = np.argwhere((shares >= shade.low) & (shares < shade.high)).tolist()
    gap = max(1.0, cell / 10)
    return [
        _box(column * cell, row * cell, (column + 1) * cell, (row + 1) * cell - gap)
        for row, column in places
    ]


def _box(x: float, y: float, x2: float, y2: float) -> dict[str, float]:
    return {"x": x, "y": y, "x2": x2, "y2": y2}


def _rectangles(boxes: Sequence[dict[str, float]], colour: str) -> dict[str, Any]:
    return {
        "data": {"values": list(boxes)},
        "mark": {"type": "rect", "aria": False, "fill": colour},
        "encoding": _corners(),
    }


def _corners() -> dict[str, Any]:
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    return {"x": _pixels("x"), "y": _pixels("y"), **ends}


def _texts(places: Sequence[tuple[float, float, str]], colour: str, align: str) -> dict[str, Any]:
    mark = {"type": "text", "aria": False, "baseline": "middle", "fontSize": SIZE}
    return {
        "data": {"values": [{"x": x, "y": y, "text": text} for x, y, text in places]},
        "mark": mark | {"align": align, "fill": colour},
        "encoding": {"x": _pixels("x"), "y": _pixels("y"), "text": {"field": "text"}},
    }


def _pixels(field: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "scale": None, "axis": None}
