"""Scores with their intervals, in the order of the labels before, as a picture.

Shallow-pooling, the lower plots of figure 6.
"""

from typing import Any, Literal

from heldout.charts.labels import Label, cut
from heldout.charts.layers import (
    INK,
    MUTED,
    Canvas,
    Frame,
    Layer,
    Style,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks
from heldout.preferences.contests import PERFECT
from heldout.preferences.rescoring import Rescored

__all__ = ["BOTH", "Which", "spec", "title"]

Which = Literal["before", "after"]
"""On which labels."""

BOTH: tuple[Which, Which] = ("before", "after")
"""Either labels."""

_ROW, _NAME = 22, 26


def title(found: Rescored, which: Which) -> str:
    """What the picture shows."""
    name = found.before if which == "before" else found.after
    measure = found.measures[which == "after"]
    return (
        f"{measure} on {name} with {found.level:.0%} BCa intervals over {found.queries:,} queries; "
        f"runs in their order on {found.before}"
    )


def spec(found: Rescored, which: Which) -> dict[str, Any]:
    """A row for each run, the best on the labels before first; the perfect run is open."""
    rows = [(one, one.before if which == "before" else one.after) for one in found.runs]
    x = score_span([end for _, mean in rows for end in (mean.value, *(mean.bca or ()))])
    frame = Frame(
        canvas=Canvas(width=420, height=_ROW * len(rows), left=240, right=110, top=44, bottom=36),
        x=x,
        y=(0.0, float(len(rows))),
        x_ticks=score_ticks(x, most=8),
        y_ticks=(),
    )
    layers: list[Layer] = []
    for place, (one, mean) in enumerate(rows):
        at = len(rows) - place - 0.5
        y = frame.place(x[0], at)[1]
        if mean.bca is not None:
            layers.append(draw_line([(end, at) for end in mean.bca], frame, MUTED))
        told = f"{one.run}: {mean.value:.4f}, rank {mean.rank:,}"
        style: Style = "circle" if one.run == PERFECT else "disc"
        right = f"{mean.value:.3f}, rank {mean.rank:,}"
        layers += [
            draw_dots([(mean.value, at, told)], frame, style),
            *draw_texts([Label(x=-10, y=y, text=cut(one.run, _NAME), align="right")], INK),
            *draw_texts([Label(x=frame.canvas.width + 10, y=y, text=right, align="left")], MUTED),
        ]
    name = (
        f"{found.measures[which == 'after']}, {found.before if which == 'before' else found.after}"
    )
    layers += draw_texts([Label(x=0, y=-24, text=name, align="left")], MUTED)
    return join_layers(frame, layers)
