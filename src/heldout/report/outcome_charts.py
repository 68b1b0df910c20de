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
    """Success@j of both runs over the logarithm of j, as steps.

    The band is A's curve plus the interval of the difference, so it lies around B's curve: B is
    told apart from A at the depths where A's curve leaves the band.
    """
    k = len(curves.success_a)
    x = (0.0, log10(k + 1))
    ends = [
        min(1.0, max(0.0, a + end))
        for row in (curves.low, curves.high)
        for a, end in zip(curves.success_a, row, strict=True)
        if end is not None
    ]
    y = score_span([*curves.success_a, *curves.success_b, *ends])
    frame = Frame(
        canvas=Canvas(width=620, height=320, left=52, right=20, top=64, bottom=48),
        x=x,
        y=y,
        x_ticks=log_ticks(x, most=8),
        y_ticks=score_ticks(y, most=8),
    )
    depths = sorted(
        {round(10 ** (x[1] * at / _POINTS)) for at in range(_POINTS)} & {*range(1, k + 1)}
    )
    band = f"{curves.band} {curves.level:.0%} band of B: where A leaves it, they are told apart"
    return join_layers(
        frame,
        [
            *_band(curves, depths, frame),
            draw_line(_steps(curves.success_a, depths), frame, INK),
            draw_line(_steps(curves.success_b, depths), frame, RECORD),
            *draw_texts([_word(0, -48, f"A  {cut(curves.a.name, 60)}")], INK),
            *draw_texts([_word(0, -31, f"B  {cut(curves.b.name, 60)}")], RECORD),
            *draw_texts([_word(0, -14, band)], MUTED),
            *draw_texts([Label(x=620, y=356, text="j", align="right")], MUTED),
        ],
    )


def _word(x: float, y: float, text: str) -> Label:
    return Label(x=x, y=y, text=text, align="left")


def _ends(depths: Sequence[int]) -> list[tuple[int, float, float]]:
    """Each depth with the logarithms where its step begins and ends."""
    nexts = [*depths[1:], depths[-1] + 1]
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
        corners = (left, max(0.0, a + low), right, min(1.0, a + high))
        boxes.append(draw_box(corners, frame, _HAIR, said))
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
