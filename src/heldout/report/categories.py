"""One run against the labels, by category, as tables and JSON (shallow-pooling, tables 1 and 2)."""

from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.preferences.category_results import CategoryResult

__all__ = ["facts", "tables", "value"]

Both = tuple[CategoryResult, CategoryResult]

_MEANS = {
    "A": "known answer first; compared with the second document",
    "B": "another document first; compared with the known answer",
}


def facts(run: str, found: Both) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    lines: list[tuple[str, str]] = [("run", run)]
    for one in found:
        share = (
            "nothing is judged" if one.share is None else f"{one.share:.1%} prefer what it shows"
        )
        lines.append((f"{one.category}", f"{_MEANS[one.category]}: {share} first"))
    return tuple(lines)


def tables(run: str, found: Both, *, level: float = 0.95) -> tuple[Table, Table]:
    """Queries of each category, and what was preferred in them."""
    return _sizes(run, found), _preferences(run, found, level)


def value(run: str, found: Both, *, level: float = 0.95) -> dict[str, Any]:
    """For JSON; shares are of the queries that decide."""
    return {
        "run": run,
        "categories": {
            one.category: {
                "queries": one.queries,
                "known_preferred": one.known_preferred,
                "other_preferred": one.other_preferred,
                "drawn": one.drawn,
                "unjudged": one.unjudged,
                "share": one.share,
                "low": one.low,
                "high": one.high,
                "p": one.p,
                **({} if one.decided else {"why": "no query decides"}),
            }
            for one in found
        },
        "share": "of the run's first document",
        "test": "binomial, exact, two-sided",
        "interval": "Clopper and Pearson",
        "level": level,
    }


def _sizes(run: str, found: Both) -> Table:
    total = sum(one.queries for one in found)
    rows: list[tuple[Cell, ...]] = [
        (one.category, _MEANS[one.category], one.queries, one.queries / total if total else None)
        for one in found
    ]
    return Table(
        title=f"Where {run} and the labels agree",
        columns=(
            Column(name="category"),
            Column(name="the run shows"),
            Column(name="queries", form="count"),
            Column(name="share", form="share"),
        ),
        rows=(*rows, ("total", "", total, 1.0 if total else None)),
    )


def _preferences(run: str, found: Both, level: float) -> Table:
    total = sum(one.decided for one in found)
    return Table(
        title=f"What people prefer where {run} and the labels agree, and where not",
        columns=(
            Column(name="category"),
            Column(name="preferred"),
            Column(name="queries", form="count"),
            Column(name="of all", form="share"),
            Column(name="of category", form="share"),
            Column(name="low", form="share"),
            Column(name="high", form="share"),
            Column(name="p", form="p"),
        ),
        rows=tuple(row for one in found for row in _rows(one, total)),
        notes=(
            *(
                f"{one.category}: {one.drawn:,} queries with as many votes for either, "
                f"{one.unjudged:,} without a vote"
                for one in found
                if one.drawn or one.unjudged
            ),
            (
                f"low, high: {level:.0%} by Clopper and Pearson, of what the run shows first. "
                "p: exact binomial, two-sided, each by itself."
            ),
        ),
    )


def _rows(one: CategoryResult, total: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    def row(name: str, count: int, *, shown: bool) -> tuple[Cell, ...]:
        ends = (one.low, one.high, one.p) if shown else (None, None, None)
        of_category = count / one.decided if one.decided else None
        return (one.category, name, count, count / total if total else None, of_category, *ends)

    return (
        row("known answer", one.known_preferred, shown=one.category == "A"),
        row("other passage", one.other_preferred, shown=one.category == "B"),
    )
