"""Bradley-Terry strengths from comparisons of two: P(i beats j) = s(theta_i - theta_j).

A small normal prior keeps strengths finite where one won or lost everything, or where some
were never compared with others: both are normal in pools of passages. There the prior alone says
how far they are apart, and no interval is given. A tie is half a win for each.

Only differences mean anything; strengths are given with mean 0. Intervals are for differences, and
take all comparisons of a cluster (a query, a judge) as one observation. A prior pulls differences
towards 0, and the fewer comparisons there are the more; so intervals are for many clusters on few
items, such as runs over queries, and not for the passages of one query.

`fit_crowd` takes many judges who are not equally attentive. A judge w looks at the pair with chance
gamma, and otherwise answers by a habit b for the left one:

    P(left preferred) = gamma_w s(theta_left - theta_right) + (1 - gamma_w) s(b_w)

Pairs with a known answer inform about the judge alone: there s(theta_left - theta_right) is 1 or 0.
Priors: theta normal, gamma Beta, b normal; they decide for a judge of few answers. The result is
the mode of the posterior from a fixed start; the posterior need not have one mode alone.

Sources: Bradley and Terry 1952; White 1982 for the sandwich; Efron and Tibshirani
1993, chapter 13, for percentiles of the bootstrap; judges after Chen, Bennett, Collins-Thompson and
Horvitz 2013, "Pairwise ranking aggregation in a crowdsourced setting", with habits of judges in the
place of reversed answers.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, log_expit, stdtrit

from heldout.errors import InputError
from heldout.stats.resampling import block_size, map_blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
    """

    items: int
    prior: float


def fit(totals: Floats, model: Model) -> Floats:
    """The most likely parameters, by Newton's method on all tables at once.

    Args:
        totals: shape (tables, items x items): wins by (winner, loser), a tie as half of one each.
        model: what is fitted; without a prior the maximum has to be finite.

    Returns:
        Strengths with mean 0, shape (tables, items).
    """
    items = model.items
    at = np.zeros((len(totals), items))
    cost = _cost(at, totals, model)
    close = _CLOSE * max(1.0, float(totals.sum(axis=1).max(initial=0)))
    for _ in range(_STEPS):
        slope, curve = slopes(at, totals, model)
        if np.abs(slope).max(initial=0) < close:
            break
        if not model.prior:
            curve = curve + 1 / items
        step = np.linalg.solve(curve, slope[..., np.newaxis])[..., 0].astype(np.float64)
        at, cost = _descend(at, cost, step, totals, model)
    at -= at.mean(axis=1, keepdims=True)
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
    select = worse[:, np.newaxis]
    return np.where(select, at, tried), np.where(worse, cost, costs)


def _halves(at: Floats) -> tuple[Floats, Floats]:
    """Half the differences, and the logarithms of what chances are divided by."""
    half = (at[:, :, np.newaxis] - at[:, np.newaxis, :]) / 2
    return half, np.logaddexp(half, -half)


def _cost(at: Floats, totals: Floats, model: Model) -> Floats:
    wins = totals.reshape(len(totals), model.items, model.items)
    half, scale = _halves(at)
    cost = (wins * (scale - half)).sum(axis=(1, 2))
    cost += model.prior * (at**2).sum(axis=1) / 2
    far = np.abs(at).max(axis=1, initial=0) > _LONGEST
    return np.where(far, np.inf, cost)


def slopes(at: Floats, totals: Floats, model: Model) -> tuple[Floats, Floats]:
    """First and second derivatives of minus the logarithm of likelihood and prior.

    Args:
        at: strengths, shape (tables, items).
        totals: as `fit` takes them.
        model: what is fitted.
    """
    items = model.items
    wins = totals.reshape(len(totals), items, items)
    half, scale = _halves(at)
    win, lose = np.exp(half - scale), np.exp(-half - scale)
    count = wins + np.swapaxes(wins, 1, 2)
    lead = (win - lose) / 2
    seen = (wins - np.swapaxes(wins, 1, 2)) / 2
    slope = model.prior * at + (count * lead - seen).sum(axis=2)
    weight = count * ((win + lose) / 4 - lead**2)
    curve = -weight
    everyone = np.arange(items)
    curve[:, everyone, everyone] += weight.sum(axis=2) + model.prior
    return slope, curve


PRIOR = 0.01
"""Precision of the normal prior: a standard deviation of 10, far more than strengths differ."""

