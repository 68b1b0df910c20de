"""The likelihood of Bradley and Terry's model with Davidson's ties, and where it is greatest.

Works on many tables of counts at once, as a bootstrap gives them. `bradley_terry` is what to call.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Model", "fit", "slopes"]

_STEPS = 200
_CLOSE = 1e-9
_HALVINGS = 40
_LONGEST = 1e6
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is fitted.

    Attributes:
        items: how many strengths there are.
        prior: precision of a normal prior of every parameter, >= 0.
        ties: the logarithm of nu is fitted too, and stands behind the strengths.
    """

    items: int
    prior: float
    ties: bool


def fit(totals: Floats, model: Model) -> Floats:
    """The most likely parameters, by Newton's method on all tables at once.

    Args:
        totals: shape (tables, 2 x items x items): wins by (winner, loser), then ties, each in both
            orders. Without `ties` in the model a tie is half a win for each.
        model: what is fitted; without a prior the maximum has to be finite.

    Returns:
        Shape (tables, parameters); strengths with mean 0.
    """
    items = model.items
    at = np.zeros((len(totals), model.items + model.ties))
    cost = _cost(at, totals, model)
    close = _CLOSE * max(1.0, float(totals.sum(axis=1).max(initial=0)))
    for _ in range(_STEPS):
        slope, curve = slopes(at, totals, model)
        if np.abs(slope).max(initial=0) < close:
            break
        if not model.prior:
            curve = curve + np.pad(np.ones((items, items)) / items, (0, int(model.ties)))
        step = np.linalg.solve(curve, slope[..., np.newaxis])[..., 0].astype(np.float64)
        at, cost = _descend(at, cost, step, totals, model)
    at[:, :items] -= at[:, :items].mean(axis=1, keepdims=True)
    return at


def _descend(
    at: Floats, cost: Floats, step: Floats, totals: Floats, model: Model
) -> tuple[Floats, Floats]:
    length = np.ones((len(at), 1))
    for _ in range(_HALVINGS):
        tried = at - length * step
        costs = _cost(tried, totals, model)
        worse = ~(costs <= cost * (1 + 1e-15) + 1e-12)
        if not worse.any():
            return tried, costs
        length[worse] /= 2
    keep = worse[:, np.newaxis]
    return np.where(keep, at, tried), np.where(worse, cost, costs)


def _split(totals: Floats, model: Model) -> tuple[Floats, Floats]:
    """Wins and ties by item; ties that are not modelled are half a win for each."""
    items = model.items
    wins, tied = np.moveaxis(totals.reshape(len(totals), 2, items, items), 1, 0)
    return (wins, tied) if model.ties else (wins + tied / 2, np.zeros_like(tied))


def _chances(at: Floats, model: Model) -> tuple[Floats, Floats, Floats]:
    """Half the differences, and the logarithms of what chances are divided by; log nu."""
    items = model.items
    half = (at[:, :items, np.newaxis] - at[:, np.newaxis, :items]) / 2
    log_nu = at[:, items:, np.newaxis] if model.ties else np.full((len(at), 1, 1), -np.inf)
    scale = np.logaddexp(np.logaddexp(half, -half), log_nu)
    return half, scale, log_nu


def _cost(at: Floats, totals: Floats, model: Model) -> Floats:
    wins, tied = _split(totals, model)
    half, scale, log_nu = _chances(at, model)
    cost = (wins * (scale - half)).sum(axis=(1, 2))
    if model.ties:
        cost += (tied * (scale - log_nu)).sum(axis=(1, 2)) / 2
    cost += model.prior * (at**2).sum(axis=1) / 2
    far = np.abs(at).max(axis=1, initial=0) > _LONGEST
    return np.where(far, np.inf, cost)


def slopes(at: Floats, totals: Floats, model: Model) -> tuple[Floats, Floats]:
    """First and second derivatives of minus the logarithm of likelihood and prior.

    Args:
        at: parameters, shape (tables, parameters).
        totals: as `fit` takes them.
        model: what is fitted.
    """
    items = model.items
    wins, tied = _split(totals, model)
    half, scale, log_nu = _chances(at, model)
    win, lose = np.exp(half - scale), np.exp(-half - scale)
    tie = np.exp(log_nu - scale)
    count = wins + np.swapaxes(wins, 1, 2) + tied
    lead = (win - lose) / 2
    slope = model.prior * at
    seen = (wins - np.swapaxes(wins, 1, 2)) / 2
    slope[:, :items] += (count * lead - seen).sum(axis=2)
    weight = count * ((win + lose) / 4 - lead**2)
    curve = np.zeros((len(at), at.shape[1], at.shape[1]))
    curve[:, :items, :items] = -weight
    diagonal = np.arange(items)
    curve[:, diagonal, diagonal] += weight.sum(axis=2)
    if model.ties:
        slope[:, items] += (count * tie - tied).sum(axis=(1, 2)) / 2
        mixed = -(count * lead * tie).sum(axis=2)
        curve[:, :items, items] = curve[:, items, :items] = mixed
        curve[:, items, items] = (count * tie * (1 - tie)).sum(axis=(1, 2)) / 2
    everyone = np.arange(at.shape[1])
    curve[:, everyone, everyone] += model.prior
    return slope, curve
