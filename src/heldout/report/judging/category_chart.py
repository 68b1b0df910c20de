"""What people prefer where a run and the labels agree, and where not, as a picture.

Shallow-pooling, figure 2.
"""

from typing import Any

from heldout.charts.boxes import LINK, RULE, draw_box
from heldout.charts.labels import Label
from heldout.charts.layers import (
    INK,
    MUTED,
    RECORD,
    Canvas,
    Frame,
    Layer,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import Tick
from heldout.preferences.category_results import CategoryResult

__all__ = ["spec", "title"]

_BAR, _ROW = 0.3, 76
_WORDS = {
    "A": ("A: known answer first", "the next passage"),
    "B": ("B: another passage first", "the known answer"),
}


def title(run: str) -> str:
    """What the picture shows."""
    return (
        f"Queries where people prefer what {run} shows first, and where they prefer the passage "
        "that it is compared with, as shares of all that decide"
    )


def spec(found: tuple[CategoryResult, CategoryResult]) -> dict[str, Any]:
    """A bar for each category, as long as its share of the queries; at least one decides."""
    total = sum(one.decided for one in found)
    frame = Frame(
        canvas=Canvas(width=440, height=_ROW * 2, left=180, right=24, top=44, bottom=32),
        x=(0.0, max(one.decided for one in found) / total * 1.02),
        y=(0.0, 2.0),
        x_ticks=_ticks(max(one.decided for one in found) / total),
        y_ticks=(Tick(at=0.0, label=""), Tick(at=2.0, label="")),
    )
    layers: list[Layer] = [draw_line([(0.0, 0.0), (0.0, 2.0)], frame, RULE)]
    for place, one in enumerate(found):
        layers += _bar(one, 1.5 - place, total, frame)
    key = [
        ("first document of the run preferred", LINK, 0.0),
        ("the other preferred", RECORD, 250.0),
    ]
    for text, colour, left in key:
        layers += draw_texts([Label(x=left, y=-24, text=text, align="left")], colour)
    return join_layers(frame, layers)


def _bar(one: CategoryResult, middle: float, total: int, frame: Frame) -> list[Layer]:
    name, other = _WORDS[one.category]
    lost = one.decided - one.top_preferred
    middle_share, end = one.top_preferred / total, one.decided / total
    told = f"{one.category}: {one.top_preferred:,} prefer what the run shows first"
    boxes = [
        draw_box((0.0, middle - _BAR, middle_share, middle + _BAR), frame, LINK, told),
        draw_box(
            (middle_share, middle - _BAR, end, middle + _BAR),
            frame,
            RECORD,
            f"{one.category}: {lost:,} prefer {other}",
        ),
    ]
    y = frame.place(0.0, middle)[1]
    names = draw_texts([Label(x=-10, y=y - 9, text=name, align="right")], INK)
    share = "nothing decides" if one.share is None else f"{one.top_preferred:,} to {lost:,}"
    return [
        *boxes,
        *names,
        *draw_texts([Label(x=-10, y=y + 11, text=share, align="right")], MUTED),
    ]


def _ticks(widest: float) -> tuple[Tick, ...]:
    return tuple(Tick(at=n / 10, label=f"{n * 10}%") for n in range(11) if n / 10 <= widest * 1.02)
