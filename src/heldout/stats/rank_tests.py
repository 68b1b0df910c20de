"""Tests of wins and ranks: sign, binomial, rank-sum, Wilcoxon's signed-rank with its interval.

The pseudomedian of differences is the median of their Walsh averages, the means of all pairs.
Whole numbers, such as differences of ranks, have few different Walsh averages: a histogram folded
with itself counts them for all samples at once. Of small samples all averages are laid out, and in
large ones they are looked for.

`share_not_lower_p` asks whether a share of queries is lower by less than a margin. Two systems that
differ on a few queries only, or on none, have no usable standard error of the difference; the score
test takes the error under the null instead, where it is never 0.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtr, ndtri, stdtrit

from heldout.stats import rank_correlation, student
from heldout.stats.exact import DECIMALS, Samples, differences, load_compiled
from heldout.stats.results import SMALLEST, Alternative, AskedTest, Found, choose_tail, normal_p


def share_not_lower_p(a_only: int, b_only: int, *, size: int, margin: float) -> float:
    """The p-value against: B answers a share of queries that is lower by the margin or more.

    Args:
        a_only: queries that A alone answers.
        b_only: those that B alone answers.
        size: all queries, at least 1 and at least those of both kinds.
        margin: between 0 and 1, in shares of all queries.

    Returns:
        In [2.2e-308, 1], by the normal approximation.

    Source:
        Tango 1998, Statistics in Medicine 17, section 3.
    """
    if not 0 < margin < 1:
        raise ValueError(margin)
    if not (min(a_only, b_only) >= 0 and size >= max(1, a_only + b_only)):
        raise ValueError((a_only, b_only, size))
    share = _share_of_a_only(a_only, b_only, size=size, margin=margin)
    error = math.sqrt(size * (2 * share - margin * (1 + margin)))
    return max(SMALLEST, float(ndtr(-(b_only - a_only + size * margin) / error)))


def _share_of_a_only(a_only: int, b_only: int, *, size: int, margin: float) -> float:
    """The likeliest share of queries that A alone answers, where B's is lower by the margin."""
    # The likelihood's derivative under p(B alone) = p(A alone) - margin, times its denominators
    square = 2 * size
    linear = -(a_only + b_only + (2 * size + a_only - b_only) * margin)
    constant = a_only * margin * (1 + margin)
    root = math.sqrt(max(0.0, linear * linear - 4 * square * constant))
    return (root - linear) / (2 * square)


_LAID_OUT = 4096

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class _Cut(NamedTuple):
    """Where a limit cuts the averages.

    Attributes:
        limit: averages up to this are counted.
        ends: for each of the smallest values, how many values make an average up to the limit
            with it.
        total: how many averages there are up to the limit.
    """

    limit: float
    ends: Integers
    total: int


class _Stretch(NamedTuple):
    """Averages that follow each other.

    Attributes:
        before: how many averages come before them.
        sums: twice the averages, ascending.
        reached: how many averages there are up to each.
    """

    before: int
    sums: Floats
    reached: Integers


