"""Means by Student's t: of two systems, of crossed samples, and of values that are hard on t.

- `paired_t_test` and `unpaired_t_test`: two samples, with equal or unequal variances.
- `crossed_t`: two methods, each run with several seeds. Queries and seeds are both samples,
  as random effects: another seed would have scored otherwise, on the same queries. A test over
  queries alone calls the luck of a seed significant.
- `bounded_mean_p`: is a mean below a null, where values have a largest one? A t test takes the
  spread that was seen for the spread there is. Values that are rare and large are in no small
  sample, and bring the mean to the null all the same. Here one more value is added to each sample,
  the largest there can be, and all of them are weighed at random.
- `estimate_mean`: a mean from few labels and many predictions of them (prediction-powered
  inference, PPI++). Predictions may be as wrong as they like: the labels correct them. What they
  cannot correct is a choice of what was labelled; the labelled units have to be a random part of
  all. The published interval takes the spread that was seen for the spread there is: with few
  labels, or with predictions that seldom miss, it held the truth in a third of samples. Here four
  units are added to the labelled ones for the interval alone, two that the predictions miss upwards
  and two downwards, as far as can be, as Agresti and Coull add two wins and two losses to a share.

Sources: Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference";
Agresti and Coull 1998, Approximate is better than exact for interval estimation of binomial
proportions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from heldout.stats import exact, results

Floats = NDArray[np.float64]

_HALVINGS = 24
_NEAR = 0.5
_STEP = 0.14
_NODES = 100
_FAR = 1e9
_NOTHING = 1e-12


def bounded_mean_p(samples: exact.Samples, *, null: float, bound: float) -> Floats:
    """One-sided p of: the mean is the null or more.

    It is the chance that a mean with random weights reaches the null: of the values of the sample
    and of the bound once, with weights drawn evenly from all that add up to 1 (Dirichlet).

    Where all n values are the same h it is ((bound - null) / (bound - h))^n, which is exact. Let
    p(d) be the chance of a value d. All n are equal, and at most h, with a chance of the sum of
    p(d)^n over d up to h. That is convex in p, so it is largest in a corner of the set of all p
    with a mean of at least the null. A corner has at most two values: one d up to h, and one that
    makes up for it, which leaves d the more room the larger both are: h beside the bound.

    Where a value is either h or the bound it is exact too: the binomial. That it is right in
    general is a conjecture without a known exception. With many values it is as the t test, but
    for what skewness does to that.

    Args:
        samples: of independent values, some may be empty; none is above the bound.
        null: the mean under the null hypothesis.
        bound: the largest value there can be.

    Returns:
        For each sample, from 0 to 1, to some 10 digits. 0 where the null is above the bound; 1 of
        an empty sample, and where the mean with the bound as one more value is not below the null.

    Source:
        Gaffke 2005; Learned-Miller and Thomas 2019, A new confidence interval for the mean of a
        bounded random variable.
    """
    size, room = len(samples.sizes), bound - null
    if room < 0:
        return np.zeros(size)
    whole = _Padded.of(samples, null=null, bound=bound)
    below = whole.sum(whole.counts * whole.values) < 0
    p = np.where(below, 0.0, 1.0)
    if room > 0 and below.any():
        values, counts = (np.compress(below, one, axis=1) for one in whole)
        p[below] = _chance_above_zero(_Padded(values / room, counts))
    return p


class _Padded(NamedTuple):
    """Samples side by side, padded with values of 0 that occur 0 times.

    Attributes:
        values: the distinct values of each sample, shape (values, samples).
        counts: how often each occurs.
    """

    values: Floats
    counts: Floats

    @classmethod
    def of(cls, samples: exact.Samples, *, null: float, bound: float) -> "_Padded":
        """Distances from a null, with that of the bound once more."""
        distinct = samples.distinct()
        rows = np.arange(len(samples.owners)) - (np.cumsum(distinct) - distinct)[samples.owners]
        shape = (int(distinct.max(initial=0)) + 1, len(distinct))
        values, counts = np.zeros(shape), np.zeros(shape)
        values[rows, samples.owners] = samples.values - null
        counts[rows, samples.owners] = samples.counts
        values[distinct, np.arange(len(distinct))] = bound - null
        counts[distinct, np.arange(len(distinct))] = 1
        return cls(values, counts)

    def sum(self, terms: Floats) -> Floats:
        """A sum for each sample, in the order of its values, whatever samples are beside it."""
        # numpy adds rows in their order, but pairs up the terms of a single column
        total: Floats = np.cumsum(terms)[-1:] if terms.shape[1] == 1 else terms.sum(axis=0)
        return total


class _Path(NamedTuple):
    """A path on which the generating function is integrated, from the real axis upwards.

    Attributes:
        start: where it crosses the real axis.
        scale: a unit of length.
        bend: how far it leans to the right after one unit, in units.
        flat: 1 / how far it leans to the right at most, in units; 0 for ever further.
        weight: logarithm of the function at the start.
    """

    start: Floats
    scale: Floats
    bend: Floats
    flat: Floats
    weight: Floats


def _chance_above_zero(samples: _Padded) -> Floats:
    """Chance that a sum is above 0, each value times an exponential variable of its own.

    Dirichlet weights are exponential variables over their sum, which has no sign. The generating
    function of the sum is the product of 1 / (1 - s x); divided by s it is integrated along nearly
    the path of steepest descent, where it falls off fastest and does not oscillate.

    Args:
        samples: of values with a mean below 0, the largest 1.
    """
    path = _descend(samples)
    slopes = (samples.values * path.scale) / (1 - path.start * samples.values)
    total, going = np.zeros(len(path.start)), np.ones(len(path.start), np.bool_)
    for node in range(_NODES):
        # Steps of equal length in asinh: even a tail that falls slowly ends
        up = np.sinh(_STEP * node)
        slower = 1 + path.bend * path.flat * up**2
        right = path.bend * up**2 / slower
        real, turned = 1 - right * slopes, up * slopes
        fall = samples.sum(samples.counts * np.log(real * real + turned * turned)) / 2
        phase = samples.sum(samples.counts * np.arctan2(turned, real))
        here = path.start + path.scale * (right + 1j * up)
        part = np.exp(1j * phase - fall) / here * (2 * path.bend * up / slower**2 + 1j)
        term = (0.5 if node == 0 else 1.0) * np.cosh(_STEP * node) * part.imag
        total += np.where(going, term, 0.0)
        going &= np.abs(term) > _NOTHING * np.abs(total)
        if not going.any():
            break
    integral = np.exp(path.weight) * path.scale * _STEP / np.pi * total
    return np.asarray(np.clip(integral, 0.0, 1.0))


def _descend(samples: _Padded) -> _Path:
    """The path from the saddle point, or from beside it where that is too near to the pole.

    It bends around the singularity at 1 and goes straight up where the function without that is
    smallest.
    """
    none = np.zeros(samples.values.shape[1])
    near = _NEAR / np.sqrt(samples.sum(samples.counts * samples.values**2))
    start = np.maximum(_minimise(samples, none, none + 1), near)
    rest = 1 - start * samples.values
    slopes = samples.values / rest
    scale = 1 / np.sqrt(samples.sum(samples.counts * slopes**2))
    bend = samples.sum(samples.counts * slopes**3) * scale**3 / 3
    others = samples._replace(counts=samples.counts * (samples.values < 1))
    second = np.where(samples.values < 1, samples.values, 0.0).max(axis=0)
    end = np.where(second > 0, 1 / np.maximum(second, 1 / _FAR), _FAR)
    room = _minimise(others, start, end) - start
    return _Path(
        start=start,
        scale=scale,
        bend=np.where(room > 0, np.maximum(bend, 0.0), 0.0),
        flat=scale / np.maximum(room, scale / _FAR),
        weight=-samples.sum(samples.counts * np.log(rest)),
    )


def _minimise(samples: _Padded, left: Floats, right: Floats) -> Floats:
    """Return where between two points the generating function is smallest."""
    terms = samples.counts * samples.values
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        slope = samples.sum(terms / (1 - middle * samples.values))
        left, right = np.where(slope < 0, middle, left), np.where(slope < 0, right, middle)
    return left


NAME = "crossed-t"
"""What the test is called in a `TestResult`."""


def crossed_t(
    totals: Floats,
    weights: Floats,
    *,
    alternative: results.Alternative = "two-sided",
    level: float = 0.95,
    null: float = 0.0,
) -> results.TestResult:
    """The t test of sum(totals) / sum(weights) across seeds and queries.

    The error of the ratio is a sum of three: of queries, of A's seeds and of B's seeds, each from
    the variance of its own means. What is left over belongs to all three and is counted in each,
    so the test is conservative, the less the more queries there are. A system with one seed is
    taken as it is: the test then speaks of that very run, not of its method.

    Args:
        totals: shape (seeds of A, seeds of B, queries); a difference B - A, times its weight.
        weights: the same shape, at least 0: 1, or 0 where there is no difference.
        alternative: the direction.
        level: of the interval.
        null: the difference under the null.

    Returns:
        n and `used` are queries, those used with a weight above 0. The options name the null, the
        degrees of freedom (Satterthwaite) and the shares of the variance. p is `None` with fewer
        than two queries, or where no difference varies.

    Assumes:
        Queries are independent, and so are seeds; seeds of A and of B have nothing in common;
        means are nearly normal, which with two or three seeds has to be believed.

    Source:
        Owen 2007, The pigeonhole bootstrap (variances add); Satterthwaite 1946.
    """
    whole = float(weights.sum())
    blank = results.TestResult(
        test=NAME,
        n=totals.shape[2],
        used=int((weights.sum(axis=(0, 1)) > 0).sum()),
        difference=float(totals.sum()) / whole if whole else None,
        low=None,
        high=None,
        level=level,
        alternative=alternative,
        statistic=None,
        p=None,
        why=None,
        options={"null": null},
    )
    if blank.difference is None:
        return replace(blank, why="no query has a difference")
    if blank.used < 2:  # noqa: PLR2004 - a variance needs two
        return replace(blank, why="a single query says nothing of others")
    rest = (totals - blank.difference * weights) / (whole / weights.size)
    parts = [_variance(rest.mean(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    if not any(variance for variance, _ in parts):
        return replace(blank, why="every difference is the same: there is no standard error")
    return _compare_both(blank, blank.difference, parts, null)


def _compare_both(
    blank: results.TestResult, ratio: float, parts: list[tuple[float, int]], null: float
) -> results.TestResult:
    """The result of a ratio with the parts of its variance and their degrees of freedom."""
    total = sum(variance for variance, _ in parts)
    freedom = total**2 / sum(variance**2 / free for variance, free in parts if free)
    ask = results.AskedTest(alternative=blank.alternative, level=blank.level)
    found = _compare(ratio, math.sqrt(total), freedom, ask, used=blank.used, null=null)
    names = ("share_seeds_a", "share_seeds_b", "share_queries")
    shares = {name: variance / total for name, (variance, _) in zip(names, parts, strict=True)}
    return replace(
        blank,
        low=found.low,
        high=found.high,
        statistic=found.statistic,
        p=found.p,
        options={"null": null, "freedom": freedom, **shares},
    )


def _variance(means: Floats) -> tuple[float, int]:
    """The variance of the mean of some means, with its degrees of freedom; 0 of a single one."""
    free = len(means) - 1
    # Rounding alone is no variance
    if not free or np.ptp(means) <= 1e-12:  # noqa: PLR2004 - as for differences, exact.DECIMALS
        return 0.0, free
    return float(means.var(ddof=1)) / len(means), free


_FEWEST = 2
_FEWEST_FOR_INTERVAL = 5
_ADDED_LABELS = np.array([1.0, 0.0, 1.0, 0.0])
_ADDED_PREDICTIONS = 1 - _ADDED_LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPowered:
    """A mean with its interval.

    Attributes:
        value: the estimate; `None` without labels.
        low: lower end, from 0; `None` with fewer than five labels.
        high: upper end, up to 1.
        weight: how much the predictions count, from 0 (the labels alone) to 1.
        labelled: units with a label and a prediction.
        unlabelled: units with a prediction alone.
    """

    value: float | None
    low: float | None
    high: float | None
    weight: float
    labelled: int
    unlabelled: int


def estimate_mean(
    labels: ArrayLike,
    predictions: ArrayLike,
    unlabelled: ArrayLike,
    *,
    level: float = 0.95,
) -> PredictionPowered:
    """Estimate the mean of labels: weight x mean of predictions + mean of what they miss.

    The weight is the one of least variance, cut to 0 up to 1; 0 where predictions never differ or
    where there are none without a label.

    Args:
        labels: of the labelled units, from 0 to 1.
        predictions: of the same units, from 0 to 1.
        unlabelled: predictions of other units.
        level: of the interval, by Student's distribution with four units added; above 0 and below
            1. Tried where the truth is known: benchmarks/win_rate_coverage.py.

    Raises:
        InputError: code `not-finite`.
        ValueError: there are not as many predictions as labels, or one is not from 0 to 1.
    """
    y, f = results.check_scores(labels, "labels"), results.check_scores(predictions, "predictions")
    rest = results.check_scores(unlabelled, "predictions without a label")
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels and {len(f)} predictions of them")
    if any(((one < 0) | (one > 1)).any() for one in (y, f, rest)):
        raise ValueError("a label or a prediction is not from 0 to 1")
    if not len(y):
        return PredictionPowered(
            value=None, low=None, high=None, weight=0.0, labelled=0, unlabelled=len(rest)
        )
    weight = _weight(y, f, rest)
    missed = y - weight * f
    value = float(missed.mean() + (weight * rest.mean() if len(rest) else 0.0))
    low = high = None
    if len(y) >= _FEWEST_FOR_INTERVAL:
        low, high = _interval(y, f, rest, level)
        low, high = min(low, max(value, 0.0)), max(high, min(value, 1.0))
    return PredictionPowered(
        value=value, low=low, high=high, weight=weight, labelled=len(y), unlabelled=len(rest)
    )


def _interval(y: np.ndarray, f: np.ndarray, rest: np.ndarray, level: float) -> tuple[float, float]:
    """Of the estimate with four units more, cut to 0 and 1; the weight takes them in too."""
    more, guessed = np.concatenate([y, _ADDED_LABELS]), np.concatenate([f, _ADDED_PREDICTIONS])
    weight = _weight(more, guessed, rest)
    missed = more - weight * guessed
    middle, variance = missed.mean(), missed.var(ddof=1) / len(missed)
    if weight:
        middle += weight * rest.mean()
        variance += weight**2 * rest.var(ddof=1) / len(rest)
    reach = float(stdtrit(len(y) - 1, (1 + level) / 2) * np.sqrt(variance))
    return max(0.0, float(middle) - reach), min(1.0, float(middle) + reach)


def _weight(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> float:
    """Covariance / ((1 + n / N) variance), the latter over all predictions (PPI++, section 6)."""
    if len(y) < _FEWEST or len(rest) < _FEWEST:
        return 0.0
    variance = np.concatenate([f, rest]).var(ddof=1)
    if variance <= 0:
        return 0.0
    together = float(((y - y.mean()) * (f - f.mean())).mean())
    return float(np.clip(together / ((1 + len(y) / len(rest)) * variance), 0, 1))


Variances = Literal["welch", "student"]
Scores = NDArray[np.float64]


def paired_t_test(a: Scores, b: Scores, ask: results.AskedTest) -> results.Found:
    """The paired t test: is the mean difference 0?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
    """
    return compare_mean(exact.differences(a, b), ask)


def compare_mean(difference: Scores, ask: results.AskedTest, *, null: float = 0.0) -> results.Found:
    """The t test of one sample.

    Args:
        difference: of the queries; equal ones are equal floats.
        ask: direction and level.
        null: the mean under the null hypothesis.
    """
    centre = _moments(difference)
    if not centre.variance:
        return results.Found(
            used=centre.size,
            difference=centre.mean,
            why="every difference is the same: there is no standard error",
        )
    error = math.sqrt(centre.variance / centre.size)
    return _compare(centre.mean, error, centre.size - 1, ask, used=centre.size, null=null)


def unpaired_t_test(
    a: Scores, b: Scores, ask: results.AskedTest, *, kind: Variances = "welch"
) -> results.Found:
    """The t test of two samples.

    Args:
        a: scores of A.
        b: scores of B, not necessarily on the same queries.
        ask: direction and level.
        kind: `welch` lets the variances differ, `student` takes them as equal.
    """
    first, second = _moments(a), _moments(b)
    used = first.size + second.size
    difference = second.mean - first.mean
    if not (first.variance or second.variance):
        why = "each system's scores are all the same: there is no standard error"
        return results.Found(used=used, difference=difference, why=why)
    if kind == "student":
        freedom = float(used - 2)
        pooled = (first.squares + second.squares) / freedom
        error = math.sqrt(pooled / first.size + pooled / second.size)
    elif min(first.size, second.size) < 2:  # noqa: PLR2004 - a variance needs two
        return results.Found(used=used, difference=difference, why="a system has a single score")
    else:
        parts = [sample.variance / sample.size for sample in (first, second)]
        error = math.sqrt(sum(parts))
        freedom = welch_freedom(parts, (first.size, second.size))
    return _compare(difference, error, freedom, ask, used=used)


def welch_freedom(variances: Sequence[float], sizes: Sequence[int]) -> float:
    """Degrees of freedom of a difference of two estimates (Welch and Satterthwaite).

    Args:
        variances: of the two estimates; not both 0.
        sizes: of their samples, each at least 2.
    """
    shares = [variance / sum(variances) for variance in variances]
    return 1 / sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))


class _Moments(NamedTuple):
    """Size, mean and sum of squares about it; the order of the values does not matter."""

    size: int
    mean: float
    squares: float

    @property
    def variance(self) -> float:
        return self.squares / (self.size - 1) if self.squares else 0.0


def _moments(values: Scores) -> _Moments:
    mean = math.fsum(values.tolist()) / len(values)
    # Equal values may differ from their rounded mean, and have no variance all the same
    squares = math.fsum(((values - mean) ** 2).tolist()) if np.ptp(values) > 0 else 0.0
    return _Moments(len(values), mean, squares)


def _compare(
    difference: float,
    error: float,
    freedom: float,
    ask: results.AskedTest,
    *,
    used: int,
    null: float = 0.0,
) -> results.Found:
    """The result of a difference with its standard error and degrees of freedom."""
    statistic = (difference - null) / error
    half = float(stdtrit(freedom, (1 + ask.level) / 2)) * error
    return results.Found(
        used=used,
        difference=difference,
        low=difference - half,
        high=difference + half,
        statistic=statistic,
        p=results.choose_tail(
            greater=float(stdtr(freedom, -statistic)),
            less=float(stdtr(freedom, statistic)),
            alternative=ask.alternative,
        ),
    )
