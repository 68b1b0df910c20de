"""How large pools are, as a table, pictures and JSON (shallow-pooling, figures 3 and 4)."""

from collections.abc import Mapping
from typing import Any

from heldout.answers.table import Column, Table
from heldout.charts.boxes import LINK, RULE, draw_box
from heldout.charts.labels import Label
from heldout.charts.layers import MUTED, Canvas, Frame, Layer, draw_line, draw_texts, join_layers
from heldout.charts.ticks import Tick, score_ticks
from heldout.preferences.pools import PoolSizes

__all__ = ["histogram", "table", "value"]

_MOST_TICKS = 20
_BAR = 0.4


def table(found: Mapping[str, PoolSizes]) -> Table:
    """Sizes of each set of pools.

    Args:
        found: what is pooled -> its sizes.
    """
    return Table(
        title="Sizes of pools",
        columns=(
            Column(name="pools"),
            Column(name="queries", form="count"),
            Column(name="mean", form="score", decimals=2),
            Column(name="median", form="score", decimals=1),
            Column(name="of one passage", form="count"),
            Column(name="pairs", form="count"),
        ),
        rows=tuple(
            (name, one.queries, one.mean, one.median, one.single, one.pairs)
            for name, one in found.items()
        ),
        notes=("A pool of one passage leaves nothing to judge.",),
    )


def histogram(found: PoolSizes) -> dict[str, Any]:
    """Queries by the size of their pools; at least one pool."""
    largest = max(found.histogram)
    most = float(max(found.histogram.values()))
    frame = Frame(
        canvas=Canvas(width=600, height=240, left=56, right=24, top=40, bottom=56),
        x=(0.5, largest + 0.5),
        y=(0.0, most * 1.05),
        x_ticks=_size_ticks(largest),
        y_ticks=_whole_ticks(most * 1.05),
    )
    layers: list[Layer] = [draw_line([(0.5, 0.0), (largest + 0.5, 0.0)], frame, RULE)]
    for size, queries in found.histogram.items():
        corners = (size - _BAR, 0.0, size + _BAR, float(queries))
        layers.append(draw_box(corners, frame, LINK, f"{size:,} passages: {queries:,} queries"))
    canvas = frame.canvas
    names = [
        Label(x=-canvas.left, y=-22, text="queries", align="left"),
        Label(x=canvas.width, y=canvas.height + 42, text="passages in the pool", align="right"),
    ]
    return join_layers(frame, [*layers, *draw_texts(names, MUTED)])


def value(found: Mapping[str, PoolSizes]) -> dict[str, Any]:
    """For JSON."""
    return {
        name: {
            "queries": one.queries,
            "mean": one.mean,
            "median": one.median,
            "single": one.single,
            "pairs": one.pairs,
            "histogram": {str(size): count for size, count in one.histogram.items()},
            **({} if one.queries else {"why": "no query was pooled"}),
        }
        for name, one in found.items()
    }


def _size_ticks(largest: int) -> tuple[Tick, ...]:
    """Every size, or every second, fifth, tenth, …, with the first."""
    step = next(
        s * 10**n for n in range(9) for s in (1, 2, 5) if largest <= _MOST_TICKS * s * 10**n
    )
    every = sorted({1, *range(step, largest + 1, step)})
    return tuple(Tick(at=n, label=f"{n:,}") for n in every)


def _whole_ticks(top: float) -> tuple[Tick, ...]:
    """Round whole numbers of queries."""
    ticks = score_ticks((0.0, top), most=6)
    return tuple(
        Tick(at=one.at, label=f"{round(one.at):,}") for one in ticks if one.at == round(one.at)
    )
