"""How alike runs rank documents: rank-biased overlap and tau of each two, query by query.

Scores say how good rankings are, these say whether they are the same: two runs may have one score
and no document in common. No judgments are needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations

import numpy as np

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.stats.rank_correlation import RboTies, kendall, rank_biased_overlap, tau_ap_b
from heldout.stats.results import Ask
from heldout.stats.student import compare_mean
from heldout.trec.tied_tops import TiedTops

__all__ = ["QueryMean", "RunAgreement", "RunPair", "run_agreement"]

Ranking = tuple[tuple[str, ...], ...]
_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMean:
    """A mean over queries.

    Attributes:
        value: `None` where it is defined for no query.
        low, high: Student's t interval over queries; `None` where undefined.
        queries: for how many it is defined.
        why: why there is no value or no interval, else `None`.
    """

    value: float | None
    low: float | None
    high: float | None
    queries: int
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair:
    """Two runs on the queries that both answer.

    Attributes:
        first, second: their names.
        queries: how many both answer.
        rbo: rank-biased overlap, extrapolated.
        shared: documents in both tops, as a share of those of the shorter one.
        tau: Kendall's tau-b over the documents of a query that both list.
        tau_ap: AP correlation tau_AP,b over the same.
    """

    first: str
    second: str
    queries: int
    rbo: QueryMean
    shared: QueryMean
    tau: QueryMean
    tau_ap: QueryMean


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgreement:
    """How alike runs rank.

    Attributes:
        runs: names.
        pairs: each two, in the order of `runs`.
        p: persistence of RBO.
        ties: what documents with equal scores mean to RBO.
        depth: documents of each query that were looked at, more where some tie with the last.
        tied: of each run, the share of its looked-at documents whose score another one has too;
            0 without a document.
        level: of the intervals, each by itself.
        digest: of all that was looked at.
    """

    runs: tuple[str, ...]
    pairs: tuple[RunPair, ...]
    p: float
    ties: RboTies
    depth: int
    tied: tuple[float, ...]
    level: float
    digest: Digest


def run_agreement(
    runs: Mapping[str, TiedTops],
    *,
    depth: int,
    p: float = 0.9,
    ties: RboTies = "a",
    level: float = 0.95,
) -> RunAgreement:
    """Compare each two runs on the queries that both answer.

    Args:
        runs: name -> query -> groups of documents with equal scores, the best first.
        depth: how deep those were read, for the report.
        p: persistence, in (0, 1): the first 1 / (1 - p) documents have most of the weight.
        ties: what equal scores mean to RBO.
        level: of the intervals, in (0, 1).

    Raises:
        InputError: codes `too-few-systems`, `bad-persistence`.
    """
    if len(runs) < _PAIR:
        raise InputError(
            Problem(
                code="too-few-systems",
                path="--runs",
                found=f"{len(runs)}: {', '.join(runs)}",
                expected="at least two runs",
            )
        )
    pairs = []
    for first, second in combinations(runs, 2):
        common = [query for query in runs[first] if query in runs[second]]
        rows = [_compare(runs[first][q], runs[second][q], p, ties) for q in common]
        means = [
            _mean([row[n] for row in rows], level, why, least)
            for n, (why, least) in enumerate(zip(_WHY, _LEAST, strict=True))
        ]
        pairs.append(
            RunPair(
                first=first,
                second=second,
                queries=len(common),
                rbo=means[0],
                shared=means[1],
                tau=means[2],
                tau_ap=means[3],
            )
        )
    return RunAgreement(
        runs=tuple(runs),
        pairs=tuple(pairs),
        p=p,
        ties=ties,
        depth=depth,
        tied=tuple(_tied(tops) for tops in runs.values()),
        level=level,
        digest=Digest(
            sha256(repr({n: dict(tops) for n, tops in runs.items()}).encode()).hexdigest()
        ),
    )


_NONE = "no query that both answer"
_FEW = "no query with two documents in both that both tell apart"
_WHY = (_NONE, _NONE, _FEW, _FEW)
_LEAST = (0.0, 0.0, -1.0, -1.0)
"""The smallest value that each can have; the largest is 1."""


def _compare(first: Ranking, second: Ranking, p: float, ties: RboTies) -> list[float | None]:
    """RBO, share of shared documents, tau and tau_AP on one query."""
    places = [
        {document: -place for place, group in enumerate(ranking) for document in group}
        for ranking in (first, second)
    ]
    both = [document for document in places[0] if document in places[1]]
    x, y = (np.array([place[document] for document in both], np.float64) for place in places)
    return [
        rank_biased_overlap(first, second, p, ties=ties).ext,
        len(both) / min(map(len, places)),
        kendall(x, y),
        tau_ap_b(x, y),
    ]


def _mean(values: Sequence[float | None], level: float, why: str, least: float) -> QueryMean:
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return QueryMean(value=None, low=None, high=None, queries=0, why=why)
    if np.ptp(known) == 0:
        told = "one query" if len(known) == 1 else "the same on every query"
        return QueryMean(value=float(known[0]), low=None, high=None, queries=len(known), why=told)
    found = compare_mean(known, Ask(alternative="two-sided", level=level))
    # No mean lies outside of its scale, so a cut interval holds the truth as often
    low = None if found.low is None else max(found.low, least)
    high = None if found.high is None else min(found.high, 1.0)
    return QueryMean(value=found.difference, low=low, high=high, queries=len(known))


def _tied(tops: TiedTops) -> float:
    sizes = [len(group) for ranking in tops.values() for group in ranking]
    return sum(size for size in sizes if size > 1) / max(sum(sizes), 1)
