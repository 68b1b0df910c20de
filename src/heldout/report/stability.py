"""Stability of a ranking as tables, a picture and JSON: ranks under the bootstrap, and ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from heldout.charts.labels import cut
from heldout.charts.layers import INK, MUTED, RECORD, SIZE
from heldout.report.table import Cell, Column, Table
from heldout.validity.ranges import RankRanges
from heldout.validity.stability import Stability

__all__ = ["facts", "spec", "tables", "title", "value"]

_TOP = 5
_SHOWN = 3
_RULE, _HAIR = "#000003", "#000004"
_WIDTH = 600
_LEAST_CELL, _MOST_CELL = 5, 26
_NAMED = 14
_NAME = 28
_LETTER = 7.2
_KEY_WIDTH = 620


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shade:
    """A shade of the heat map: shares from `low` to below `high`."""

    low: float
    high: float
    colour: str


_SHADES = (
    _Shade(low=0.01, high=0.05, colour=_HAIR),
    _Shade(low=0.05, high=0.2, colour=_RULE),
    _Shade(low=0.2, high=0.5, colour=MUTED),
    _Shade(low=0.5, high=2, colour=INK),
)
"""Greys of the page, which turn round in the dark; a smaller share is left empty."""

_TIES = {
    "earlier": "of equal means the earlier in the table gets the better rank",
    "shared": "equal means share the best of their ranks",
}


def facts(stability: Stability, ranges: RankRanges) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who leads, who cannot be told from whom, how stable the top is."""
    first, rest = ranges.systems[0], ranges.lead[1:]
    told = sum(low == high for low, high in zip(ranges.low, ranges.high, strict=True))
    if not rest:
        lead = f"{first}, told apart from all others"
    else:
        named = ", ".join(rest[:_SHOWN])
        more = f" and {len(rest) - _SHOWN:,} more" if len(rest) > _SHOWN else ""
        lead = f"{first}, but {named}{more} can't be told apart from it"
    share = float(stability.rank_probability[0, 0])
    return (
        ("lead", lead),
        ("first", f"{first} in {share:.1%} of {stability.trials:,} resamplings of the queries"),
        ("certain", f"{told:,} of {len(ranges.systems):,} systems have one possible rank"),
    )


def tables(stability: Stability, ranges: RankRanges, *, measure: str = "") -> tuple[Table, ...]:
    """Every system's ranks, and the top of the table of probabilities.

    Args:
        stability: ranks under the bootstrap.
        ranges: of the same table of scores.
        measure: what was measured, for the heading.
    """
    return _rank_table(stability, ranges, measure or "score"), _top_table(stability)


def title(stability: Stability) -> str:
    """What the picture shows."""
    return (
        f"How often each of {len(stability.systems):,} systems has each rank in "
        f"{stability.trials:,} resamplings of the queries, with the range of ranks of each"
    )


def value(stability: Stability, ranges: RankRanges) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "systems": list(stability.systems),
        "scores": list(stability.means),
        "better": stability.better,
        "queries": stability.queries,
        "trials": stability.trials,
        "size": stability.size,
        "ties": stability.ties,
        "tied_trials": stability.tied_trials,
        "expected_rank": stability.expected_rank.tolist(),
        "rank_probability": stability.rank_probability.tolist(),
        "rank_low": list(ranges.low),
        "rank_high": list(ranges.high),
        "lead": list(ranges.lead),
        "level": ranges.level,
        "flips": ranges.flips,
        "test": "sign-flip",
        "correction": "max-t, step-down" if ranges.step_down else "max-t",
        "pairs": ranges.pairs,
        "hypotheses": 2 * ranges.pairs,
        "p_corrected": [[None if isnan(p) else p for p in row] for row in ranges.p.tolist()],
        "why": "null: a system and itself, or equal scores on every query",
        "digest": stability.digest,
    }


def spec(stability: Stability, ranges: RankRanges) -> dict[str, Any]:
    """The heat map of figure 3 with the ranges in it.

    A row for each system, a column for each rank: the darker a cell, the more trials. The range of
    ranks that may be believed is a line along the row; its ends alone where there are many rows.

    Args:
        stability: ranks under the bootstrap.
        ranges: of the same table of scores.

    Source: msmarco-benchmarking, figure 3.
    """
    n = len(stability.systems)
    cell = min(max(_WIDTH / n, _LEAST_CELL), _MOST_CELL)
    names = [cut(name, _NAME) if cell >= _NAMED else "" for name in stability.systems]
    step = next((step for step in (1, 5, 10, 20, 50) if step * cell >= 2 * SIZE), 100)
    ticks = [rank for rank in range(1, n + 1) if rank % step == 0 or rank == 1]
    named = [(-40, (row + 0.5) * cell, name) for row, name in enumerate(names) if name]
    layers = [
        *(_rectangles(_cells(stability, cell, shade), shade.colour) for shade in _SHADES),
        _rectangles(_marks(ranges, cell), RECORD),
        _texts([((rank - 0.5) * cell, -12, f"{rank}") for rank in ticks], MUTED, "center"),
        _texts([(-12, (rank - 0.5) * cell, f"{rank}") for rank in ticks], MUTED, "right"),
        _texts(named, INK, "right"),
        *_key(ranges),
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": max(n * cell, _KEY_WIDTH),
        "height": n * cell,
        "autosize": {"type": "none"},
        "padding": {
            "left": 44 + max(len(name) for name in names) * _LETTER,
            "right": 14,
            "top": 60,
            "bottom": 12,
        },
        "background": None,
        "config": {"view": {"stroke": None, "fill": None}},
        "layer": [layer for layer in layers if layer["data"]["values"]],
    }


