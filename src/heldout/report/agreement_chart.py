"""Agreement of each two of many, as a picture: names down and across, dark where they agree."""

from collections.abc import Mapping, Sequence
from typing import Any

from heldout.charts.boxes import RULE, draw_box
from heldout.charts.labels import Label, cut, text_width
from heldout.charts.layers import INK, MUTED, SIZE, Canvas, Frame, Layer, draw_texts, join_layers

__all__ = ["matrix_spec"]

_WIDTH = 600
_LEAST_CELL, _MOST_CELL = 5, 30
_NAMED = 13
_NAME = 28
_KEY_WIDTH = 420
_TOP = 56
_SHADES = ((0.8, INK), (0.6, MUTED), (0.4, RULE), (0.2, "#000004"))
"""From which value on a cell has which grey; below the last it is left empty."""


def matrix_spec(
    names: Sequence[str], values: Mapping[tuple[str, str], float | None], what: str
) -> dict[str, Any]:
    """A cell below the diagonal for each two; a cross where nothing is known of them.

    Args:
        names: in order; at least two.
        values: by names, the earlier of the two first; up to 1.
        what: what the values are, for the key.
    """
    count = len(names)
    cell = min(max(_WIDTH / count, _LEAST_CELL), _MOST_CELL)
    shown = [cut(name, _NAME) if cell >= _NAMED else "" for name in names]
    side = round(cell * count)
    canvas = Canvas(
        width=max(side, _KEY_WIDTH),
        height=side,
        left=24 + round(max(text_width(name, SIZE) for name in shown)) + 30,
        right=24,
        top=_TOP,
        bottom=24,
    )
    frame = Frame(
        canvas=canvas,
        x=(0.0, float(canvas.width)),
        y=(float(canvas.height), 0.0),
        x_ticks=(),
        y_ticks=(),
    )
    layers: list[Layer] = []
    unknown: list[Label] = []
    for row, name in enumerate(names):
        for column, other in enumerate(names[:row]):
            value = values.get((other, name))
            corners = (column * cell, (row + 1) * cell - 1, (column + 1) * cell - 1, row * cell)
            colour = None if value is None else _shade(value)
            if colour is not None:
                told = f"{other} and {name}: {what} {value:.3f}"
                layers.append(draw_box(corners, frame, colour, told))
            elif value is None and cell >= _NAMED:
                x = (column + 0.5) * cell - 4
                unknown.append(Label(x=x, y=(row + 0.5) * cell, text="×", align="left"))
    return join_layers(
        frame,
        [*layers, *draw_texts(unknown, MUTED), *_names(shown, cell), *_key(frame, what)],
    )


def _shade(value: float) -> str | None:
    return next((colour for least, colour in _SHADES if value >= least), None)


def _names(shown: Sequence[str], cell: float) -> list[Layer]:
    """Names and numbers down the left, numbers below the columns."""
    step = next((step for step in (1, 5, 10, 20, 50) if step * cell >= 2 * SIZE), 100)
    numbers, names = [], []
    for place, name in enumerate(shown):
        at = (place + 0.5) * cell
        if (place + 1) % step == 0 or place == 0:
            text = f"{place + 1}"
            half = text_width(text, SIZE) / 2
            numbers.append(Label(x=-8, y=at, text=text, align="right"))
            numbers.append(Label(x=at - half, y=len(shown) * cell + 12, text=text, align="left"))
        if name:
            names.append(Label(x=-34, y=at, text=name, align="right"))
    return [*draw_texts(numbers, MUTED), *draw_texts(names, INK)]


def _key(frame: Frame, what: str) -> list[Layer]:
    """What shades mean, above the cells."""
    title = Label(x=0, y=-44, text=what, align="left")
    layers: list[Layer] = draw_texts([title], INK)
    x = 0.0
    for least, colour in _SHADES:
        text = f"from {least:g}"
        layers.append(draw_box((x, -16, x + 12, -28), frame, colour, text))
        layers += draw_texts([Label(x=x + 17, y=-22, text=text, align="left")], INK)
        x += 34 + text_width(text, SIZE)
    return layers
