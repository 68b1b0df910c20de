"""What a side and other properties of a pair do to a choice, however good the two items are.

    logit P(left preferred) = x b + delta,  delta = theta_left - theta_right ~ N(0, 2 spread^2)

delta is what else one item has over the other, the same for all who judge the pair, and integrated
out: most pairs are judged a few times only, and fitting a theta for each item would take b towards
0. Pairs are put together as if they were independent, which moves no estimate (composite
likelihood: Varin, Reid and Firth 2011); intervals then take all of a query, or of a judge, as one
observation.

A spread that is too small takes b towards 0, one too large away from it; no effect stays none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, stdtrit

__all__ = ["Choices", "Effects", "fit_effects"]

_NODES = 21
_FEWEST = 2
_FAR = 20.0
_CLOSE = 1e-8
Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """What was shown and chosen.

    Attributes:
        columns: shape (choices, effects); a column of ones is the effect of being left.
        pair: from 0, the same for all choices between two items.
        turned: the pair was shown with its sides exchanged.
        chose_left: the left one was preferred.
    """

    columns: Floats
    pair: Places
    turned: NDArray[np.bool_]
    chose_left: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """Effects with their intervals.

    Attributes:
        values: of each column, in logits.
        low: lower ends; `None` where every clustering has one cluster only.
        high: upper ends; `None` where every clustering has one cluster only.
    """

    values: Floats
    low: Floats | None
    high: Floats | None


def fit_effects(
    choices: Choices, clusterings: Sequence[Places], *, spread: float = 0.8, level: float = 0.95
) -> Effects | None:
    """The most likely effects.

    Args:
        choices: what was chosen.
        clusterings: ways to put choices together that are not independent, each the cluster of
            each choice from 0. Of the intervals that they give the widest is taken.
        spread: standard deviation of how good items are.
        level: of each interval by itself.

    Returns:
        `None` where an effect has no finite value: it says nothing that the others do not, or all
        choices follow it.
    """
    effects = choices.columns.shape[1]
    if np.linalg.matrix_rank(choices.columns) < effects or _is_separated(choices):
        return None
    found = minimize(
        _cost,
        np.zeros(effects),
        args=(choices, spread),
        jac=True,
        hess=lambda at, *_: _derivatives(at, choices, spread)[1] / len(choices.pair),
        method="trust-exact",
        options={"gtol": _CLOSE},
    )
    values = np.asarray(found.x, np.float64)
    if np.abs(choices.columns @ values).max() > _FAR:
        return None
    said, curve = _derivatives(values, choices, spread)
    inverse = np.linalg.inv(curve)
    reaches = [
        _reach(said @ inverse, cluster, level)
        for cluster in clusterings
        if len(np.unique(cluster)) >= _FEWEST
    ]
    if not reaches:
        return Effects(values=values, low=None, high=None)
    reach = np.max(reaches, axis=0)
    return Effects(values=values, low=values - reach, high=values + reach)


def _reach(said: Floats, cluster: Places, level: float) -> Floats:
    clusters = int(cluster.max()) + 1
    summed = np.zeros((clusters, said.shape[1]))
    np.add.at(summed, cluster, said)
    deviation = np.sqrt((summed**2).sum(axis=0) * clusters / (clusters - 1))
    return np.asarray(deviation * stdtrit(clusters - 1, (1 + level) / 2), np.float64)


def _nodes(spread: float) -> tuple[Floats, Floats]:
    """Values of delta, and the logarithms of their weights (Gauss and Hermite)."""
    places, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return places * spread * 2**0.5, np.log(weights / weights.sum())


def _ahead(at: Floats, choices: Choices, spread: float) -> Floats:
    """Logit of the left one, shape (choices, nodes)."""
    sign = np.where(choices.turned, -1.0, 1.0)
    return (choices.columns @ at)[:, np.newaxis] + sign[:, np.newaxis] * _nodes(spread)[0]


def _weigh(ahead: Floats, choices: Choices, spread: float) -> tuple[Floats, Floats]:
    """Log likelihood of each pair, and how likely each delta is after its choices."""
    side = np.where(choices.chose_left, 1.0, -1.0)[:, np.newaxis]
    joint = np.tile(_nodes(spread)[1], (int(choices.pair.max()) + 1, 1))
    np.add.at(joint, choices.pair, log_expit(side * ahead))
    total = logsumexp(joint, axis=1)
    return total, np.exp(joint - total[:, np.newaxis])


def _cost(at: Floats, choices: Choices, spread: float) -> tuple[float, Floats]:
    ahead = _ahead(at, choices, spread)
    total, weights = _weigh(ahead, choices, spread)
    missed = choices.chose_left[:, np.newaxis] - expit(ahead)
    said = (weights[choices.pair] * missed).sum(axis=1)
    count = len(choices.pair)
    return -float(total.sum()) / count, -(choices.columns.T @ said) / count


def _derivatives(at: Floats, choices: Choices, spread: float) -> tuple[Floats, Floats]:
    """What each choice says of the slope, and minus the second derivatives (Louis 1982)."""
    ahead = _ahead(at, choices, spread)
    _, weights = _weigh(ahead, choices, spread)
    chance = expit(ahead)
    columns = choices.columns
    missed = choices.chose_left[:, np.newaxis] - chance
    own = weights[choices.pair]
    said = columns * (own * missed).sum(axis=1)[:, np.newaxis]
    bent = (own * chance * (1 - chance)).sum(axis=1)
    curve = columns.T @ (columns * bent[:, np.newaxis])
    slopes = np.zeros((*weights.shape, columns.shape[1]))
    np.add.at(slopes, choices.pair, missed[:, :, np.newaxis] * columns[:, np.newaxis, :])
    mean = (weights[:, :, np.newaxis] * slopes).sum(axis=1)
    squares = np.einsum("pn,pni,pnj->ij", weights, slopes, slopes) - mean.T @ mean
    return said, curve - squares


def _is_separated(choices: Choices) -> bool:
    """One column alone tells every choice: its effect has no bound."""
    signed = choices.columns * np.where(choices.chose_left, 1, -1)[:, np.newaxis]
    return bool(np.any((signed >= 0).all(axis=0) | (signed <= 0).all(axis=0)))
