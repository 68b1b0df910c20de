"""Bradley-Terry strengths from many judges of unlike care.

A judge w looks at the pair with chance gamma, and otherwise answers by a habit b for the left one:

    P(left preferred) = gamma_w s(theta_left - theta_right) + (1 - gamma_w) s(b_w)

Pairs with a known answer tell about the judge alone: there s(theta_left - theta_right) is 1 or 0.
Priors: theta normal, gamma Beta, b normal; they decide for a judge of few answers. What is found is
the mode of the posterior from a fixed start; the posterior need not have one mode alone.

Source: after Chen, Bennett, Collins-Thompson and Horvitz 2013, "Pairwise ranking aggregation in a
crowdsourced setting", with habits of judges in the place of reversed answers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

__all__ = ["CrowdAnswers", "CrowdPriors", "CrowdStrengths", "crowd_cost", "fit_crowd"]

_START = 1.0
_STEPS = 5000
Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrowdAnswers:
    """Who was shown what, and chose which side.

    Attributes:
        items: how many there are.
        judges: how many there are.
        left: the item shown left, from 0.
        right: another item.
        judge: who answered, from 0.
        chose_left: whether the left one was preferred.
        known: 1 where the left one is known to be better, 0 where the right one is, NaN where
            nobody knows.
    """

    items: int
    judges: int
    left: Places
    right: Places
    judge: Places
    chose_left: NDArray[np.bool_]
    known: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdPriors:
    """What is believed before an answer.

    Attributes:
        strength: precision of normal strengths, > 0.
        careful: first parameter of the Beta of gamma, >= 1.
        careless: the second, >= 1.
        habit: precision of the normal habits, > 0.
    """

    strength: float = 1.0
    careful: float = 4.0
    careless: float = 2.0
    habit: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrowdStrengths:
    """What was found.

    Attributes:
        values: strength of each item, in logits, with mean 0.
        care: gamma of each judge, in (0, 1).
        habit: b of each judge: above 0 the left one.
        converged: the search came to an end; otherwise the figures are where it stopped.
    """

    values: Floats
    care: Floats
    habit: Floats
    converged: bool


def fit_crowd(answers: CrowdAnswers, *, priors: CrowdPriors | None = None) -> CrowdStrengths:
    """The most likely strengths and judges.

    Args:
        answers: at least one item and one judge.
        priors: `None` for those of `CrowdPriors`.
    """
    items, judges = answers.items, answers.judges
    start = np.zeros(items + 2 * judges)
    start[items : items + judges] = _START
    found = minimize(
        crowd_cost,
        start,
        args=(answers, priors or CrowdPriors()),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "maxfun": _STEPS, "ftol": 1e-13, "gtol": 1e-7},
    )
    at = np.asarray(found.x, np.float64)
    values = at[:items]
    return CrowdStrengths(
        values=values - (values.mean() if items else 0.0),
        care=np.asarray(expit(at[items : items + judges]), np.float64),
        habit=at[items + judges :],
        converged=bool(found.success),
    )


def crowd_cost(at: Floats, answers: CrowdAnswers, priors: CrowdPriors) -> tuple[float, Floats]:
    """Minus the logarithm of the posterior, and its gradient.

    Args:
        at: strengths, logits of gamma, habits, one after another.
        answers: what was answered.
        priors: what was believed.
    """
    items, judges = answers.items, answers.judges
    strength, logit, habit = np.split(at, [items, items + judges])
    ahead = strength[answers.left] - strength[answers.right]
    free = np.isnan(answers.known)
    side = np.where(answers.chose_left, 1.0, -1.0)
    seen = np.where(free, expit(side * ahead), answers.known == answers.chose_left)
    guess = expit(side * habit[answers.judge])
    gamma = expit(logit)[answers.judge]
    chance = np.maximum(gamma * seen + (1 - gamma) * guess, np.finfo(np.float64).tiny)

    care_prior = (priors.careful - 1) * log_expit(logit) + (priors.careless - 1) * log_expit(-logit)
    cost = -np.log(chance).sum() - care_prior.sum()
    cost += (priors.strength * strength @ strength + priors.habit * habit @ habit) / 2

    by_strength = np.where(free, side * gamma * seen * (1 - seen) / chance, 0.0)
    by_logit = gamma * (1 - gamma) * (seen - guess) / chance
    by_habit = (1 - gamma) * side * guess * (1 - guess) / chance
    pull = np.bincount(answers.left, by_strength, items)
    pull -= np.bincount(answers.right, by_strength, items)
    share = expit(logit)
    care_slope = (priors.careful - 1) * (1 - share) - (priors.careless - 1) * share
    slope = np.concatenate(
        [
            priors.strength * strength - pull,
            -np.bincount(answers.judge, by_logit, judges) - care_slope,
            priors.habit * habit - np.bincount(answers.judge, by_habit, judges),
        ]
    )
    return float(cost), slope