class WalshAverages:
    """The averages (x + y) / 2 of all pairs of values, each value with itself too, in order.

    There are n (n + 1) / 2 of them. They are never all laid out: limits between which one lies are
    halved until few lie there with it.

    Attributes:
        count: how many there are.
    """

    def __init__(self, values: Floats, counts: Integers | None = None) -> None:
        """Take the values.

        Args:
            values: finite, at least one; where there are counts, distinct and ascending.
            counts: how often each occurs; `None` where `values` has each as often.
        """
        if counts is None:
            values, counts = np.unique(values, return_counts=True)
        self._values, self._counts = values, counts
        self._before = np.concatenate(([0], np.cumsum(counts)))
        # Pairs are counted at the smaller value, a value with itself once
        twice = counts * self._before[1:] - counts * (counts + 1) // 2
        self._twice = np.concatenate(([0], np.cumsum(twice)))
        self._found = _Stretch(0, np.zeros(0), np.zeros(1, np.int64))
        size = int(self._before[-1])
        self.count = size * (size + 1) // 2

    def find(self, position: int) -> float:
        """The average at a place in ascending order, rounded to 1e-12.

        Args:
            position: 1 to `count`.
        """
        if not self._found.before < position <= self._found.reached[-1]:
            self._found = self._look_for(position)
        found = self._found.sums[self._found.reached.searchsorted(position)] / 2
        return float(np.round(found, DECIMALS)) + 0.0

    def median(self) -> float:
        """The pseudomedian: the Hodges-Lehmann estimate of the values' centre."""
        lower, upper = (self.count + 1) // 2, self.count // 2 + 1
        first = self.find(lower)
        return first if lower == upper else (first + self.find(upper)) / 2

    def _look_for(self, position: int) -> _Stretch:
        """Few averages that follow each other, among them the one at a place."""
        size = len(self._values)
        first, last = float(self._values[0]), float(self._values[-1])
        low = _Cut(float(np.nextafter(first, -np.inf)), np.zeros(0, np.int64), 0)
        high = _Cut(last, np.full(size, size), self.count)
        while self._starts_and_lengths(low, high)[1].sum() > _LAID_OUT:
            middle = (low.limit + high.limit) / 2
            if not low.limit < middle < high.limit:
                return _Stretch(low.total, np.array([2 * high.limit]), np.array([high.total]))
            cut = self._cut(middle)
            low, high = (low, cut) if cut.total >= position else (cut, high)
        return self._lay_out(low, high)

    def _cut(self, limit: float) -> _Cut:
        own = int(self._values.searchsorted(limit, "right"))
        ends = self._values.searchsorted(2 * limit - self._values[:own], "right")
        pairs = self._counts[:own] @ self._before[ends]
        return _Cut(limit, ends, int(pairs - self._twice[own]))

    def _starts_and_lengths(self, low: _Cut, high: _Cut) -> tuple[Integers, Integers]:
        """For each smaller value the first partner between the limits, and how many there are."""
        starts = np.arange(len(high.ends))
        starts[: len(low.ends)] = low.ends
        return starts, high.ends - starts

    def _lay_out(self, low: _Cut, high: _Cut) -> _Stretch:
        starts, lengths = self._starts_and_lengths(low, high)
        smaller = np.repeat(np.arange(len(lengths)), lengths)
        larger = np.arange(len(smaller)) + (starts - np.cumsum(lengths) + lengths)[smaller]
        sums = self._values[smaller] + self._values[larger]
        counts = self._counts[smaller] * self._counts[larger]
        itself = smaller == larger
        counts[itself] = (counts[itself] + self._counts[smaller[itself]]) // 2
        order = np.argsort(sums)
        return _Stretch(low.total, sums[order], low.total + np.cumsum(counts[order]))


Scores = NDArray[np.float64]

EXACT_AT_MOST = 50
"""Differences up to which the signed-rank test is exact."""


def signed_rank_test(a: Scores, b: Scores, ask: AskedTest) -> Found:
    """The signed-rank test of two systems; see `rank_differences`."""
    return rank_differences(differences(a, b), ask)


def rank_differences(
    difference: Scores, ask: AskedTest, *, exact_at_most: int = EXACT_AT_MOST
) -> Found:
    """Are the differences symmetric about 0?

    Args:
        difference: of the queries; equal ones are equal floats, and those of 0 are dropped.
        ask: direction and level.
        exact_at_most: with so many differences p is by the distribution of their ranks, tied ones
            too, under all signs; with more by the normal approximation, corrected for continuity.

    Returns:
        The difference is the pseudomedian of the differences that are not 0. Its interval counts
        Walsh averages as if no two differences were tied, which is conservative.
    """
    moved = difference[difference != 0]
    used = len(moved)
    if not used:
        return Found(used=0, difference=None, why="every difference is 0")
    ranks = rank_correlation.midranks(np.abs(moved))
    above = float(ranks[moved > 0].sum())
    if used <= exact_at_most:
        p = exact_p(ranks, above, ask.alternative)
    else:
        error = math.sqrt(float(np.sum(ranks**2))) / 2
        p = normal_p(above - float(ranks.sum()) / 2, error=error, alternative=ask.alternative)
    estimate, low, high = _estimate(moved, ask.level)
    return Found(
        used=used,
        difference=estimate,
        low=low,
        high=high,
        statistic=above,
        p=p,
        why=None if low is not None else f"too few differences for an interval: {used}",
    )


def exact_p(ranks: Scores, above: float, alternative: Alternative) -> float:
    """Return the chance of such a sum of positive ranks when every sign is tossed."""
    doubled = np.rint(2 * ranks).astype(np.int64)
    chances = _sum_chances(doubled)
    position = round(2 * above)
    return choose_tail(
        greater=float(chances[position:].sum()),
        less=float(chances[: position + 1].sum()),
        alternative=alternative,
    )


def _sum_chances(weights: NDArray[np.int64]) -> Scores:
    """Chance of each sum, from 0, of weights that are each in or out by a fair coin."""
    chances = np.zeros(int(weights.sum()) + 1)
    chances[0], top = 1.0, 0
    for weight in weights.tolist():
        top += weight
        chances[weight : top + 1] += chances[: top + 1 - weight].copy()
        chances[: top + 1] /= 2
    return chances


