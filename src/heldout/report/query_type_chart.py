"""The share of discarded queries of each type as a picture."""

from typing import Any

from heldout.charts.boxes import RULE, draw_box
from heldout.charts.labels import Label, cut, text_width
from heldout.charts.layers import (
    INK,
    MUTED,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import Tick
from heldout.errors import plural
from heldout.survivorship.discarded.query_types import QueryTypes, TypeShare

__all__ = ["spec", "title"]

_NAME = 24
_ROW = 26
_THICK = 0.16


def title(found: QueryTypes) -> str:
    """What the picture shows."""
    types = plural(len(found.types), "type")
    return f"Share of discarded queries of each of {types}, with {found.level:.0%} intervals"


def spec(found: QueryTypes) -> dict[str, Any]:
    """A dot in its interval for each type, the highest share first; dashed: all queries."""
    rows = sorted(found.types, key=lambda one: (-one.share, one.kind))
    names = [cut(one.kind or "(none)", _NAME) for one in rows]
    frame = Frame(
        canvas=Canvas(
            width=320,
            height=_ROW * len(rows),
            left=round(max(text_width(name, SIZE) for name in names)) + 16,
            right=24,
            top=12,
            bottom=52,
        ),
        x=(0.0, 1.0),
        y=(0.0, float(len(rows))),
        x_ticks=tuple(Tick(at=part / 4, label=f"{part * 25}%") for part in range(5)),
        y_ticks=(),
    )
    share = found.discarded / found.total
    layers: list[Layer] = [
        draw_line([(share, 0.0), (share, float(len(rows)))], frame, MUTED, dash=[4, 4])
    ]
    for row, one in enumerate(rows):
        layers += _mark(one, len(rows) - row - 0.5, frame)
    return join_layers(frame, [*layers, *draw_texts(_words(found, names, frame), INK)])


def _mark(one: TypeShare, middle: float, frame: Frame) -> list[Layer]:
    told = f"{one.kind or '(none)'}: {one.discarded:,} of {one.total:,}, {one.share:.1%}"
    corners = (one.low, middle - _THICK, one.high, middle + _THICK)
    return [
        draw_box(corners, frame, RULE, f"{told}; {one.low:.1%} to {one.high:.1%}"),
        draw_dots([(one.share, middle, told)], frame, "disc"),
    ]


def _words(found: QueryTypes, names: list[str], frame: Frame) -> list[Label]:
    canvas = frame.canvas
    share = found.discarded / found.total
    below = f"share of queries without a label; dashed: {share:.1%} of all"
    return [
        *(
            Label(x=-8, y=(row + 0.5) * _ROW, text=name, align="right")
            for row, name in enumerate(names)
        ),
        Label(x=canvas.width + canvas.right - 4, y=canvas.height + 42, text=below, align="right"),
    ]
