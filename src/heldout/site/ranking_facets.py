"""Standings by kind of query, in the section "Confidence"."""

from collections.abc import Mapping
from dataclasses import dataclass

from heldout.board.log.figures import FacetRanks, Facets
from heldout.board.log.measured import Measured
from heldout.site.rows import TableRow, say_range
from heldout.site.sentences import name_entry
from heldout.site.wording import Part, clean, count

__all__ = ["FacetRow", "FacetTable", "make_facet_tables", "note_facets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetRow:
    """An entry on a facet: its rank there, and the range of it in words."""

    rank: int
    ranks: str
    entry: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetTable:
    """The standings on a facet.

    Attributes:
        facet: its name, cleaned; after that of its view where several views have some.
        queries: how many, in words.
        rows: compared entries, the best first.
    """

    facet: str
    queries: str
    rows: tuple[FacetRow, ...]


def make_facet_tables(measured: Measured, known: Mapping[str, TableRow]) -> tuple[FacetTable, ...]:
    """A table for each facet of which something is told.

    Args:
        measured: what was told.
        known: id -> row of the table, the best first.
    """
    facets = measured.figures.facets
    told = () if facets is None else facets.told
    several = len({one.of for one in told}) > 1
    return tuple(_table(one, measured, known, several=several) for one in told)


def _table(
    one: FacetRanks, measured: Measured, known: Mapping[str, TableRow], *, several: bool
) -> FacetTable:
    place = {name: at for at, name in enumerate(measured.entries)}
    shown = sorted(
        (one.rank[place[name]], at, name) for at, name in enumerate(known) if name in place
    )
    return FacetTable(
        facet=clean(f"{one.of}: {one.facet}" if several else one.facet),
        queries=count(one.queries, "query", "queries"),
        rows=tuple(
            FacetRow(
                rank=rank,
                ranks=say_range(one.low[place[name]], one.high[place[name]]),
                entry=name_entry(known[name]),
            )
            for rank, _, name in shown
        ),
    )


def note_facets(facets: Facets | None) -> list[str]:
    """The test, its correction and its family, and what is withheld with the reason."""
    notes = []
    if facets is not None and facets.told:
        told = len(facets.told)
        notes.append(
            f"Kinds of queries: ranges as above, on the queries of each of {count(told, 'kind')}. "
            f"All ranges of all kinds hold together in {facets.level:.0%} of samples of queries: "
            f"max-t over {2 * facets.pairs:,} hypotheses on each ({facets.flips:,} flips drawn), "
            f"Bonferroni over the kinds. Two entries whose scores differ for fewer than 10 queries "
            "of a kind are not compared on it. That an entry ranks higher on one kind than on "
            "another is no evidence that it is better there: read the ranges."
        )
    if facets is not None and facets.withheld:
        names = ", ".join(map(clean, facets.withheld))
        notes.append(
            f"Withheld, for they have fewer than {facets.least} queries: {names}. A rank on few "
            "queries would say much of each of their labels."
        )
    return notes