def _estimate(values: Scores, level: float) -> tuple[float, float | None, float | None]:
    """The pseudomedian and the ends of its interval."""
    averages = WalshAverages(values)
    position = position_of_end(len(values), (1 - level) / 2)
    if position < 1:
        return averages.median(), None, None
    return averages.median(), averages.find(position), averages.find(averages.count + 1 - position)


@cache
def position_of_end(size: int, tail: float) -> int:
    """Place of the Walsh average that is an interval's lower end; below 1 where there is none.

    Args:
        size: differences, at least 1.
        tail: chance that is left below the interval, above 0 and at most 0.5.
    """
    if size <= EXACT_AT_MOST:
        return int(_untied_chances(size).searchsorted(tail, "right"))
    mean = size * (size + 1) / 4
    error = math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
    return math.floor(mean + 0.5 + float(ndtri(tail)) * error)


@cache
def _untied_chances(size: int) -> Scores:
    """Chance of each sum of positive ranks, or of a smaller one, where no two are tied."""
    return np.cumsum(_sum_chances(np.arange(1, size + 1)))


_SPAN = 4096
Indices = NDArray[np.intp]


class Pseudomedians(NamedTuple):
    """Centres of samples, and the ends of their intervals.

    Attributes:
        centre: NaN where a sample is empty.
        low: NaN where it is too small for an interval.
        high: likewise.
    """

    centre: Floats
    low: Floats
    high: Floats


def estimate_pseudomedians(
    samples: Samples, *, level: float, compiled: bool = False
) -> Pseudomedians:
    """Estimate the centre of each sample.

    Args:
        samples: some may be empty.
        level: of the intervals, between 0 and 1.
        compiled: whether numba is used where it is installed; the answer is the same.
    """
    positions = _list_positions(samples.sizes, level)
    averages = np.full(positions.shape, np.nan)
    some = samples.sizes > 0
    if compiled and (loops := load_compiled()):
        loops.find_averages(samples.values, samples.counts, samples.ends(), positions, averages)
        averages = np.round(averages, DECIMALS) + 0.0
    elif _has_whole_numbers(samples):
        least = float(samples.values.min())
        averages[some] = _look_up(_fold(samples)[some], positions[some]) / 2 + least
    else:
        ends = samples.ends()
        for sample in np.flatnonzero(some):
            part = slice(*ends[sample])
            walsh = WalshAverages(samples.values[part], samples.counts[part])
            averages[sample] = [
                walsh.find(position) if position else np.nan for position in positions[sample]
            ]
    first, second, low, high = np.where(positions > 0, averages, np.nan).T
    return Pseudomedians(np.where(first == second, first, (first + second) / 2), low, high)


