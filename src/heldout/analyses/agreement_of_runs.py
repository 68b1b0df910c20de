"""How alike runs rank documents: rank-biased overlap and tau of each two, query by query.

Scores say how good rankings are, these say whether they are the same: two runs may have one score
and no document in common. No judgments are needed.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations
from typing import Self

import numpy as np

from heldout.answers.table import Cell, Table, ends_first
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow, shade
from heldout.errors import InputError
from heldout.ids import Digest
from heldout.stats import results, student
from heldout.stats.rank_correlation import RboTies, kendall, rank_biased_overlap, tau_ap_b
from heldout.trec.orders import Order
from heldout.trec.tops import TiedTops

Interval = tuple[float, float]
Ranking = tuple[tuple[str, ...], ...]
_PAIR = 2
_LEAST = (0.8, 0.6, 0.4, 0.2)
"""From which value on a cell has which shade; below the last it is left empty."""


def matrix_chart(
    names: Sequence[str], values: Mapping[tuple[str, str], float | None], what: str
) -> Plot:
    """A cell below the diagonal for each two; a cross where nothing is known of them.

    Args:
        names: in order; at least two.
        values: by names, the earlier of the two first; up to 1.
        what: what the values are, for the key.
    """
    plot = Plot(
        x=axes.rank_axis(len(names)),
        rows=[PlotRow(name=f"{name} · {position}") for position, name in enumerate(names, 1)],
        head=what,
        square=True,
    )
    for row, name in enumerate(names):
        for column, other in enumerate(names[:row]):
            value = values.get((other, name))
            if value is None:
                plot.text(column + 1, row, "×", svg.MUTED)
                continue
            if colour := shade(value, _LEAST):
                tip = f"{other} and {name}: {what} {value:.3f}"
                plot.box((column + 0.5, column + 1.5), (row - 0.5, row + 0.5), colour, tip)
    plot.shades([f"from {least:g}" for least in _LEAST])
    return plot


@dataclass(frozen=True, slots=True, kw_only=True)
class Tops:
    """The first documents of runs.

    Attributes:
        runs: by name, then by query.
        depth: documents of each query, and those that tie with the last of them.
        orders: of the documents, each once.
        facts: how they are ordered, in lines of `name      what there is to say`.
    """

    runs: Mapping[str, TiedTops]
    depth: int = 100
    orders: tuple[Order, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Queries that some run answers."""
        return len(set().union(*self.runs.values()))

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        part = {
            name: {query: top for query, top in tops.items() if query in queries}
            for name, tops in self.runs.items()
        }
        return replace(self, runs=part)


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
        raise InputError.of(
            "too-few-systems", "--runs", f"{len(runs)}: {', '.join(runs)}", "at least two runs"
        )
    pairs = []
    for first, second in combinations(runs, 2):
        common = [query for query in runs[first] if query in runs[second]]
        rows = [_compare(runs[first][q], runs[second][q], p, ties) for q in common]
        means = {
            name: _mean([row[name] for row in rows], level, why, least)
            for name, (why, least) in _COEFFICIENTS.items()
        }
        pairs.append(RunPair(first=first, second=second, queries=len(common), **means))
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
_FEW = "no query has two documents that both runs rank and that both place differently"
_COEFFICIENTS: Mapping[str, tuple[str, float]] = {
    "rbo": (_NONE, 0.0),
    "shared": (_NONE, 0.0),
    "tau": (_FEW, -1.0),
    "tau_ap": (_FEW, -1.0),
}
"""Why a coefficient is undefined, and the smallest value that it can have; the largest is 1."""


def _compare(first: Ranking, second: Ranking, p: float, ties: RboTies) -> dict[str, float | None]:
    """The coefficients on one query."""
    positions = [
        {document: -position for position, group in enumerate(ranking) for document in group}
        for ranking in (first, second)
    ]
    both = [document for document in positions[0] if document in positions[1]]
    x, y = (
        np.array([position[document] for document in both], np.float64) for position in positions
    )
    return {
        "rbo": rank_biased_overlap(first, second, p, ties=ties).ext,
        "shared": len(both) / min(map(len, positions)),
        "tau": kendall(x, y),
        "tau_ap": tau_ap_b(x, y),
    }


def _mean(values: Sequence[float | None], level: float, why: str, least: float) -> QueryMean:
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return QueryMean(value=None, low=None, high=None, queries=0, why=why)
    if np.ptp(known) == 0:
        why = "one query" if len(known) == 1 else "the same on every query"
        return QueryMean(value=float(known[0]), low=None, high=None, queries=len(known), why=why)
    found = student.compare_mean(known, results.AskedTest(alternative="two-sided", level=level))
    # No mean lies outside of its scale, so a cut interval holds the truth as often
    low = None if found.low is None else max(found.low, least)
    high = None if found.high is None else min(found.high, 1.0)
    return QueryMean(value=found.difference, low=low, high=high, queries=len(known))


def _tied(tops: TiedTops) -> float:
    sizes = [len(group) for ranking in tops.values() for group in ranking]
    return sum(size for size in sizes if size > 1) / max(sum(sizes), 1)


_TIES = {
    "w": "documents with equal scores count as equally good",
    "a": "the order of documents with equal scores is not known: the mean over all orders",
    "b": "as a, corrected so that a ranking agrees with itself",
}


def headline(found: RunAgreement) -> str:
    """Return how alike the only two runs rank, or which two are most alike and which least."""
    return write("agreement.runs_headline", found=found, **_ends(found))


def _ends(found: RunAgreement) -> dict[str, object]:
    """Count pairs with a rank-biased overlap; return the least and the most alike too."""
    known = [(pair.rbo.value, pair) for pair in found.pairs if pair.rbo.value is not None]
    known.sort(key=lambda one: one[0])
    ends = {"least": known[0][1], "most": known[-1][1]} if known else {}
    return {"known": len(known), **ends}


def summary(found: RunAgreement) -> tuple[tuple[str, str], ...]:
    """Return which runs are most and least alike."""
    return write_facts("agreement.runs_summary", found=found, **_ends(found))


def tables(found: RunAgreement) -> tuple[Table, ...]:
    """Tabulate each two runs."""
    means = [mean for pair in found.pairs for mean in (pair.rbo, pair.tau, pair.tau_ap)]
    table = write_table(
        "agreement.runs",
        tuple(map(_pair_row, found.pairs)),
        first=ends_first([pair.rbo.value for pair in found.pairs]),
        found=found,
        ties=_TIES[found.ties],
        undefined=sorted({mean.why for mean in means if mean.why}),
    )
    return (table,)


def _pair_row(pair: RunPair) -> tuple[Cell, ...]:
    rbo, tau = pair.rbo, pair.tau
    return (
        *(pair.first, pair.second, pair.queries),
        *(rbo.value, rbo.low, rbo.high, pair.shared.value),
        *(tau.value, tau.low, tau.high, pair.tau_ap.value),
    )


def title(found: RunAgreement) -> str:
    """Return what the picture shows."""
    return f"Rank-biased overlap of each two of {len(found.runs):,} runs, mean over queries"


def chart(found: RunAgreement) -> Plot:
    """RBO of each two runs."""
    values = {(pair.first, pair.second): pair.rbo.value for pair in found.pairs}
    return matrix_chart(found.runs, values, f"rank-biased overlap, p = {found.p:g}")
