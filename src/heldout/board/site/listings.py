"""The tables below that of the board: further views of all entries, and views that list some.

Nobody reads a table of ten columns, so fairness, other labels and parts of the queries have one of
their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from urllib.parse import quote

import msgspec

from heldout.board.log.measured import FacetRanks, Facets, Measured
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.exports import format_csv, format_json
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    make_columns,
    make_row,
    public_rows,
    say_range,
)
from heldout.board.site.sentences import name_entry
from heldout.board.site.words import Part, clean, count
from heldout.board.standings.seasons import listing_views, rank_listed
from heldout.board.standings.standings import Row, Standings

# How later labels change the ranking, in sentences: of released scores alone, nothing new.

_FEWEST = 2
_MOST_MOVES = 12


def say_label_changes(rows: Sequence[Row], spec: BoardSpec) -> tuple[str, ...]:
    """A sentence or two for each public view that has other labels and is else the one that ranks.

    Each is compared with the one before it, the first with the view that ranks.

    Args:
        rows: public rows; those with a score on both views are compared.
        spec: the board's rules.
    """
    ranks = spec.view(spec.primary)
    later = (
        view
        for view in spec.public_views
        if view.labels is not None
        and view.name != ranks.name
        and not view.ranks_nobody
        and (view.set, view.measure, view.files, view.part)
        == (ranks.set, ranks.measure, ranks.files, ranks.part)
    )
    return tuple(
        _say(both, before, after)
        for before, after in pairwise((ranks, *later))
        if len(both := [r for r in rows if {before.name, after.name} <= r.scores.keys()]) >= _FEWEST
    )


def _say(rows: Sequence[Row], before: View, after: View) -> str:
    # scipy, which this needs, takes 0.3 s to load, and mostly there is no such view
    import numpy as np  # noqa: PLC0415 - said above

    from heldout.stats.tau_ranges import Both, find_taus  # noqa: PLC0415 - said above

    scores = [[float(row.scores[view.name]) for row in rows] for view in (before, after)]
    means = Both(before=np.array(scores[0]), after=np.array(scores[1]))
    taus = find_taus([row.id for row in rows], means)
    told = "; ".join(
        f"{'undefined' if one.tau is None else f'{one.tau:.2f}'} over {one.name}" for one in taus
    )
    head = f"By the labels {clean(str(after.labels))}, of {count(len(rows), 'system')}"
    moves = [*_list_moves(rows, before, after)]
    moved = "no rank changes" if not moves else f"other ranks: {_join(moves)}"
    return f"{head}: Kendall's tau with {_name(before)} is {told}; {moved}."


def _name(view: View) -> str:
    return "the ranking above" if view.labels is None else f"that by {clean(view.labels)}"


def _list_moves(rows: Sequence[Row], before: View, after: View) -> Iterator[str]:
    for row in rows:
        was, now = (
            1 + sum(Decimal(r.scores[v.name]) > Decimal(row.scores[v.name]) for r in rows)
            for v in (before, after)
        )
        if was != now:
            yield f"{row.id} from {was} to {now}"


def _join(moves: Sequence[str]) -> str:
    more = len(moves) - _MOST_MOVES
    rest = f", and {more:,} more" if more > 0 else ""
    return ", ".join(moves[:_MOST_MOVES]) + rest


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherViews:
    """Fairness, and parts of the queries, for every ranked entry and baseline.

    Attributes:
        columns: the view that ranks, then the further ones.
        rows: in the order of the board.
        changes: what other labels change in the ranking, in sentences.
    """

    columns: tuple[ViewColumn, ...]
    rows: tuple[TableRow, ...]
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The standings of one view.

    Attributes:
        anchor: id of its part of the page.
        title: what it lists.
        column: the view.
        rows: ranked entries, best first.
        unranked: the others, with the reason.
        csv, json: its files, as they stand in a link.
    """

    anchor: str
    title: str
    column: ViewColumn
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    csv: str
    json: str


def further_views(spec: BoardSpec) -> frozenset[str]:
    """The views that stand below the board's table: fairness, other labels, parts of queries."""
    return frozenset(
        view.name
        for view in spec.views
        if view.name != spec.primary
        and (view.files or view.labels is not None or view.training_at_most is not None)
    )


def make_further(
    rows: Sequence[Row], columns: Sequence[ViewColumn], spec: BoardSpec
) -> FurtherViews | None:
    """The table of further views; `None` where there is no score in one.

    Args:
        rows: public rows with a rank, and baselines.
        columns: all public views, the one that ranks first.
        spec: the board's rules.
    """
    keys = further_views(spec) - {view.name for view in listing_views(spec)}
    shown = [column for column in columns if column.key in keys]
    if not rows or not any(column.key in row.scores for column in shown for row in rows):
        return None
    every = (columns[0], *shown)
    return FurtherViews(
        columns=every,
        rows=tuple(make_row(row, every) for row in rows),
        changes=say_label_changes(rows, spec),
    )


def make_listings(standings: Standings, spec: BoardSpec) -> tuple[Listing, ...]:
    """The standings of every view that has some of its own.

    Args:
        standings: of the board.
        spec: its rules.
    """
    return tuple(_make(rank_listed(standings, view), spec, view) for view in listing_views(spec))


def render_listings(standings: Standings, spec: BoardSpec) -> dict[str, bytes]:
    """CSV and JSON of each, below `leaderboard/`."""
    files = {}
    for view in listing_views(spec):
        own, rules = rank_listed(standings, view), _rules(spec, view)
        table, document = _files(view)
        files[table] = format_csv(own, rules)
        files[document] = format_json(own, rules)
    return files


def _rules(spec: BoardSpec, view: View) -> BoardSpec:
    return msgspec.structs.replace(spec, primary=view.name)


def _files(view: View) -> tuple[str, str]:
    return f"views/{view.name}.csv", f"views/{view.name}.json"


def _make(standings: Standings, spec: BoardSpec, view: View) -> Listing:
    columns = make_columns(_rules(spec, view))
    rows = tuple(make_row(row, columns) for row in public_rows(standings))
    csv, json = _files(view)
    return Listing(
        anchor=f"view-{view.name}",
        title=f"Trained on at most {view.training_at_most:,} pairs ({clean(view.name)})",
        column=columns[0],
        rows=tuple(row for row in rows if not row.unranked),
        unranked=tuple(row for row in rows if row.unranked and not row.baseline),
        csv=quote(csv),
        json=quote(json),
    )


# Standings by kind of query, in the section "Confidence".


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
