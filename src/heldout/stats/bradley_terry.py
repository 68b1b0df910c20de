"""Bradley-Terry strengths from comparisons of two: P(i beats j) = s(theta_i - theta_j).

A small normal prior keeps strengths finite where somebody won or lost everything, or where some
were never compared with others: both are normal in pools of passages. There the prior alone says
how far they are apart, and no interval is given. Ties follow Davidson: P(tie) is in proportion to
nu times the root of both chances.

Only differences mean anything; strengths are given with mean 0. Intervals are for differences, and
take all comparisons of a cluster (a query, a judge) as one observation. A prior pulls differences
towards 0, and the fewer comparisons there are the more; so intervals are for many clusters on few
items, such as runs over queries, and not for the passages of one query.

Sources: Bradley and Terry 1952; Davidson 1970; White 1982 for the sandwich; Efron and Tibshirani
1993, chapter 13, for percentiles of the bootstrap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit

from heldout.errors import InputError
from heldout.stats.blocks import block_size, map_blocks
from heldout.stats.checks import problem_of
from heldout.stats.davidson import Model, fit, slopes

__all__ = [
    "PRIOR",
    "Comparisons",
    "Differences",
    "Strengths",
    "bootstrap_differences",
    "fit_strengths",
    "sandwich_differences",
]

PRIOR = 0.01
"""Precision of the normal prior: a standard deviation of 10, far more than strengths differ."""

_LEAST_PRIOR = 1e-6
_LEAST_WIDTH = 1e-6
_TIE = 0.5
Floats = NDArray[np.float64]


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
        nu: Davidson's, 0 where no tie was seen; `None` where ties counted as half a win each.
        components: items that were compared with each other, by way of others or not, have the
            same number, from 0; between components nothing but the prior says who is stronger.
        bounded: items with a way of wins from each to each other have the same number, from 0; all
            other differences would be infinite without the prior, or are not known at all.
        prior: precision of the normal prior.
    """

    values: Floats
    nu: float | None
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


def fit_strengths(
    comparisons: Comparisons, *, prior: float = PRIOR, ties: bool = False
) -> Strengths:
    """The most likely strengths under the prior.

    Args:
        comparisons: at least one item.
        prior: precision, >= 0; 0 for none.
        ties: fit ties by Davidson's model; otherwise a tie is half a win for each.

    Raises:
        InputError: code `no-finite-strengths`: without a prior, and an item won or lost everything
            or was not compared with the others.
    """
    tables = _tables(comparisons)
    total = np.asarray(tables.sum(axis=0), np.float64)[np.newaxis]
    components, bounded = _structure(total[0], comparisons.items)
    if not prior and bounded.max(initial=0) > 0:
        raise InputError(
            problem_of(
                "no-finite-strengths",
                "comparisons",
                "items that won or lost everything, or were never compared",
                "a way from each item to each other by wins",
                hint="a small prior keeps strengths finite",
            )
        )
    drawn = ties and bool(total[0, comparisons.items**2 :].any())
    found = fit(total, Model(items=comparisons.items, prior=prior, ties=drawn))[0]
    nu = float(np.exp(found[-1])) if drawn else 0.0
    return Strengths(
        values=found[: comparisons.items],
        nu=nu if ties else None,
        components=components,
        bounded=bounded,
        prior=prior,
    )


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
    items = comparisons.items
    model = Model(items=items, prior=found.prior, ties=bool(found.nu))
    at = np.append(found.values, np.log(found.nu)) if found.nu else found.values
    tables = _tables(comparisons)
    total = np.asarray(tables.sum(axis=0), np.float64)[np.newaxis]
    _, curve = slopes(at[np.newaxis], total, model)
    pulls = _pulls(comparisons, at, model)
    groups = comparisons.clusters
    inverse = np.linalg.pinv(curve[0], hermitian=True)
    spread = inverse @ (pulls.T @ pulls) @ inverse * (groups / max(groups - 1, 1))
    variance = np.diag(spread)[:items]
    squared = variance[:, np.newaxis] + variance - 2 * spread[:items, :items]
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
        draws: how many, >= 1; strengths are fitted anew in each, with a prior of at least 1e-6,
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
        Model(items=items, prior=prior, ties=bool(found.nu)),
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


def _tables(comparisons: Comparisons) -> csr_array:
    """Clusters by (winner, loser) and then (item, item) of ties; a tie stands in both orders."""
    n = comparisons.items
    first, second, won = comparisons.first, comparisons.second, comparisons.won
    winner, loser = np.where(won > _TIE, first, second), np.where(won > _TIE, second, first)
    tied = won == _TIE
    cells = np.where(tied, n * n, 0) + winner * n + loser
    turned = (n * n + loser * n + winner)[tied]
    rows = np.concatenate([comparisons.cluster, comparisons.cluster[tied]])
    columns = np.concatenate([cells, turned])
    counts = np.ones(len(rows))
    return csr_array((counts, (rows, columns)), shape=(comparisons.clusters, 2 * n * n))


def _structure(total: Floats, items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Components, and the items of each that can be reached from each other by wins."""
    wins, tied = total.reshape(2, items, items)
    beats = csr_array((wins + tied) > 0)
    _, weak = connected_components(beats, directed=True, connection="weak")
    _, strong = connected_components(beats, directed=True, connection="strong")
    return weak.astype(np.int64), strong.astype(np.int64)


def _fit_block(tables: csr_array, model: Model, rng: Generator, draws: int) -> Floats:
    """Strengths of each draw, and then the numbers of what is bounded in it."""
    clusters = tables.shape[0]
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    totals = np.asarray(weights @ tables, np.float64)
    bounded = [_structure(total, model.items)[1] for total in totals]
    return np.concatenate([fit(totals, model)[:, : model.items], bounded], axis=1)


def _pulls(comparisons: Comparisons, at: Floats, model: Model) -> Floats:
    """What each cluster says of the slope, shape (clusters, parameters)."""
    first, second, won = comparisons.first, comparisons.second, comparisons.won
    half = (at[first] - at[second]) / 2
    log_nu = at[-1] if model.ties else -np.inf
    scale = np.logaddexp(np.logaddexp(half, -half), log_nu)
    pull = (won - _TIE) - (np.exp(half - scale) - np.exp(-half - scale)) / 2
    found: Floats = np.zeros((comparisons.clusters, len(at)))
    np.add.at(found, (comparisons.cluster, first), pull)
    np.add.at(found, (comparisons.cluster, second), -pull)
    if model.ties:
        np.add.at(found[:, -1], comparisons.cluster, (won == _TIE) - np.exp(log_nu - scale))
    return found
