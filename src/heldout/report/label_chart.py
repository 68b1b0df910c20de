"""Scores of runs on preference labels over those on the labels there were, as a picture.

The study's figure 6: where the order of the best changes, points leave the rising line, and a
perfect run by the old labels is a level line below the best.
"""

from collections.abc import Sequence
from typing import Any

from heldout.charts.boxes import RULE
from heldout.charts.labels import Box, Label, Spot, cut, place_labels
from heldout.charts.layers import (
    INK,
    MUTED,
    RECORD,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks
from heldout.preferences.contests import PERFECT
from heldout.preferences.rescoring import Rescored, RunRescored

__all__ = ["spec", "title"]

_NAME = 22


def title(found: Rescored) -> str:
    """What the picture shows."""
    return (
        f"{found.measures[1]} on {found.after} over {found.measures[0]} on {found.before}, on "
        f"{found.queries:,} queries"
    )


def spec(found: Rescored) -> dict[str, Any]:
    """A mark for each run, filled where it was pooled; a line for the perfect run."""
    runs = [one for one in found.runs if one.run != PERFECT]
    perfect = next((one.after.value for one in found.runs if one.run == PERFECT), None)
    ends = [end for one in runs for end in one.after.bca or (one.after.value,)]
    x = score_span([one.before.value for one in runs])
    y = score_span([*ends, *([] if perfect is None else [perfect])])
    frame = Frame(
        canvas=Canvas(width=600, height=420, left=56, right=24, top=44, bottom=44),
        x=x,
        y=y,
        x_ticks=score_ticks(x, most=9),
        y_ticks=score_ticks(y, most=9),
    )
    layers: list[Layer] = []
    if perfect is not None:
        layers.append(draw_line([(x[0], perfect), (x[1], perfect)], frame, RECORD, dash=(4, 4)))
    for one in runs:
        corners = [(one.before.value, end) for end in one.after.bca or ()]
        if corners:
            layers.append(draw_line(corners, frame, RULE, dash=(1, 0)))
    for pooled in (False, True):
        dots = [
            (one.before.value, one.after.value, f"{one.run}: {one.after.value:.4f}")
            for one in runs
            if one.pooled == pooled
        ]
        layers.append(draw_dots(dots, frame, "disc" if pooled else "circle"))
    return join_layers(frame, [*layers, *_names(runs, frame), *_axes(found, frame)])


def _names(runs: Sequence[RunRescored], frame: Frame) -> list[Layer]:
    """Names where there is room, those that moved most first."""
    wanted = []
    for one in sorted(runs, key=lambda one: -abs(one.before.rank - one.after.rank)):
        left, top = frame.place(one.before.value, one.after.value)
        wanted.append(Spot(x=left, y=top, text=cut(one.run, _NAME)))
    width, height = float(frame.canvas.width), float(frame.canvas.height)
    area = Box(left=0, top=0, right=width, bottom=height)
    return draw_texts(list(place_labels(wanted, [], size=SIZE, area=area)), INK)


def _axes(found: Rescored, frame: Frame) -> list[Layer]:
    width, height = frame.canvas.width, frame.canvas.height
    key = "lines: BCa intervals"
    pooled = {one.pooled for one in found.runs if one.run != PERFECT}
    if len(pooled) > 1:
        key = f"filled: pooled; {key}"
    if any(one.run == PERFECT for one in found.runs):
        key += f"; dashed: {PERFECT} before"
    return draw_texts(
        [
            Label(x=0, y=-24, text=f"{found.measures[1]}, {found.after}", align="left"),
            Label(x=width, y=-24, text=key, align="right"),
            Label(
                x=width, y=height + 34, text=f"{found.measures[0]}, {found.before}", align="right"
            ),
        ],
        MUTED,
    )
