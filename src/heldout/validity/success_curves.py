"""How many queries two runs answer when a reader looks j documents deep, for every j.

Search lengths compare only queries that both runs find, and so depend on which those are. The
curve of Success@j has every query at every depth, and needs no rank for what is not found.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from heldout.ids import Digest
from heldout.stats.resampling import block_size, map_blocks
from heldout.stats.student import crossed_t
from heldout.validity.first_ranks import FirstRanks, Side

__all__ = ["Band", "SuccessCurves", "success_curves"]

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