def _key(ranges: RankRanges) -> list[dict[str, Any]]:
    """What shades and lines mean, above the ranks."""
    layers: list[dict[str, Any]] = []
    x = 0.0
    for shade in reversed(_SHADES):
        layers.append(_rectangles([_box(x, -50, x + 12, -38)], shade.colour))
        text = f"from {shade.low:.0%}" if layers else f"from {shade.low:.0%} of trials"
        layers.append(_texts([(x + 17, -44, text)], INK, "left"))
        x += 30 + len(text) * _LETTER
    layers.append(_rectangles([_box(x, -45, x + 20, -43)], RECORD))
    text = f"range, {ranges.level:.0%} for all at once"
    layers.append(_texts([(x + 25, -44, text)], INK, "left"))
    return layers


def _marks(ranges: RankRanges, cell: float) -> list[dict[str, float]]:
    """The ranges: a line along the lower edge of each row, or its two ends where rows are low."""
    thick = max(1.0, cell / 10)
    marks = []
    for row, (low, high) in enumerate(zip(ranges.low, ranges.high, strict=True), start=1):
        start, end, below = (low - 1) * cell, high * cell, row * cell
        if cell >= _NAMED:
            marks.append(_box(start, below - thick, end, below))
        else:
            marks.append(_box(start, below - cell, start + 2, below))
            marks.append(_box(end - 2, below - cell, end, below))
    return marks


def _cells(stability: Stability, cell: float, shade: _Shade) -> list[dict[str, float]]:
    """The cells of one shade, a little apart from those of the next row."""
    shares = stability.rank_probability
    places = np.argwhere((shares >= shade.low) & (shares < shade.high)).tolist()
    gap = max(1.0, cell / 10)
    return [
        _box(column * cell, row * cell, (column + 1) * cell, (row + 1) * cell - gap)
        for row, column in places
    ]


def _box(x: float, y: float, x2: float, y2: float) -> dict[str, float]:
    return {"x": x, "y": y, "x2": x2, "y2": y2}


def _rectangles(boxes: Sequence[dict[str, float]], colour: str) -> dict[str, Any]:
    return {
        "data": {"values": list(boxes)},
        "mark": {"type": "rect", "aria": False, "fill": colour},
        "encoding": {
            "x": _pixels("x"),
            "y": _pixels("y"),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
        },
    }


def _texts(places: Sequence[tuple[float, float, str]], colour: str, align: str) -> dict[str, Any]:
    mark = {"type": "text", "aria": False, "baseline": "middle", "fontSize": SIZE}
    return {
        "data": {"values": [{"x": x, "y": y, "text": text} for x, y, text in places]},
        "mark": mark | {"align": align, "fill": colour},
        "encoding": {"x": _pixels("x"), "y": _pixels("y"), "text": {"field": "text"}},
    }


def _pixels(field: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "scale": None, "axis": None}


def _rank_table(stability: Stability, ranges: RankRanges, measure: str) -> Table:
    own = stability.rank_probability.diagonal().tolist()
    rows: list[tuple[Cell, ...]] = [
        (rank, _range(low, high), name, mean, expected, share)
        for rank, (low, high, name, mean, expected, share) in enumerate(
            zip(
                ranges.low,
                ranges.high,
                stability.systems,
                stability.means,
                stability.expected_rank.tolist(),
                own,
                strict=True,
            ),
            start=1,
        )
    ]
    return Table(
        title=f"Ranks of {len(rows):,} systems on {stability.queries:,} queries",
        columns=(
            Column(name="rank", form="count"),
            Column(name="range"),
            Column(name="system"),
            Column(name=measure, form="score"),
            Column(name="expected rank", form="score", decimals=1),
            Column(name="at this rank", form="share", decimals=3),
        ),
        rows=tuple(rows),
        notes=(*_range_notes(ranges), *_trial_notes(stability)),
    )


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}–{high}"


def _range_notes(ranges: RankRanges) -> list[str]:
    n = len(ranges.systems)
    untested = n * (n - 1) // 2 - ranges.pairs
    steps = "step-down" if ranges.step_down else "single step"
    notes = [
        (
            f"range: from 1 + systems significantly better to {n} − systems significantly worse;"
            f" all ranges hold together in {ranges.level:.0%} of samples of queries; those that"
            f" reach 1 are the lead group ({len(ranges.lead)})"
        ),
        (
            f"test: paired sign flips, {ranges.flips:,} drawn, max-t ({steps}) over one family of"
            f" {2 * ranges.pairs:,} hypotheses: {ranges.pairs:,} pairs in both directions"
        ),
    ]
    if untested:
        have = "1 pair has" if untested == 1 else f"{untested:,} pairs have"
        notes.append(f"{have} equal scores on every query: no test, never told apart")
    return notes


def _trial_notes(stability: Stability) -> list[str]:
    tied = f"{stability.tied_trials:,} of {stability.trials:,} trials had equal means"
    return [
        (
            f"expected rank and shares: {stability.trials:,} trials of {stability.size:,} queries"
            f" drawn with replacement; {_TIES[stability.ties]}; {tied}"
        ),
        "shares describe and are no confidence statement: for that read the ranges",
    ]


def _top_table(stability: Stability) -> Table:
    top = min(_TOP, len(stability.systems))
    rows = [
        (name, *shares[:top])
        for name, shares in zip(
            stability.systems[:top], stability.rank_probability.tolist(), strict=False
        )
    ]
    return Table(
        title=f"Share of trials in which each of the first {top} has rank 1 to {top}",
        columns=(
            Column(name="system"),
            *(Column(name=f"{rank}", form="share", decimals=3) for rank in range(1, top + 1)),
        ),
        rows=tuple(rows),
        notes=(f"{stability.trials:,} trials, as above",),
    )