def _list_positions(sizes: Integers, level: float) -> Integers:
    """The averages that make a centre and the ends of its interval; 0 where there is none."""
    counts = sizes * (sizes + 1) // 2
    different, inverse = np.unique(sizes, return_inverse=True)
    ends = [max(0, position_of_end(size, (1 - level) / 2)) for size in different.tolist()]
    low = np.array(ends, np.int64)[inverse]
    high = np.where(low > 0, counts + 1 - low, 0)
    return np.stack(((counts + 1) // 2, counts // 2 + (counts > 0), low, high), axis=1)


def _has_whole_numbers(samples: Samples) -> bool:
    """Check whether all values are whole numbers that lie close together."""
    if not len(samples.values):
        return False
    close = samples.values.max() - samples.values.min() < _SPAN
    return bool(close and np.array_equal(samples.values, np.rint(samples.values)))


def _fold(samples: Samples) -> NDArray[np.int64]:
    """Return how many averages of each sample are up to each half of a whole number."""
    positions = (samples.values - samples.values.min()).astype(np.int64)
    span = int(positions.max()) + 1
    cells = len(samples.sizes) * span
    counts = np.bincount(samples.owners * span + positions, samples.counts, cells).reshape(-1, span)
    # The product is exact: sums are whole numbers, and errors are far below a half
    ordered = np.fft.irfft(np.fft.rfft(counts, 2 * span) ** 2, 2 * span)
    ordered[:, ::2] += counts  # each value with itself
    return np.cumsum(np.rint(ordered).astype(np.int64), axis=1) // 2


def _look_up(reached: Integers, positions: Integers) -> Floats:
    columns = [(reached < position[:, None]).sum(axis=1) for position in positions.T]
    return np.stack(columns, axis=1).astype(np.float64)


def rank_sum_test(a: Scores, b: Scores, ask: AskedTest) -> Found:
    """Does a score of B exceed one of A as often as the other way round?

    Mann and Whitney's, corrected for ties and continuity.

    Args:
        a: scores of A.
        b: scores of B, not necessarily on the same queries.
        ask: direction and level.

    Returns:
        The difference is P(B > A) - P(A > B), its interval by the variance of placements
        (Brunner and Munzel), which takes the samples as independent.
    """
    used = len(a) + len(b)
    pooled = np.concatenate((a, b))
    if np.ptp(pooled) == 0:
        return Found(used=used, difference=0.0, why="all scores are the same")
    ranks = rank_correlation.midranks(pooled)
    mean = len(a) * len(b) / 2
    above = float(ranks[len(a) :].sum()) - len(b) * (len(b) + 1) / 2
    low, high, why = _locate(a, b, ranks, ask.level)
    return Found(
        used=used,
        difference=(above - mean) / mean,
        low=low,
        high=high,
        statistic=above,
        p=normal_p(above - mean, error=_error(pooled, len(a)), alternative=ask.alternative),
        why=why,
    )


def _error(pooled: Scores, size: int) -> float:
    """Standard deviation of the statistic under the null."""
    total = len(pooled)
    counts = np.unique(pooled, return_counts=True)[1].astype(np.float64)
    spread = total + 1.0 - float(np.sum(counts**3 - counts)) / (total * (total - 1))
    return math.sqrt(size * (total - size) / 12 * spread)


def _locate(
    a: Scores, b: Scores, ranks: Scores, level: float
) -> tuple[float | None, float | None, str | None]:
    """The interval of P(B > A) - P(A > B), or why there is none."""
    if min(len(a), len(b)) < 2:  # noqa: PLR2004 - a variance needs two
        return None, None, "a system has a single score"
    # The share of the other sample that each score exceeds, ties counting half
    of_a = (ranks[: len(a)] - rank_correlation.midranks(a)) / len(b)
    of_b = (ranks[len(a) :] - rank_correlation.midranks(b)) / len(a)
    parts = [float(np.var(of, ddof=1)) / len(of) for of in (of_a, of_b)]
    if not sum(parts):
        return None, None, "the samples do not overlap: no interval"
    freedom = student.welch_freedom(parts, (len(a), len(b)))
    # The shares differ by twice what the placements do
    half = 2 * float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(sum(parts))
    centre = float(np.mean(of_b)) - float(np.mean(of_a))
    return max(-1.0, centre - half), min(1.0, centre + half), None


def sign_test(a: Scores, b: Scores, ask: AskedTest) -> Found:
    """The sign test: does each system win as often as the other?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
    """
    sizes = np.round(differences(a, b), DECIMALS)
    return compare_wins(int(np.sum(sizes < 0)), int(np.sum(sizes > 0)), ask)


def binomial_test(a: Scores, b: Scores, ask: AskedTest) -> Found:
    """The exact binomial test on the queries that one system alone answers (McNemar's, exact).

    Args:
        a: scores of A; one above 0 answers its query.
        b: scores of B on the same queries.
        ask: direction and level.
    """
    first, second = a > 0, b > 0
    return compare_wins(int(np.sum(first & ~second)), int(np.sum(second & ~first)), ask)


def compare_wins(a_wins: int, b_wins: int, ask: AskedTest) -> Found:
    """The exact binomial test of counts, with the Clopper-Pearson interval.

    Args:
        a_wins: queries won by A, >= 0.
        b_wins: queries won by B, >= 0.
        ask: direction and level.

    Returns:
        The difference is the share that B won less the share that A won.
    """
    used = a_wins + b_wins
    if not used:
        return Found(used=0, difference=None, why="no query has a winner")
    tail = ask.alpha / 2
    low = float(betaincinv(b_wins, a_wins + 1, tail)) if b_wins else 0.0
    # The mirrored lower end, so that B against A is A against B with its sign changed
    high = float(betaincinv(a_wins, b_wins + 1, tail)) if a_wins else 0.0
    return Found(
        used=used,
        difference=(b_wins - a_wins) / used,
        low=2 * low - 1,
        high=1 - 2 * high,
        statistic=float(b_wins),
        p=choose_tail(
            greater=float(betainc(b_wins, a_wins + 1, 0.5)) if b_wins else 1.0,
            less=float(betainc(a_wins, b_wins + 1, 0.5)) if a_wins else 1.0,
            alternative=ask.alternative,
        ),
    )
