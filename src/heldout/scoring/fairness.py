"""Attention-weighted rank fairness (AWRF): how near the exposure of groups comes to a target.

A reader pays less attention to lower positions. The attention that the documents of each group
get, as a share of what all documents of known groups get, is the exposure of the groups; AWRF is
1 - JSD(exposure, target), with the Jensen-Shannon divergence in natural logarithms, not its square
root. So the lowest AWRF of a list is 1 - ln 2.

Source: TREC Fair Ranking 2021 and 2022, as the organisers' code computes it (fair-trec on GitHub:
trec2022-fair-public, wptrec/metrics/awrf.py and common.py; trec2021-fair-public, metrics.py), after
Sapiezynski et al., "Quantifying the Impact of User Attention on Fair Group Representation in Ranked
Lists", WWW 2019 companion, whose attention is geometric.

Fairness over queries: the worst group of queries, and the gap between the best and the worst. A
mean over all queries hides a group that a system serves badly. Each of the two summaries is a mean
again, over weighted queries, so that whoever has the scores by query can check it.
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, quote
from heldout.scoring.measures import Params
from heldout.trec.groups import UNKNOWN, DocumentGroups
from heldout.trec.scans import Signature

Summary = Literal["mean", "worst", "gap"]
"""`mean`: over all queries. `worst`: the mean over the group whose mean is lowest. `gap`: the mean
of the best group less that of the worst."""

_EQUAL = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """Which queries a summary is a mean over, and how much each of them counts.

    Attributes:
        groups: the worst group, or the best and the worst.
        weights: query -> factor of its score; the summary is the mean of the products.
    """

    groups: tuple[str, ...]
    weights: Mapping[str, float]


def weigh_facets(
    per_query: Mapping[str, float],
    facets: Mapping[str, AbstractSet[str]],
    *,
    summary: Summary,
    least: int,
) -> Weighting | None:
    """Find the worst group, or the best and the worst.

    Of groups with equal means the first by name is taken.

    Args:
        per_query: query -> score, higher is better.
        facets: group -> queries; a query may be in several, and those without a score are ignored.
        summary: `worst` or `gap`.
        least: fewest queries with a score that a group must have, else it is left out.

    Returns:
        `None` where no group is large enough, for a gap where fewer than two are.
    """
    groups = {name: facets[name] & per_query.keys() for name in sorted(facets)}
    means = {
        name: math.fsum(per_query[query] for query in queries) / len(queries)
        for name, queries in groups.items()
        if len(queries) >= max(least, 1)
    }
    if len(means) < (2 if summary == "gap" else 1):
        return None
    worst = min(means, key=means.__getitem__)
    if summary == "worst":
        return Weighting(groups=(worst,), weights=dict.fromkeys(sorted(groups[worst]), 1.0))
    best = max(means, key=means.__getitem__)
    if means[best] - means[worst] < _EQUAL:
        best = next(name for name in means if name != worst)
        return _weigh_gap(groups, best, worst, factor=0.0)
    return _weigh_gap(groups, best, worst, factor=1.0)


def _weigh_gap(
    groups: Mapping[str, AbstractSet[str]], best: str, worst: str, *, factor: float
) -> Weighting:
    """Weights under which the mean over the queries of both groups is the difference of theirs."""
    queries = sorted(groups[best] | groups[worst])
    up = factor * len(queries) / len(groups[best])
    down = factor * len(queries) / len(groups[worst])
    return Weighting(
        groups=(best, worst),
        weights={q: up * (q in groups[best]) - down * (q in groups[worst]) for q in queries},
    )


_CLOSE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposures:
    """The tops of a run beside the groups of documents.

    Attributes:
        signature: of the run; its depth bounds the cutoff.
        groups: of the documents.
        target: float64, shape (groups,), the exposure that is fair; from `read_target`.
    """

    signature: Signature
    groups: DocumentGroups
    target: NDArray[np.float64]

    def awrf(self, params: Params) -> Mapping[str, float]:
        """Query -> AWRF, 1 - ln 2 to 1; one without a document of a known group is not there.

        A document of no known group keeps its position, and its attention counts for nobody.

        Args:
            params: `cutoff`, `weight`, and `p` where the weight is geometric.
        """
        positions = self.groups.find(self.signature.documents[:, : params.cutoff])
        profiles = self.groups.profiles
        weights = position_weights(params, positions.shape[1])
        # A row more than there are profiles takes what unknown documents get.
        attention = np.zeros((len(positions), len(profiles) + 1))
        rows = np.arange(len(positions))
        for column, weight in enumerate(weights.tolist()):
            attention[rows, positions[:, column]] += weight  # UNKNOWN is the last one
        known = attention[:, :UNKNOWN] @ profiles
        total = known.sum(axis=1)
        defined = total > 0
        exposure = known[defined] / total[defined, np.newaxis]
        fairness = 1 - jensen_shannon(exposure, self.target)
        queries = np.flatnonzero(defined).tolist()
        return {
            self.signature.queries[query]: value
            for query, value in zip(queries, fairness.tolist(), strict=True)
        }


def position_weights(params: Params, depth: int) -> NDArray[np.float64]:
    """The attention that positions 1 to `depth` get, up to a factor that AWRF does not see.

    Args:
        params: `weight` is `log2`: 1 / log2(max(position, 2)), as at TREC, so that the first two
            count alike; or `geometric`: p^(position - 1), as in RBP.
        depth: how many positions.
    """
    positions = np.arange(1, depth + 1)
    if params.weight == "geometric":
        return np.power(params.p, positions - 1)
    return np.array([1 / math.log2(max(position, 2)) for position in positions.tolist()])


def jensen_shannon(shares: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Jensen-Shannon divergence of each row of shares from the target, 0 to ln 2.

    Args:
        shares: float64, shape (rows, groups), each row sums to 1.
        target: float64, shape (groups,), sums to 1.

    Returns:
        float64, shape (rows,).
    """
    middle = (shares + target) / 2
    divergence = (_relative_entropy(shares, middle) + _relative_entropy(target, middle)) / 2
    clipped: NDArray[np.float64] = np.clip(divergence, 0, math.log(2))
    return clipped


def _relative_entropy(
    shares: NDArray[np.float64], middle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum of share * ln(share / middle); a group without a share adds 0."""
    shares = np.broadcast_to(shares, middle.shape)
    some = shares > 0
    ratio = np.divide(shares, middle, out=np.ones_like(middle), where=some)
    found: NDArray[np.float64] = (shares * np.log(ratio)).sum(axis=1)
    return found


def read_target(
    groups: DocumentGroups, declared: Mapping[str, float] | None, *, path: str
) -> NDArray[np.float64]:
    """The target as shares by group, in the order of the groups.

    Args:
        groups: of the documents.
        declared: group -> share; `None` for the share that each group has of all documents.
        path: the file of the groups, for the error.

    Raises:
        InputError: code `unknown-group`: the target and the file do not name the same groups.
    """
    shares = groups.shares() if declared is None else dict(declared)
    different = sorted(shares.keys() ^ set(groups.names))
    if different:
        where = "the target" if different[0] in shares else "the file"
        raise InputError.of("unknown-group", path, f"group {quote(different[0])} in {where} only")
    target = np.array([shares[name] for name in groups.names], np.float64)
    if (target < 0).any() or not math.isclose(math.fsum(target.tolist()), 1, abs_tol=_CLOSE):
        raise ValueError(shares)
    normalised: NDArray[np.float64] = target / target.sum()
    return normalised
