"""How alike runs rank documents: rank-biased overlap and tau of each two, query by query.

Scores say how good rankings are, these say whether they are the same: two runs may have one score
and no document in common. No judgments are needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from typing import Any

import numpy as np

from heldout.answers.table import Column, Table
from heldout.charts.axes import place_axis
from heldout.charts.plot import SHADES, Plot, Row
from heldout.charts.svg import MUTED
from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.stats.rank_correlation import RboTies, kendall, rank_biased_overlap, tau_ap_b
from heldout.stats.results import Ask
from heldout.stats.student import compare_mean
from heldout.trec.tops import TiedTops

# Agreement of each two of many, as a picture: names down and across, dark where they agree.


_LEAST = (0.8, 0.6, 0.4, 0.2)
"""From which value on a cell has which shade; below the last it is left empty."""


def matrix_spec(
    names: Sequence[str], values: Mapping[tuple[str, str], float | None], what: str
) -> Plot:
    """A cell below the diagonal for each two; a cross where nothing is known of them.

    Args:
        names: in order; at least two.
        values: by names, the earlier of the two first; up to 1.
        what: what the values are, for the key.
    """
    plot = Plot(
        x=place_axis(len(names)),
        rows=[Row(name=f"{name} · {place}") for place, name in enumerate(names, 1)],
        head=what,
        square=True,
    )
    for row, name in enumerate(names):
        for column, other in enumerate(names[:row]):
            value = values.get((other, name))
            if value is None:
                plot.text(column + 1, row, "×", MUTED)
                continue
            shades = zip(SHADES, _LEAST, strict=True)
            colour = next((colour for colour, least in shades if value >= least), None)
            if colour is not None:
                tip = f"{other} and {name}: {what} {value:.3f}"
                plot.box((column + 0.5, column + 1.5), (row - 0.5, row + 0.5), colour, tip)
    plot.shades([f"from {least:g}" for least in _LEAST])
    return plot


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


# How alike runs rank, as tables, a picture and JSON.

_TIES = {
    "w": "documents with equal scores count as equally good",
    "a": "the order of documents with equal scores is not known: the mean over all orders",
    "b": "as a, corrected so that a ranking agrees with itself",
}


def facts(found: RunAgreement) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who is most and least alike."""
    known = sorted(
        ((pair.rbo.value, pair) for pair in found.pairs if pair.rbo.value is not None),
        key=lambda one: one[0],
    )
    lines = [("runs", f"{len(found.runs):,}, the first {found.depth:,} documents of each query")]
    if not known:
        return (*lines, ("alike", "no two runs answer the same query"))
    lines.append(("alike", _tell(known[-1][1])))
    if len(known) > 1:
        lines.append(("unlike", _tell(known[0][1])))
    return tuple(lines)


def tables(found: RunAgreement) -> tuple[Table, ...]:
    """Each two runs."""
    return (
        Table(
            title=f"How alike each two of {len(found.runs):,} runs rank",
            columns=(
                Column(name="run"),
                Column(name="other run"),
                Column(name="queries", form="count"),
                *(
                    Column(name=name, form="score", decimals=3)
                    for name in ("RBO", "low", "high", "shared", "tau", "low", "high", "tau AP")
                ),
            ),
            rows=tuple(
                (
                    pair.first,
                    pair.second,
                    pair.queries,
                    pair.rbo.value,
                    pair.rbo.low,
                    pair.rbo.high,
                    pair.shared.value,
                    pair.tau.value,
                    pair.tau.low,
                    pair.tau.high,
                    pair.tau_ap.value,
                )
                for pair in found.pairs
            ),
            notes=tuple(_notes(found)),
        ),
    )


def title(found: RunAgreement) -> str:
    """What the picture shows."""
    return f"Rank-biased overlap of each two of {len(found.runs):,} runs, mean over queries"


def spec(found: RunAgreement) -> Plot:
    """RBO of each two runs."""
    values = {(pair.first, pair.second): pair.rbo.value for pair in found.pairs}
    return matrix_spec(found.runs, values, f"rank-biased overlap, p = {found.p:g}")


def value(found: RunAgreement) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "runs": list(found.runs),
        "depth": found.depth,
        "p": found.p,
        "ties": found.ties,
        "tied": list(found.tied),
        "level": found.level,
        "coefficients": {
            "rbo": "rank-biased overlap, extrapolated",
            "tau": "Kendall's tau-b over the documents that both list",
            "tau_ap": "tau_AP,b over the same",
        },
        "interval": "Student's t over queries, each by itself",
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "queries": pair.queries,
                "rbo": _run_agreement_mean(pair.rbo),
                "shared": _run_agreement_mean(pair.shared),
                "tau": _run_agreement_mean(pair.tau),
                "tau_ap": _run_agreement_mean(pair.tau_ap),
            }
            for pair in found.pairs
        ],
        "digest": found.digest,
    }


def _run_agreement_mean(found: QueryMean) -> dict[str, Any]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "queries": found.queries,
        "why": found.why,
    }


def _tell(pair: RunPair) -> str:
    queries = "1 query" if pair.queries == 1 else f"{pair.queries:,} queries"
    return f"{pair.first} and {pair.second}, RBO {pair.rbo.value:.3f}, on {queries}"


def _notes(found: RunAgreement) -> list[str]:
    notes = [
        f"RBO: rank-biased overlap, extrapolated, p = {found.p:g}; {_TIES[found.ties]}",
        (
            f"the first {found.depth:,} documents of each query, and those that tie with the last;"
            f" {max(found.tied):.1%} of a run's documents have the score of another, at most"
        ),
        "shared: documents in both, of those of the shorter list",
        "every figure is a mean over the queries that both answer",
        (
            "tau: Kendall's tau-b, tau AP: tau_AP,b, over the documents of a query that both list;"
            " queries with fewer than two are left out of these"
        ),
        f"low, high: {found.level:.0%} each by itself, Student's t over queries; nothing is tested",
    ]
    means = [mean for pair in found.pairs for mean in (pair.rbo, pair.tau, pair.tau_ap)]
    undefined = {mean.why for mean in means if mean.why}
    return [*notes, *(f"undefined: {why}" for why in sorted(undefined))]
