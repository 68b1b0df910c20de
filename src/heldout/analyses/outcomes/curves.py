"""Pictures of outcomes: Success@j of two runs, and bars of the outcomes of many pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log10
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from heldout.analyses.outcomes.outcomes import Outcomes
from heldout.analyses.outcomes.verdicts import Judged
from heldout.charts.axes import Tick, log_ticks, score_span, score_ticks
from heldout.charts.labels import Label, cut
from heldout.charts.svg import (
    INK,
    LINK,
    MUTED,
    RECORD,
    RULE,
    Canvas,
    Frame,
    Layer,
    draw_box,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.ids import Digest
from heldout.scoring.first_ranks import FirstRanks, Side
from heldout.stats.resampling import block_size, map_blocks
from heldout.stats.student import crossed_t

# How many queries two runs answer when a reader looks j documents deep, for every j.
#
# Search lengths compare only queries that both runs find, and so depend on which those are. The
# curve of Success@j has every query at every depth, and needs no rank for what is not found.

Band = Literal["simultaneous", "pointwise"]
"""Whether all intervals hold at once, or each by itself."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuccessCurves:
    """Success@j of A and B for j from 1 to k.

    Attributes:
        a: run or group.
        b: the other.
        success_a: share of queries with a relevant document among the first j.
        success_b: the same of B; both are means over seeds.
        low: lower end of the interval of B - A, at least -1; `None` where no query differs at this
            depth.
        high: upper end, at most 1.
        band: what kind of intervals they are.
        method: how they were made, in words.
        level: of the intervals.
        digest: of the table of scores.
    """

    a: Side
    b: Side
    success_a: tuple[float, ...]
    success_b: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    band: Band
    method: str
    level: float
    digest: Digest


def success_curves(
    ranks: FirstRanks,
    a: Side,
    b: Side,
    rng: Generator,
    *,
    band: Band = "simultaneous",
    level: float = 0.95,
    draws: int = 2000,
) -> SuccessCurves:
    """The curves of a pair with intervals of their difference.

    Args:
        ranks: positions of all runs.
        a: a run or a group of seeds.
        b: another.
        rng: where draws come from; used for simultaneous intervals of two runs.
        band: which intervals.
        level: of the intervals.
        draws: samples of the queries for simultaneous intervals, at least 1.

    Returns:
        For two runs each error is that of the paired difference, and the factor is Student's, or
        the quantile of the largest studentised deviation over all depths in bootstrap samples.
        For groups of seeds the intervals are those of the crossed t test, with Bonferroni's
        correction over the depths where they shall hold at once.
    """
    first, second = ranks.rows(a.runs), ranks.rows(b.runs)
    curves = _curve(first, ranks.k), _curve(second, ranks.k)
    if len(first) == len(second) == 1:
        rows = _differences(first[0], second[0], ranks.k)
        low, high, method = _runs_band(rows, rng, band=band, level=level, draws=draws)
    else:
        low, high, method = _groups_band(first, second, k=ranks.k, band=band, level=level)
    return SuccessCurves(
        a=a,
        b=b,
        success_a=curves[0],
        success_b=curves[1],
        # No difference of shares lies beyond -1 or 1, so this holds the truth as often
        low=tuple(None if end is None else max(end, -1.0) for end in low),
        high=tuple(None if end is None else min(end, 1.0) for end in high),
        band=band,
        method=method,
        level=level,
        digest=ranks.digest,
    )


Ends = tuple[float | None, ...]


def _curve(rows: Integers, k: int) -> tuple[float, ...]:
    at = np.bincount(rows.ravel(), minlength=k + 1)[1:]
    return tuple((np.cumsum(at) / rows.size).tolist())


def _differences(first: Integers, second: Integers, k: int) -> Floats:
    """For each query and depth whether B alone (1) or A alone (-1) has found: (queries, k)."""
    depths = np.arange(1, k + 1)
    found_a, found_b = ((row[:, None] > 0) & (row[:, None] <= depths) for row in (first, second))
    return found_b.astype(np.float64) - found_a


def _runs_band(
    rows: Floats, rng: Generator, *, band: Band, level: float, draws: int
) -> tuple[Ends, Ends, str]:
    size = len(rows)
    mean = rows.mean(axis=0)
    varies = np.ptp(rows, axis=0) > 0
    error = (
        np.where(varies, rows.std(axis=0, ddof=1) / np.sqrt(size), 0.0) if size > 1 else mean * 0
    )
    if not error.any():
        none = (None,) * len(mean)
        return none, none, "no depth where queries differ"
    if band == "pointwise":
        factor = float(stdtrit(size - 1, (1 + level) / 2))
        method = "Student's t, at each depth by itself"
    else:
        factor = _largest_deviation(rows[:, varies], error[varies], rng, level=level, draws=draws)
        method = f"the largest deviation over all depths in {draws:,} bootstrap samples"
    low, high = (
        tuple(
            float(centre + sign * factor * wide) if wide else None
            for centre, wide in zip(mean, error, strict=True)
        )
        for sign in (-1, 1)
    )
    return low, high, method


def _largest_deviation(
    rows: Floats, error: Floats, rng: Generator, *, level: float, draws: int
) -> float:
    """The quantile of the largest studentised deviation of bootstrapped means."""
    # Queries with equal rows are drawn together
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    deviations = map_blocks(
        _deviate, kinds, counts, error, rng=rng, draws=draws, size=block_size(len(rows))
    )
    return float(np.quantile(np.concatenate(deviations), level, method="higher"))


def _deviate(kinds: Floats, counts: Integers, error: Floats, rng: Generator, draws: int) -> Floats:
    size = int(counts.sum())
    drawn = rng.multinomial(size, counts / size, size=draws)
    means = drawn @ kinds / size
    largest: Floats = (np.abs(means - counts @ kinds / size) / error).max(axis=1)
    return largest


def _groups_band(
    first: Integers, second: Integers, *, k: int, band: Band, level: float
) -> tuple[Ends, Ends, str]:
    each = level if band == "pointwise" else 1 - (1 - level) / k
    low: list[float | None] = []
    high: list[float | None] = []
    for depth in range(1, k + 1):
        found_a, found_b = ((row > 0) & (row <= depth) for row in (first, second))
        totals = found_b[None, :, :].astype(np.float64) - found_a[:, None, :]
        test = crossed_t(totals, np.ones(totals.shape), level=each)
        low.append(test.low)
        high.append(test.high)
    shared = "" if band == "pointwise" else f", corrected for {k} depths (Bonferroni)"
    return tuple(low), tuple(high), f"the t test across seeds and queries{shared}"


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
