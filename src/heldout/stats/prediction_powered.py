"""A mean from few labels and many predictions of them (prediction-powered inference, PPI++).

Predictions may be as wrong as they like: the labels correct them. What they cannot mend is a choice
of what was labelled; the labelled units have to be a random part of all.

The interval that the method comes with takes the spread that was seen for the spread there is: with
few labels, or with predictions that seldom miss, it held the truth in a third of samples. Here four
units are added to the labelled ones for the interval alone, two that the predictions miss upwards
and two downwards, as far as can be, as Agresti and Coull add two wins and two losses to a share.

Source: Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference"; Agresti
and Coull 1998, Approximate is better than exact for interval estimation of binomial proportions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from heldout.stats.checks import check_scores

__all__ = ["PredictionPowered", "estimate_mean"]

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
    y, f = check_scores(labels, "labels"), check_scores(predictions, "predictions")
    rest = check_scores(unlabelled, "predictions without a label")
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
    reach = float(t.ppf((1 + level) / 2, len(y) - 1) * np.sqrt(variance))
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
