"""Pictures of outcomes: Success@j of two runs, and bars of the outcomes of many pairs.

Success@j says how many queries a run answers when a reader looks j documents deep. Search lengths
compare only queries that both runs find, and so depend on which those are; this curve has every
query at every depth, and needs no rank for what is not found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from heldout.analyses.outcomes import options, outcomes
from heldout.charts.axes import Axis, log_axis, score_axis, share_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import INK, LINK, RECORD, RULE, SOFT, cut
from heldout.ids import Digest
from heldout.scoring.first_ranks import FirstRanks, MethodSide
from heldout.stats import resampling, student

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

    a: MethodSide
    b: MethodSide
    success_a: tuple[float, ...]
    success_b: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    band: options.Band
    method: str
    level: float
    digest: Digest


def success_curves(
    ranks: FirstRanks,
    a: MethodSide,
    b: MethodSide,
    rng: Generator,
    *,
    band: options.Band = "simultaneous",
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
    rows: Floats, rng: Generator, *, band: options.Band, level: float, draws: int
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
    deviations = resampling.map_blocks(
        _deviate, kinds, counts, error, rng=rng, draws=draws, size=resampling.block_size(len(rows))
    )
    return float(np.quantile(np.concatenate(deviations), level, method="higher"))


def _deviate(kinds: Floats, counts: Integers, error: Floats, rng: Generator, draws: int) -> Floats:
    size = int(counts.sum())
    drawn = rng.multinomial(size, counts / size, size=draws)
    means = drawn @ kinds / size
    largest: Floats = (np.abs(means - counts @ kinds / size) / error).max(axis=1)
    return largest


def _groups_band(
    first: Integers, second: Integers, *, k: int, band: options.Band, level: float
) -> tuple[Ends, Ends, str]:
    each = level if band == "pointwise" else 1 - (1 - level) / k
    low: list[float | None] = []
    high: list[float | None] = []
    for depth in range(1, k + 1):
        found_a, found_b = ((row > 0) & (row <= depth) for row in (first, second))
        totals = found_b[None, :, :].astype(np.float64) - found_a[:, None, :]
        test = student.crossed_t(totals, np.ones(totals.shape), level=each)
        low.append(test.low)
        high.append(test.high)
    shared = "" if band == "pointwise" else f", corrected for {k} depths (Bonferroni)"
    return tuple(low), tuple(high), f"the t test across seeds and queries{shared}"


MOST_BARS = 40
"""Pairs that a picture of bars shows at most."""

_POINTS = 120
_FOOT = 0.02
_NAME = 18


def curves_title(curves: SuccessCurves) -> str:
    """Return what the picture of two curves shows."""
    return (
        f"Share of queries that {curves.a.name} (A) and {curves.b.name} (B) answer among their "
        f"first j documents, for j up to {len(curves.success_a)}, with {curves.band} intervals"
    )


def curves_chart(curves: SuccessCurves) -> Plot:
    """Success@j of both runs over the logarithm of j, as steps, from 1 to k.

    The band is A's curve plus the interval of B - A, so it lies around B's curve; like it, it ends
    at 0 and at 1. A bar at the foot stands at the depths where A's curve is outside of it: there
    the two differ.
    """
    k = len(curves.success_a)
    ends = [
        _cut_share(a + end)
        for row in (curves.low, curves.high)
        for a, end in zip(curves.success_a, row, strict=True)
        if end is not None
    ]
    heights = score_axis([*curves.success_a, *curves.success_b, *ends])
    plot = Plot(
        x=log_axis([1, max(k, 2)], room=0),
        y=heights,
        head="Success@j",
        foot="j",
    )
    _draw_band(plot, curves)
    apart = _draw_feet(plot, curves, heights)
    plot.stairs(_points(curves.success_a), max(k, 2), INK)
    plot.stairs(_points(curves.success_b), max(k, 2), RECORD)
    plot.key("line", f"A  {cut(curves.a.name, 60)}", INK)
    plot.key("line", f"B  {cut(curves.b.name, 60)}", RECORD)
    plot.key("box", f"A + {curves.level:.0%} interval of B - A, {_BANDS[curves.band]}", SOFT)
    if apart:
        plot.key("▁", "A lies outside the band: the two differ at this depth")
    else:
        plot.key("", "A lies in the band at every depth: no difference is shown")
    return plot


_BANDS = {"simultaneous": "all depths at once", "pointwise": "each depth by itself"}


def _cut_share(end: float) -> float:
    """The end of a band of shares, none of which is below 0 or above 1."""
    return min(max(end, 0.0), 1.0)


def _depths(k: int) -> list[int]:
    """Depths from 1 to k, no more than can be seen on an axis of logarithms."""
    return sorted(
        {round(max(k, 2) ** (at / _POINTS)) for at in range(_POINTS + 1)} & {*range(1, k + 1)}
    )


def _points(shares: Sequence[float]) -> list[tuple[float, float]]:
    return [(depth, shares[depth - 1]) for depth in _depths(len(shares))]


def _steps(k: int) -> Iterator[tuple[int, int]]:
    """Each depth with the next one; the last has no width."""
    yield from pairwise([*_depths(k), max(2, k)])


def _draw_band(plot: Plot, curves: SuccessCurves) -> None:
    """A box for each stretch of depths where nothing changes."""
    rows = (curves.success_a, curves.success_b, curves.low, curves.high)
    steps = _steps(len(curves.success_a))
    for values, stretch in groupby(steps, key=lambda step: tuple(row[step[0] - 1] for row in rows)):
        a, b, low, high = values
        if a is None or b is None or low is None or high is None:
            continue
        depths = [*stretch]
        start, end = depths[0][0], depths[-1][1]
        tip = f"j = {start}: A {a:.3f}, B {b:.3f}, B - A from {low:+.3f} to {high:+.3f}"
        plot.box((start, end), (_cut_share(a + low), _cut_share(a + high)), SOFT, tip)


def _draw_feet(plot: Plot, curves: SuccessCurves, heights: Axis) -> bool:
    """Boxes at the foot where the interval leaves out 0, in the colour of the better one."""
    foot = (heights.low, heights.low + (heights.high - heights.low) * _FOOT)
    wide = plot.x.high ** (1 / _POINTS)
    found = False
    for depth, end in _steps(len(curves.success_a)):
        low, high = curves.low[depth - 1], curves.high[depth - 1]
        if low is None or high is None or low <= 0 <= high:
            continue
        name, colour = ("B", RECORD) if low > 0 else ("A", INK)
        start = min(depth, plot.x.high / wide)  # the last depth has a width too
        plot.box((start, max(end, start * wide)), foot, colour, f"j = {depth}: {name} finds more")
        found = True
    return found


def bars_title(result: outcomes.Outcomes) -> str:
    """Return what the picture of bars shows."""
    shown = min(MOST_BARS, len(result.pairs))
    which = f"{shown} of {len(result.pairs):,} pairs" if shown < len(result.pairs) else "each pair"
    return f"Of {result.queries:,} queries those found by both runs, by one and by neither: {which}"


def bars_chart(result: outcomes.Outcomes) -> Plot:
    """A bar for each pair in shares of queries: A alone, both, neither, B alone.

    Of many pairs those are shown whose runs find the most different numbers of queries.
    """
    tested = result.pairs
    order = np.argsort(-np.abs(tested.b_only - tested.a_only), kind="stable")
    pairs = tuple(result.pairs.take(np.sort(order[:MOST_BARS])))
    rows = [
        PlotRow(
            name={"A": "◂ ", "B": "▸ "}.get(one.verdict.better or "", "")
            + f"{cut(one.a.name, _NAME)} / {cut(one.b.name, _NAME)}"
        )
        for one in pairs
    ]
    hidden = len(result.pairs) > len(rows)
    plot = Plot(
        x=share_axis(),
        rows=rows,
        head=f"A / B, {len(rows)} of {len(result.pairs):,} pairs" if hidden else "A / B",
        foot=f"share of {result.queries:,} queries",
    )
    for row, one in enumerate(pairs):
        left = 0.0
        counts = (one.a_only, one.both, one.neither, one.b_only)
        for (name, colour), count in zip(_PARTS, counts, strict=True):
            right = left + count / result.queries
            plot.bar((left, right), row, colour, f"{name}: {count:,.6g} of {result.queries:,}")
            left = right
    for name, colour in _PARTS:
        plot.key("box", name, colour)
    return plot


_PARTS = (("A alone", LINK), ("both", RULE), ("neither", SOFT), ("B alone", RECORD))
