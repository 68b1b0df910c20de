"""Filled boxes in a chart: bars, parts of bars, cells."""

from heldout.charts.layers import Frame, Layer

__all__ = ["LINK", "RULE", "draw_box"]

RULE, LINK = "#000003", "#000005"
"""Names of colours, as in `svg.COLOURS`."""


def draw_box(
    corners: tuple[float, float, float, float], frame: Frame, colour: str, description: str
) -> Layer:
    """A filled box with its tooltip.

    Args:
        corners: left, lower, right and upper end, in values of the axes.
        frame: the chart's.
        colour: one of `svg.COLOURS`.
        description: what it shows.
    """
    left, bottom = frame.place(corners[0], corners[1])
    right, top = frame.place(corners[2], corners[3])
    mark = {"type": "rect", "x": left, "x2": right, "y": top, "y2": bottom, "fill": colour}
    return {
        "data": {"values": [{"label": description}]},
        "mark": mark,
        "encoding": {"description": {"field": "label"}},
    }
