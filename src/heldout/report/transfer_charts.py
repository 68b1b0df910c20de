"""How alike collections rank, as a picture: numbers above the diagonal, shades below."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.charts.boxes import RULE, draw_box
from heldout.charts.labels import Label, cut, text_width
from heldout.charts.layers import (
    INK,
    MUTED,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_texts,
    join_layers,
)
from heldout.validity.transfer import Transfer

__all__ = ["spec", "title"]

_NAME = 24
_CELL, _LETTER = 40, 7.5
_HAIR = "#000004"
_SHADES = ((0.8, INK), (0.6, MUTED), (0.4, RULE), (-1.0, _HAIR))
"""From which tau a cell has which grey."""


def title(transfer: Transfer) -> str:
    """What the picture shows."""
    return f"Kendall's tau-b between every two of {len(transfer.views)} collections"


def spec(transfer: Transfer) -> dict[str, Any]:
    """A row and a column for each collection, the one most like all others first.

    Args:
        transfer: at least one pair.
    """
    order = _order(transfer)
    names = [cut(transfer.views[at], _NAME) for at in order]
    size = _CELL * len(names)
    left = 40 + round(max(map(len, names)) * _LETTER)
    canvas = Canvas(width=size, height=size, left=left, right=24, top=68, bottom=16)
    frame = Frame(
        canvas=canvas,
        x=(0.0, float(len(names))),
        y=(0.0, float(len(names))),
        x_ticks=(),
        y_ticks=(),
    )
    taus = _matrix(transfer)[np.ix_(order, order)]
    boxes, numbers = [], []
    for row in range(len(names)):
        for column in range(len(names)):
            tau = taus[row, column]
            told = f"{names[row]}, {names[column]}: {_say(tau)}"
            if row > column and not np.isnan(tau):
                boxes.append(_box(row, column, tau, told, frame))
            elif row < column:
                numbers.append(_middle((column + 0.5) * _CELL, (row + 0.5) * _CELL, _say(tau)))
    rows = [
        Label(x=-10, y=(place + 0.5) * _CELL, text=f"{name} · {place + 1}", align="right")
        for place, name in enumerate(names)
    ]
    heads = [_middle((place + 0.5) * _CELL, -14, f"{place + 1}") for place in range(len(names))]
    layers = [*boxes, *draw_texts([*numbers, *rows], INK), *draw_texts(heads, MUTED)]
    return join_layers(frame, [*layers, *_key(frame)])


def _matrix(transfer: Transfer) -> NDArray[np.float64]:
    """Kendall's tau by view and view; NaN where it is undefined."""
    places = {view: at for at, view in enumerate(transfer.views)}
    taus = np.full((len(places), len(places)), np.nan)
    for pair in transfer.pairs:
        if pair.tau is not None:
            first, second = places[pair.first], places[pair.second]
            taus[first, second] = taus[second, first] = pair.tau
    return taus


def _order(transfer: Transfer) -> list[int]:
    """Collections by their mean tau with the others, the highest first; those without one last."""
    taus = _matrix(transfer)
    means = [float(np.mean(row[~np.isnan(row)])) if (~np.isnan(row)).any() else -2 for row in taus]
    return sorted(range(len(means)), key=lambda at: (-means[at], at))


def _say(tau: float) -> str:
    """Two digits; nothing before the point, since a tau is at most 1."""
    return "-" if np.isnan(tau) else f"{tau:.2f}".replace("0.", ".", 1)


def _box(row: int, column: int, tau: float, told: str, frame: Frame) -> Layer:
    colour = next(colour for least, colour in _SHADES if tau >= least)
    top = frame.y[1] - row
    edge = 0.04
    corners = (column + edge, top - 1 + edge, column + 1 - edge, top - edge)
    return draw_box(corners, frame, colour, told)


def _middle(x: float, y: float, text: str) -> Label:
    """A text with its middle at a place."""
    return Label(x=x + text_width(text, SIZE) / 2, y=y, text=text, align="right")


def _key(frame: Frame) -> list[Layer]:
    """What shades mean, above the plot, from its left edge on."""
    layers: list[Layer] = []
    x = 10.0 - frame.canvas.left
    texts = ["tau-b from .8", "from .6", "from .4", "below"]
    for (_, colour), text in zip(_SHADES, texts, strict=True):
        scale = frame.y[1] / frame.canvas.height
        top = frame.y[1] + 50 * scale
        corners = (x * scale, top - 12 * scale, (x + 12) * scale, top)
        layers.append(draw_box(corners, frame, colour, text))
        layers += draw_texts([Label(x=x + 17, y=-44, text=text, align="left")], INK)
        x += 34 + len(text) * _LETTER
    return layers
