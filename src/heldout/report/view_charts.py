"""Views side by side as a picture: which ranks named runs have on each."""

from typing import Any

from heldout.charts.boxes import RULE, draw_box
from heldout.charts.labels import Label, cut
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
from heldout.validity.views import NamedRanks, Views

__all__ = ["spec", "title"]

_NAME = 30
_WIDTH = 560
_ROW, _GAP, _TOP = 26, 20, 44
_LETTER = 7.0
_LEAST = 0.01
_SHADES = ((0.5, INK), (0.2, MUTED), (0.05, RULE), (_LEAST, "#000004"))
"""From which share of trials a cell has which grey."""


def title(result: Views) -> str:
    """What the picture shows."""
    return (
        f"How often {', '.join(result.named)} have each rank on "
        f"{', '.join(result.stability)} when the queries of each view are resampled"
    )


def spec(result: Views) -> dict[str, Any]:
    """Figure 4: for each named run a row for each view, a cell for each rank, dark where often.

    A mark stands at the expected rank.

    Args:
        result: with scores by query on at least one view.

    Source: msmarco-benchmarking, figure 4.
    """
    last = max(
        rank
        for one in result.ranks
        for rank, share in enumerate(one.probability, start=1)
        if share >= _LEAST
    )
    count, groups = len(result.ranks), len(result.named)
    height = _ROW * count + _GAP * groups
    names = [cut(view, _NAME) for view in result.stability]
    heads = [cut(name, _NAME) for name in result.named]
    canvas = Canvas(
        width=_WIDTH,
        height=height,
        left=24 + round(max(map(len, (*names, *heads))) * _LETTER),
        right=24,
        top=_TOP,
        bottom=48,
    )
    step = next((step for step in (1, 2, 5, 10, 20, 50, 100) if last / step <= _WIDTH / 40), 200)
    frame = Frame(
        canvas=canvas,
        x=(0.5, last + 0.5),
        y=(0.0, float(height)),
        x_ticks=tuple(
            Tick(at=rank, label=f"{rank}")
            for rank in range(1, last + 1)
            if rank % step == 0 or rank == 1
        ),
        y_ticks=(),
    )
    layers: list[Layer] = []
    heads_at, names_at = [], []
    y = float(height)
    for place, one in enumerate(result.ranks):
        if place % len(names) == 0:
            heads_at.append(_left(heads[place // len(names)], y - _GAP / 2, frame))
            y -= _GAP
        layers += _row(one, y, frame)
        names_at.append(_left(names[place % len(names)], y - _ROW / 2, frame))
        y -= _ROW
    layers += [*draw_texts(heads_at, INK), *draw_texts(names_at, MUTED)]
    axis = Label(x=canvas.width, y=height + 32, text="rank", align="right")
    return join_layers(frame, [*layers, *draw_texts([axis], MUTED), *_key(frame)])


def _row(one: NamedRanks, y: float, frame: Frame) -> list[Layer]:
    """The cells of a run on a view, and its expected rank."""
    top, bottom = y - 3, y - _ROW + 3
    layers = []
    for rank, share in enumerate(one.probability, start=1):
        colour = next((colour for least, colour in _SHADES if share >= least), None)
        if colour is not None:
            told = f"{one.system}, {one.view}: rank {rank} in {share:.1%}"
            layers.append(draw_box((rank - 0.5, bottom, rank + 0.5, top), frame, colour, told))
    ends = [(one.expected, bottom - 3), (one.expected, top + 3)]
    return [*layers, draw_line(ends, frame, RECORD)]


def _key(frame: Frame) -> list[Layer]:
    """What shades and marks mean, above the plot; places are pixels from its top left corner."""
    layers: list[Layer] = []
    x = 0.0
    for least, colour in _SHADES:
        text = f"from {least:.0%}" if layers else f"from {least:.0%} of trials"
        layers.append(draw_box(_at(x, -30, x + 12, -18, frame), frame, colour, text))
        layers += draw_texts([Label(x=x + 17, y=-24, text=text, align="left")], INK)
        x += 34 + len(text) * _LETTER
    left, bottom, _, top = _at(x, -32, x, -16, frame)
    layers.append(draw_line([(left, bottom), (left, top)], frame, RECORD))
    return [*layers, *draw_texts([Label(x=x + 8, y=-24, text="expected", align="left")], INK)]


def _at(
    left: float, top: float, right: float, bottom: float, frame: Frame
) -> tuple[float, float, float, float]:
    """Pixels as values of the axes: left, lower, right and upper end."""
    scale = (frame.x[1] - frame.x[0]) / frame.canvas.width
    height = frame.canvas.height
    return (
        frame.x[0] + left * scale,
        height - bottom,
        frame.x[0] + right * scale,
        height - top,
    )


def _left(text: str, y: float, frame: Frame) -> Label:
    return Label(x=-10, y=frame.canvas.height - y, text=text, align="right")
