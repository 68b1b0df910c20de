"""A mean from few labels and many predictions of them (prediction-powered inference, PPI++).

Predictions may be as wrong as they like: the labels correct them. What they cannot mend is a choice
of what was labelled; the labelled units have to be a random part of all.

Source: Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from heldout.stats.checks import check_scores

__all__ = ["PredictionPowered", "estimate_mean"]

_FEWEST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPowered:
    """A mean with its interval.

    Attributes:
        value: the estimate; `None` without labels.
        low: lower end; `None` with fewer than two labels.
        high: upper end.
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
        labels: of the labelled units.
        predictions: of the same units.
        unlabelled: predictions of other units.
        level: of the interval, by the normal distribution; above 0 and below 1.

    Raises:
        InputError: code `not-finite`.
        ValueError: there are not as many predictions as labels.
    """
    y, f = check_scores(labels, "labels"), check_scores(predictions, "predictions")
    rest = check_scores(unlabelled, "predictions without a label")
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels and {len(f)} predictions of them")
    if not len(y):
        return PredictionPowered(
            value=None, low=None, high=None, weight=0.0, labelled=0, unlabelled=len(rest)
        )
    weight = _weight(y, f, rest)
    missed = y - weight * f
    value = float(missed.mean() + (weight * rest.mean() if len(rest) else 0.0))
    low = high = None
    if len(y) >= _FEWEST:
        variance = missed.var(ddof=1) / len(y)
        if len(rest) >= _FEWEST:
            variance += weight**2 * rest.var(ddof=1) / len(rest)
        reach = float(norm.ppf((1 + level) / 2) * np.sqrt(variance))
        low, high = value - reach, value + reach
    return PredictionPowered(
        value=value, low=low, high=high, weight=weight, labelled=len(y), unlabelled=len(rest)
    )


def _weight(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> float:
    """Covariance / ((1 + n / N) variance), the latter over all predictions (PPI++, section 6)."""
    if len(y) < _FEWEST or len(rest) < _FEWEST:
        return 0.0
    variance = np.concatenate([f, rest]).var(ddof=1)
    if variance <= 0:
        return 0.0
    together = float(((y - y.mean()) * (f - f.mean())).mean())
    return float(np.clip(together / ((1 + len(y) / len(rest)) * variance), 0, 1))
