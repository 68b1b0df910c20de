"""Pictures of outcomes: Success@j of two runs, and bars of the outcomes of many pairs."""

from collections.abc import Sequence
from itertools import groupby
from math import log10
from typing import Any

from heldout.charts.boxes import LINK, RULE, draw_box
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
from heldout.charts.ticks import Tick, log_ticks, score_span, score_ticks
from heldout.validity.outcomes import Outcomes
from heldout.validity.success_curves import SuccessCurves
from heldout.validity.verdicts import Judged

__all__ = ["MOST_BARS", "bars_spec", "bars_title", "curves_spec", "curves_title"]

MOST_BARS = 40
"""Pairs that a picture of bars shows at most."""

_HAIR = "#000004"
_POINTS = 120
_FOOT = 0.02
_NAME = 34
_BAR = 0.32
_ROW = 26


def curves_title(curves: SuccessCurves) -> str:
    """What the picture of two curves shows."""
    return (
        f"Share of queries that {curves.a.name} (A) and {curves.b.name} (B) answer among their "
        f"first j documents, for j up to {len(curves.success_a)}, with {curves.band} intervals"
    )


def curves_spec(curves: SuccessCurves) -> dict[str, Any]:
    """Success@j of both runs over the logarithm of j, as steps, from 1 to k.

    The band is A's curve plus the interval of B - A, so it lies around B's curve; like it, it ends
    at 0 and at 1. A bar at the foot stands at the depths where A's curve is outside of it: there
    the two are told apart.
    """
    k = len(curves.success_a)
    x = (0.0, log10(max(k, 2)))
    ends = [
        _cut_share(a + end)
        for row in (curves.low, curves.high)
        for a, end in zip(curves.success_a, row, strict=True)
        if end is not None
    ]
    y = score_span([*curves.success_a, *curves.success_b, *ends])
    frame = Frame(
        canvas=Canvas(width=620, height=320, left=52, right=20, top=98, bottom=48),
        x=x,
        y=y,
        x_ticks=log_ticks(x, most=8),
        y_ticks=tuple(tick for tick in score_ticks(y, most=8) if 0 <= tick.at <= 1),
    )
    depths = sorted(
        {round(10 ** (x[1] * at / _POINTS)) for at in range(_POINTS + 1)} & {*range(1, k + 1)}
    )
    apart = _apart(curves, depths, frame)
    words = (
        (f"A  {cut(curves.a.name, 60)}", INK),
        (f"B  {cut(curves.b.name, 60)}", RECORD),
        (f"band: A + {curves.level:.0%} interval of B - A, {_BANDS[curves.band]}", MUTED),
        (
            "bar at the foot: A lies outside the band, the two are told apart"
            if apart
            else "A lies in the band at every depth: they are told apart at none",
            MUTED,
        ),
    )
    return join_layers(
        frame,
        [
            *_band(curves, depths, frame),
            *apart,
            draw_line(_steps(curves.success_a, depths), frame, INK),
            draw_line(_steps(curves.success_b, depths), frame, RECORD),
            *(
                layer
                for row, (text, colour) in enumerate(words)
                for layer in draw_texts([_word(0, 17 * row - 82, text)], colour)
            ),
            *draw_texts([_word(-48, -14, "Success@j")], MUTED),
            *draw_texts([Label(x=620, y=356, text="j", align="right")], MUTED),
        ],
    )


_BANDS = {"simultaneous": "all depths at once", "pointwise": "each depth by itself"}


def _cut_share(end: float) -> float:
    """The end of a band of shares, none of which is below 0 or above 1."""
    return min(max(end, 0.0), 1.0)


def _word(x: float, y: float, text: str) -> Label:
    return Label(x=x, y=y, text=text, align="left")


def _ends(depths: Sequence[int]) -> list[tuple[int, float, float]]:
    """Each depth with the logarithms where its step begins and ends; the last has no width."""
    nexts = [*depths[1:], max(2, depths[-1])]
    return [(depth, log10(depth), log10(end)) for depth, end in zip(depths, nexts, strict=True)]


def _steps(shares: Sequence[float], depths: Sequence[int]) -> list[tuple[float, float]]:
    return [(at, shares[depth - 1]) for depth, left, right in _ends(depths) for at in (left, right)]