_LEAST_PRIOR = 1e-6
_LEAST_WIDTH = 1e-6
_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparisons:
    """Who was compared with whom, and who won.

    Attributes:
        items: how many there are, at least 1.
        first: int, an item each, from 0.
        second: int, another item.
        won: float, 1 where the first won, 0 where the second did, 0.5 for a tie.
        cluster: int, from 0: comparisons that are not independent of each other.
        clusters: how many clusters there are.
    """

    items: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    won: Floats
    cluster: NDArray[np.int64]
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strengths:
    """Strengths of items.

    Attributes:
        values: of each item, in logits, with mean 0.
        components: items that were compared with each other, by way of others or not, have the
            same number, from 0; between components nothing but the prior says who is stronger.
        bounded: items with a way of wins from each to each other have the same number, from 0; all
            other differences would be infinite without the prior, or are not known at all.
        prior: precision of the normal prior.
    """

    values: Floats
    components: NDArray[np.int64]
    bounded: NDArray[np.int64]
    prior: float

    @property
    def separated(self) -> bool:
        """Without the prior some difference within a component would be infinite."""
        return bool(self.bounded.max(initial=-1) > self.components.max(initial=-1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences:
    """Intervals for the difference of each two items, row minus column.

    Attributes:
        values: differences, shape (items, items).
        low: lower ends; NaN where there is no interval.
        high: upper ends; NaN where there is no interval.
        level: of each interval by itself.
        clusters: how many observations there were.
    """

    values: Floats
    low: Floats
    high: Floats
    level: float
    clusters: int


def fit_strengths(comparisons: Comparisons, *, prior: float = PRIOR) -> Strengths:
    """The most likely strengths under the prior.

    Args:
        comparisons: at least one item.
        prior: precision, >= 0; 0 for none.

    Raises:
        InputError: code `no-finite-strengths`: without a prior, or with one next to nothing, and an
            item won or lost everything or was not compared with the others.
    """
    tables = _tables(comparisons)
    total = np.asarray(tables.sum(axis=0), np.float64)[np.newaxis]
    components, bounded = _structure(total[0], comparisons.items)
    if not prior and bounded.max(initial=0) > 0:
        raise _not_finite("items that won or lost everything, or were never compared")
    try:
        found = fit(total, Model(items=comparisons.items, prior=prior))[0]
    except np.linalg.LinAlgError:
        raise _not_finite("strengths that grow without an end") from None
    return Strengths(values=found, components=components, bounded=bounded, prior=prior)


def _not_finite(found: str) -> InputError:
    return InputError.of("no-finite-strengths", "comparisons", found)


def sandwich_differences(
    comparisons: Comparisons, found: Strengths, *, level: float = 0.95
) -> Differences:
    """Intervals from the curvature and the spread of what clusters say.

    The inverse curvature, on both sides of the products of each cluster's gradient, times g/(g-1);
    Student's t with g-1 degrees of freedom for g clusters. No interval is given for a difference
    that the prior alone keeps finite, nor where clusters do not differ in what they say of it.

    Args:
        comparisons: as they were given to `fit_strengths`.
        found: what it found.
        level: in (0, 1).
    """
    total = np.asarray(_tables(comparisons).sum(axis=0), np.float64)[np.newaxis]
    model = Model(items=comparisons.items, prior=found.prior)
    _, curve = slopes(found.values[np.newaxis], total, model)
    pulls = _pulls(comparisons, found.values)
    groups = comparisons.clusters
    inverse = np.linalg.pinv(curve[0], hermitian=True)
    spread = inverse @ (pulls.T @ pulls) @ inverse * (groups / max(groups - 1, 1))
    variance = np.diag(spread)
    squared = variance[:, np.newaxis] + variance - 2 * spread
    reach = np.sqrt(np.maximum(squared, 0)) * stdtrit(max(groups - 1, 1), (1 + level) / 2)
    return _differences(comparisons, found, (-reach, reach), level)


def bootstrap_differences(
    comparisons: Comparisons,
    found: Strengths,
    rng: Generator,
    *,
    level: float = 0.95,
    draws: int = 1000,
) -> Differences:
    """Intervals from clusters drawn with replacement: percentiles of the differences.

    None where `sandwich_differences` gives none, and none where an end would lie among draws in
    which the prior alone keeps the difference finite.

    Args:
        comparisons: as they were given to `fit_strengths`.
        found: what it found.
        rng: where draws come from.
        level: in (0, 1).
        draws: how many, >= 1; strengths are fitted again in each, with a prior of at least 1e-6,
            since some item may win everything in a draw.
    """
    items = comparisons.items
    if comparisons.clusters <= 1:
        none = np.zeros((items, items))
        return _differences(comparisons, found, (none, none), level)
    prior = max(found.prior, _LEAST_PRIOR)
    blocks = map_blocks(
        _fit_block,
        _tables(comparisons),
        Model(items=items, prior=prior),
        rng=rng,
        draws=draws,
        size=block_size(2 * items * items),
    )
    fitted, bounded = np.split(np.concatenate(blocks), 2, axis=1)
    low, high = np.zeros((items, items)), np.zeros((items, items))
    tails = [(1 - level) / 2, (1 + level) / 2]
    for row in range(items):
        ends = np.quantile(fitted[:, row : row + 1] - fitted, tails, axis=0)
        ends[:, (bounded[:, row : row + 1] != bounded).mean(axis=0) > tails[0]] = np.nan
        low[row], high[row] = ends - (found.values[row] - found.values)
    return _differences(comparisons, found, (low, high), level)


def _differences(
    comparisons: Comparisons, found: Strengths, reach: tuple[Floats, Floats], level: float
) -> Differences:
    values = found.values[:, np.newaxis] - found.values
    known = found.bounded[:, np.newaxis] == found.bounded
    known &= (reach[1] - reach[0] > _LEAST_WIDTH) & (comparisons.clusters > 1)
    low, high = (np.where(known, values + end, np.nan) for end in reach)
    return Differences(
        values=values, low=low, high=high, level=level, clusters=comparisons.clusters
    )


def _tables(comparisons: Comparisons) -> "csr_array":
    """Clusters by (winner, loser); a tie is half a win for each."""
    n = comparisons.items
    first, second, won = comparisons.first, comparisons.second, comparisons.won
    columns = np.concatenate([first * n + second, second * n + first])
    rows, wins = np.tile(comparisons.cluster, 2), np.concatenate([won, 1 - won])
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    seen = wins > 0
    table = (wins[seen], (rows[seen], columns[seen]))
    return csr_array(table, shape=(comparisons.clusters, n * n))


def _structure(total: Floats, items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Components, and the items of each that can be reached from each other by wins."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to load

    beats = csr_array(total.reshape(items, items) > 0)
    _, weak = connected_components(beats, directed=True, connection="weak")
    _, strong = connected_components(beats, directed=True, connection="strong")
    return weak.astype(np.int64), strong.astype(np.int64)


def _fit_block(tables: "csr_array", model: Model, rng: Generator, draws: int) -> Floats:
    """Strengths of each draw, and then the numbers of what is bounded in it."""
    clusters = tables.shape[0]
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    totals = np.asarray(weights @ tables, np.float64)
    bounded = [_structure(total, model.items)[1] for total in totals]
    return np.concatenate([fit(totals, model), bounded], axis=1)


def _pulls(comparisons: Comparisons, at: Floats) -> Floats:
    """Return what each cluster says of the slope, shape (clusters, items)."""
    first, second = comparisons.first, comparisons.second
    half = (at[first] - at[second]) / 2
    scale = np.logaddexp(half, -half)
    pull = comparisons.won - _HALF - (np.exp(half - scale) - np.exp(-half - scale)) / 2
    found: Floats = np.zeros((comparisons.clusters, len(at)))
    np.add.at(found, (comparisons.cluster, first), pull)
    np.add.at(found, (comparisons.cluster, second), -pull)
    return found


_START = 1.0
_CROWD_STEPS = 5000
_CAREFUL, _CARELESS = 4.0, 2.0
"""Of the Beta prior of gamma; strengths and habits have a normal one of precision 1."""
Indices = NDArray[np.int64]


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
    left: Indices
    right: Indices
    judge: Indices
    chose_left: NDArray[np.bool_]
    known: Floats


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


def fit_crowd(answers: CrowdAnswers) -> CrowdStrengths:
    """Return the most likely strengths and judges, of at least one item and one judge."""
    items, judges = answers.items, answers.judges
    start = np.zeros(items + 2 * judges)
    start[items : items + judges] = _START
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to load

    found = minimize(
        crowd_cost,
        start,
        args=(answers,),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _CROWD_STEPS, "maxfun": _CROWD_STEPS, "ftol": 1e-13, "gtol": 1e-7},
    )
    at = np.asarray(found.x, np.float64)
    values = at[:items]
    return CrowdStrengths(
        values=values - (values.mean() if items else 0.0),
        care=np.asarray(expit(at[items : items + judges]), np.float64),
        habit=at[items + judges :],
        converged=bool(found.success),
    )


def crowd_cost(at: Floats, answers: CrowdAnswers) -> tuple[float, Floats]:
    """Minus the logarithm of the posterior, and its gradient.

    Args:
        at: strengths, logits of gamma, habits, one after another.
        answers: what was answered.
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

    care_prior = (_CAREFUL - 1) * log_expit(logit) + (_CARELESS - 1) * log_expit(-logit)
    cost = -np.log(chance).sum() - care_prior.sum()
    cost += (strength @ strength + habit @ habit) / 2

    by_strength = np.where(free, side * gamma * seen * (1 - seen) / chance, 0.0)
    by_logit = gamma * (1 - gamma) * (seen - guess) / chance
    by_habit = (1 - gamma) * side * guess * (1 - guess) / chance
    pull = np.bincount(answers.left, by_strength, items)
    pull -= np.bincount(answers.right, by_strength, items)
    share = expit(logit)
    care_slope = (_CAREFUL - 1) * (1 - share) - (_CARELESS - 1) * share
    slope = np.concatenate(
        [
            strength - pull,
            -np.bincount(answers.judge, by_logit, judges) - care_slope,
            habit - np.bincount(answers.judge, by_habit, judges),
        ]
    )
    return float(cost), slope
