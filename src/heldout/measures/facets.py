"""Fairness over queries: the worst group of queries, and the gap between the best and the worst.

A mean over all queries hides a group that a system serves badly. Each of the two summaries is a
mean again, over weighted queries, so that whoever has the scores by query can check it.
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

__all__ = ["Summary", "Weighting", "weigh_facets"]

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
