"""How alike runs rank, as tables, a picture and JSON."""

from typing import Any

from heldout.answers.table import Column, Table
from heldout.report.agreement_chart import matrix_spec
from heldout.validity.run_agreement import QueryMean, RunAgreement, RunPair

__all__ = ["facts", "spec", "tables", "title", "value"]

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


def spec(found: RunAgreement) -> dict[str, Any]:
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
                "rbo": _mean(pair.rbo),
                "shared": _mean(pair.shared),
                "tau": _mean(pair.tau),
                "tau_ap": _mean(pair.tau_ap),
            }
            for pair in found.pairs
        ],
        "digest": found.digest,
    }


def _mean(found: QueryMean) -> dict[str, Any]:
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