def _band(curves: SuccessCurves, depths: Sequence[int], frame: Frame) -> list[Layer]:
    """A box for each stretch of depths where nothing changes."""
    boxes = []
    rows = (curves.success_a, curves.success_b, curves.low, curves.high)
    stretches = groupby(_ends(depths), key=lambda step: tuple(row[step[0] - 1] for row in rows))
    for (a, b, low, high), steps in stretches:
        if a is None or b is None or low is None or high is None:
            continue
        stretch = [*steps]
        (depth, left, _), (_, _, right) = stretch[0], stretch[-1]
        said = f"j = {depth}: A {a:.3f}, B {b:.3f}, B - A from {low:+.3f} to {high:+.3f}"
        corners = (left, _cut_share(a + low), right, _cut_share(a + high))
        boxes.append(draw_box(corners, frame, _HAIR, said))
    return boxes


def _apart(curves: SuccessCurves, depths: Sequence[int], frame: Frame) -> list[Layer]:
    """Boxes at the foot where the interval leaves out 0, in the colour of the better one."""
    foot = frame.y[0], frame.y[0] + (frame.y[1] - frame.y[0]) * _FOOT
    boxes = []
    for depth, left, right in _ends(depths):
        low, high = curves.low[depth - 1], curves.high[depth - 1]
        if low is None or high is None or low <= 0 <= high:
            continue
        name, colour = ("B", RECORD) if low > 0 else ("A", INK)
        start = min(left, frame.x[1] * (1 - 1 / _POINTS))  # the last depth has a width too
        corners = (start, foot[0], max(right, start + frame.x[1] / _POINTS), foot[1])
        boxes.append(draw_box(corners, frame, colour, f"j = {depth}: {name} finds more"))
    return boxes


def bars_title(result: Outcomes) -> str:
    """What the picture of bars shows."""
    shown = min(MOST_BARS, len(result.pairs))
    which = f"{shown} of {len(result.pairs):,} pairs" if shown < len(result.pairs) else "each pair"
    return f"Of {result.queries:,} queries those found by both runs, by one and by neither: {which}"


def bars_spec(result: Outcomes) -> dict[str, Any]:
    """A bar for each pair in shares of queries: A alone, both, neither, B alone.

    Of many pairs those are shown whose runs find the most different numbers of queries.
    """
    order = sorted(result.pairs, key=lambda one: -abs(one.pair.b_only - one.pair.a_only))
    shown = {id(one) for one in order[:MOST_BARS]}
    rows = [one for one in result.pairs if id(one) in shown]
    frame = Frame(
        canvas=Canvas(width=420, height=_ROW * len(rows), left=330, right=24, top=40, bottom=32),
        x=(0.0, 1.0),
        y=(0.0, float(len(rows))),
        x_ticks=tuple(Tick(at=part / 4, label=f"{part * 25}%") for part in range(5)),
        y_ticks=(Tick(at=0.0, label=""), Tick(at=float(len(rows)), label="")),
    )
    layers: list[Layer] = [draw_line([(0.0, 0.0), (1.0, 0.0)], frame, RULE)]
    for row, one in enumerate(rows):
        layers += _bar(one, len(rows) - row - 0.5, result.queries, frame)
    hidden = len(result.pairs) - len(rows)
    told = f"{len(rows)} of {len(result.pairs):,} pairs" if hidden else ""
    count = [Label(x=-10, y=-22, text=told, align="right")] if told else []
    return join_layers(frame, [*layers, *_key(), *draw_texts(count, MUTED)])


_PARTS = (("A alone", LINK), ("both", RULE), ("neither", _HAIR), ("B alone", RECORD))


def _bar(one: Judged, middle: float, queries: int, frame: Frame) -> list[Layer]:
    pair = one.pair
    left, layers = 0.0, []
    counts = (pair.a_only, pair.both, pair.neither, pair.b_only)
    for (name, colour), count in zip(_PARTS, counts, strict=True):
        right = left + count / queries
        corners = (left, middle - _BAR, right, middle + _BAR)
        layers.append(draw_box(corners, frame, colour, f"{name}: {count:,.6g} of {queries:,}"))
        left = right
    mark = {"A": "◂ ", "B": "▸ "}.get(one.verdict.better or "", "")
    text = f"{mark}{cut(pair.a.name, _NAME // 2)} / {cut(pair.b.name, _NAME // 2)}"
    label = Label(x=-10, y=frame.place(0, middle)[1], text=text, align="right")
    return [*layers, *draw_texts([label], INK)]


def _key() -> list[Layer]:
    layers: list[Layer] = []
    for at, (name, colour) in enumerate(_PARTS):
        own = MUTED if colour == _HAIR else colour
        layers += draw_texts([_word(at * 100, -22, name)], own)
    return layers
