"""A board by team or institution as a picture: who climbs on the public view alone."""

from collections.abc import Sequence
from typing import Any

from heldout.analyses.teams import Teams
from heldout.charts.labels import Label, cut
from heldout.charts.layers import (
    INK,
    MUTED,
    Canvas,
    Frame,
    Layer,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks
from heldout.validity.team_slopes import Slope

__all__ = ["spec", "title"]

_NAME, _SHOWN = 34, 40
_ROW, _WIDTH, _LETTER = 26, 460, 7.0

Row = tuple[str, int, Slope]


def title(result: Teams) -> str:
    """What the picture shows."""
    return (
        f"Slope of ({result.reserve} - {result.public}) from one submission to the next, by "
        f"{result.by}; below 0 where the told score rises faster"
    )


def spec(result: Teams) -> dict[str, Any]:
    """The slope of each group, alone and with all at once, those with most submissions first.

    Args:
        result: with at least one slope; of many the first 40 are drawn.
    """
    known = [
        (group.name, group.submissions, group.slope)
        for group in result.groups
        if group.slope is not None
    ]
    rows = known[:_SHOWN]
    texts = [f"{cut(name, _NAME)} ({count:,})" for name, count, _ in rows]
    x = score_span([0.0, *(end for _, _, slope in rows for end in _ends(slope))])
    canvas = Canvas(
        width=_WIDTH,
        height=_ROW * len(rows),
        left=24 + round(max(map(len, texts)) * _LETTER),
        right=24,
        top=34,
        bottom=58,
    )
    frame = Frame(
        canvas=canvas,
        x=x,
        y=(0.0, float(len(rows))),
        x_ticks=score_ticks(x, most=6),
        y_ticks=(),
    )
    heights = [len(rows) - place - 0.5 for place in range(len(rows))]
    names = [
        Label(x=-10, y=frame.place(0, y)[1], text=text, align="right")
        for text, y in zip(texts, heights, strict=True)
    ]
    spots = [
        (slope.per_submission, y, f"{name}: {slope.per_submission:+.5f} per submission")
        for (name, _, slope), y in zip(rows, heights, strict=True)
    ]
    layers = [
        draw_line([(0.0, 0.0), (0.0, frame.y[1])], frame, MUTED, dash=[4, 4]),
        *_intervals(rows, heights, frame),
        draw_dots(spots, frame, "disc"),
        *draw_texts(names, INK),
        *draw_texts(_words(result, frame, hidden=len(known) - len(rows)), MUTED),
    ]
    return join_layers(frame, layers)


def _ends(slope: Slope) -> list[float]:
    ends = (slope.per_submission, slope.low, slope.high, slope.low_all, slope.high_all)
    return [end for end in ends if end is not None]


def _intervals(rows: Sequence[Row], heights: Sequence[float], frame: Frame) -> list[Layer]:
    return [
        draw_line([(low, y), (high, y)], frame, colour, dash=dash)
        for (_, _, slope), y in zip(rows, heights, strict=True)
        for low, high, colour, dash in (
            (slope.low_all, slope.high_all, MUTED, [1, 0]),
            (slope.low, slope.high, INK, ()),
        )
        if low is not None and high is not None
    ]


def _words(result: Teams, frame: Frame, *, hidden: int) -> list[Label]:
    canvas = frame.canvas
    intervals = (
        f"{result.level:.0%} alone, thin: all at once"
        if result.trials
        else "means alone, no intervals"
    )
    more = f"; {hidden:,} more not drawn" if hidden else ""
    apart = f"{result.reserve} - {result.public}"
    left = 10 - canvas.left
    return [
        Label(x=left, y=-18, text=f"{result.by} (submissions{more})", align="left"),
        Label(x=canvas.width, y=-18, text=intervals, align="right"),
        Label(
            x=canvas.width,
            y=canvas.height + 38,
            text=f"{apart} per submission; left of 0 {result.public} rises faster",
            align="right",
        ),
    ]
